"""A config that comes from a store: the same checks as for a file, without lines.

One that reaches a store although it is invalid (written by hand, or by a newer version) is found here, and never run.
Nothing is remembered between calls: callers read a config once per version and keep it.
"""

from collections.abc import Collection, Mapping
from hashlib import sha256

import msgspec

from interlock.config.aliases import normalise
from interlock.config.decode import decode
from interlock.config.job_types import check_type_of
from interlock.config.problems import Finding, Problem, format_path
from interlock.config.semantics import find_errors
from interlock.model.config import Calendar, PipelineConfig
from interlock.model.errors import InvalidValueError


def read_stored(document: object, calendars: Mapping[str, Calendar]) -> PipelineConfig | tuple[Problem, ...]:
    """The config of a stored document, or all its errors."""
    if not isinstance(document, Mapping):
        return (Problem("", None, "", "the stored config is not a mapping"),)
    try:
        normalised = normalise(document)
        found = decode_and_check(normalised.document, calendars)
    except RecursionError:
        return (Problem("", None, "", "nested far too deep: a config is never that deep"),)
    if isinstance(found, PipelineConfig) and not normalised.findings:
        return found
    findings = (*normalised.findings, *(() if isinstance(found, PipelineConfig) else found))
    return tuple(Problem("", None, format_path(normalised.written(one.path)), one.message) for one in findings)


def decode_and_check(
    document: Mapping[str, object], calendars: Collection[str]
) -> PipelineConfig | tuple[Finding, ...]:
    """The config of a document in the model's form, or all its errors."""
    config = decode(document, PipelineConfig)
    if isinstance(config, tuple):
        return (*config, *check_type_of(document))
    return find_errors(config, calendars) or config


def config_version(document: object) -> str:
    """What tells one version of a config from another: a hash of its canonical JSON."""
    return sha256(canonical_json(document)).hexdigest()[:16]


def canonical_json(document: object) -> bytes:
    """The one JSON text of a document: keys sorted, no spaces."""
    try:
        return msgspec.json.encode(document, order="sorted")
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidValueError(f"the config cannot be written as JSON: {error}") from error
