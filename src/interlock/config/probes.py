"""Are a pipeline's probes what can be looked at? Unknown and missing keys, wrong values, templates, times."""

from collections.abc import Iterator
from typing import Any, Final

from interlock.config.decode import find_wrong
from interlock.config.jobs import (
    has_template,
    in_words,
    opened,
    sample_environment,
    templates_in,
    wrong_command,
    wrong_url,
)
from interlock.config.problems import Finding, Path, Severity
from interlock.config.rules import check_key
from interlock.decide.probes import fill_probe, interval_of, ttl_of
from interlock.decide.values import show
from interlock.model.config import PipelineConfig, Probe, ProbeType
from interlock.model.durations import Duration, format_duration
from interlock.model.errors import InvalidValueError
from interlock.model.job_configs import HTTP_METHODS
from interlock.model.keys import split_sensor_key
from interlock.model.periods import parse_period
from interlock.model.probe_configs import PROBE_CONFIGS

_LEAST: Final = {"interval": Duration(seconds=1), "timeout": Duration(milliseconds=1), "ttl": Duration(seconds=1)}
_LONGEST_TIMEOUT: Final = Duration(minutes=10)
_SAMPLE: Final = parse_period("2026-01-01")
_CONFIG: Final = "config"


def check_probes(config: PipelineConfig) -> Iterator[Finding]:
    """Everything about the probes that their types do not say."""
    seen: set[str] = set()
    for index, probe in enumerate(config.probes):
        path = ("probes", index)
        yield from check_key(probe.key, path)
        if probe.key in seen:
            yield Finding((*path, "key"), f"{show(probe.key)} is written by another probe already")
        seen.add(probe.key)
        if split_sensor_key(probe.key)[1] is not None:
            message = f"{show(probe.key)} names a period: a probe that names ${{DATE}} in its config adds it by itself"
            yield Finding((*path, "key"), message)
        yield from _check_times(probe, path)
        yield from _check_config(probe, path)


def find_probe_warnings(config: PipelineConfig) -> Iterator[Finding]:
    """What is allowed and yet probably not meant."""
    for index, probe in enumerate(config.probes):
        interval, ttl = interval_of(config, probe), ttl_of(config, probe)
        if ttl < interval:
            message = (
                f"{format_duration(Duration(seconds=ttl.total_seconds()))} is shorter than the interval"
                f" ({format_duration(interval)}): the sensor is absent between two looks"
            )
            yield Finding(("probes", index, "ttl"), message, Severity.WARNING)


def _check_times(probe: Probe, path: Path) -> Iterator[Finding]:
    for name, least in _LEAST.items():
        length = getattr(probe, name)
        if length is not None and length < least:
            yield Finding((*path, name), f"{format_duration(length)} is too short: at least {format_duration(least)}")
    if probe.timeout > _LONGEST_TIMEOUT:
        message = f"{format_duration(probe.timeout)} is longer than {format_duration(_LONGEST_TIMEOUT)}"
        yield Finding((*path, "timeout"), message)


def _check_config(probe: Probe, path: Path) -> Iterator[Finding]:
    type_, at = PROBE_CONFIGS[probe.type], (*path, _CONFIG)
    needs = ((*path, "type"),)
    wrong = list(find_wrong(opened(probe.config), type_, at))
    for one in wrong:
        said = in_words(one, f"probes of type {probe.type}", type_, at)
        yield Finding(said.path, said.message, said.severity, (*said.needs, *needs))
    broken = {one.path for one in wrong}
    for finding in _wrong_values(probe, at):
        if not any(finding.path[: len(one)] == one for one in broken):
            yield Finding(finding.path, finding.message, finding.severity, needs)
    yield from _bad_templates(probe, at)


def _wrong_values(probe: Probe, at: Path) -> Iterator[Finding]:
    config = probe.config
    match probe.type:
        case ProbeType.HTTP:
            problem = wrong_url(False, config.get("url"))
            if problem:
                yield Finding((*at, "url"), problem)
            method = config.get("method")
            if isinstance(method, str) and not has_template(method) and method.upper() not in HTTP_METHODS:
                yield Finding((*at, "method"), f"{show(method)} is not one of {', '.join(HTTP_METHODS)}")
        case ProbeType.COMMAND:
            yield from wrong_command(config.get("command"), (*at, "command"))
        case ProbeType.SQL:
            yield from _wrong_database(config, at)
        case ProbeType.S3 | ProbeType.FILE:
            problem = wrong_url(False, config.get("endpointUrl"))
            if problem:
                yield Finding((*at, "endpointUrl"), problem)


def _wrong_database(config: dict[str, Any], at: Path) -> Iterator[Finding]:
    url = config.get("url")
    if isinstance(url, str) and not has_template(url) and "://" not in url:
        # Not quoted: it may have a password in it.
        message = "is not the address of a database: write dialect+driver://user:password@host/database"
        yield Finding((*at, "url"), message)


def _bad_templates(probe: Probe, at: Path) -> Iterator[Finding]:
    """Templates that could not be filled in when it is looked."""
    for here, text in templates_in(probe.config, at):
        one = Probe(key=probe.key, type=probe.type, config={"text": text})
        try:
            fill_probe(one, "pipeline", _SAMPLE, sample_environment(text), where="")
        except InvalidValueError as error:
            yield Finding(here, str(error).removeprefix(".text: "))
