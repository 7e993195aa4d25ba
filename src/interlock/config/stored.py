"""A config that comes from a store: the same checks as for a file, without lines.

One that reaches a store although it is invalid (written by hand, or by a newer version) is found here, and never run.
Nothing is remembered between calls: callers read a config once per version and keep it.
"""

from collections.abc import Collection, Iterable, Mapping

import msgspec

from interlock.config.aliases import normalise, with_default_rules
from interlock.config.decode import decode
from interlock.config.problems import Finding, Problem, format_path
from interlock.config.salvage import certain, salvage
from interlock.config.semantics import find_errors
from interlock.model.config import Calendar, PipelineConfig


def read_stored(document: object, calendars: Mapping[str, Calendar]) -> PipelineConfig | tuple[Problem, ...]:
    """The config of a stored document, or all its errors."""
    if not isinstance(document, Mapping):
        return (Problem("", None, "", "the stored config is not a mapping"),)
    try:
        normalised = normalise(document)
        checked = decode_and_check(with_default_rules(normalised.document), calendars)
    except RecursionError:
        return (Problem("", None, "", "nested far too deep: a config is never that deep"),)
    findings = (*normalised.findings, *checked.findings)
    if checked.config is not None and not findings:
        return checked.config
    return tuple(Problem("", None, format_path(normalised.written(one.path)), one.message) for one in findings)


def read_checked(document: Mapping[str, object]) -> PipelineConfig | None:
    """The config of a stored document that was found valid before; None when it cannot be one any more."""
    config = decode(with_default_rules(normalise(document).document), PipelineConfig)
    return config if isinstance(config, PipelineConfig) else None


class Checked(msgspec.Struct, frozen=True):
    """A document as a config. With findings, `config` is what could be made of the rest of it, which is never run."""

    config: PipelineConfig | None
    findings: tuple[Finding, ...]

    def certain(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Those of more findings about this config that do not rest on a part with errors of its own."""
        return certain(findings, (one.path for one in self.findings))


def decode_and_check(document: Mapping[str, object], calendars: Collection[str]) -> Checked:
    """The config of a document in the model's form, with all its errors: an error in one part hides none in another."""
    config = decode(document, PipelineConfig)
    if not isinstance(config, tuple):
        return Checked(config, find_errors(config, calendars))
    rest = salvage(document, PipelineConfig)
    if rest is None:
        return Checked(None, config)
    return Checked(rest, (*config, *certain(find_errors(rest, calendars), (one.path for one in config))))
