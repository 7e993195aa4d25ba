"""What a pipeline is made of: its own document over its archetype's. Whatever is wrong is shown where it was written.

Mappings merge deeply, the pipeline wins, lists replace, null takes away what the archetype has. The place of a value
is in the document that has most of its path; where both have as much (a key that is missing), it is the pipeline's own.
"""

from collections.abc import Iterable, Mapping

import msgspec

from interlock.config.aliases import Normalised, normalise, spread_exclusions, with_default_rules, written
from interlock.config.documents import Document
from interlock.config.problems import Finding, Path, Problem, format_path


class Source(msgspec.Struct, frozen=True):
    """One file's part in a pipeline."""

    document: Document
    normalised: Normalised

    def place(self, path: Path) -> tuple[int, Problem]:
        """How much of a path this file has, and a problem there, still without its message."""
        shown = self.normalised.written(path)
        known, line = self.document.place(shown)
        return known - (len(shown) - len(path)), Problem(self.document.file, line, format_path(shown), "")


class Merged(msgspec.Struct, frozen=True):
    """A whole document in the model's form, and the files it came from, the pipeline's own first."""

    document: dict[str, object]
    sources: tuple[Source, ...]
    origins: Mapping[Path, Path]

    @property
    def file(self) -> str:
        """The pipeline's own file."""
        return self.sources[0].document.file

    def locate(self, finding: Finding) -> Problem:
        """The finding as a problem of the file, line and path that a person wrote."""
        path = written(finding.path, self.origins)
        _, place = max((source.place(path) for source in self.sources), key=lambda found: found[0])
        return msgspec.structs.replace(place, message=finding.message, severity=finding.severity)

    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the texts and with the use of aliases in them."""
        found: list[Problem] = []
        for source in self.sources:
            found.extend(source.document.problems)
            alone = Merged(source.normalised.document, (source,), {})
            found.extend(alone.locate(finding) for finding in source.normalised.findings)
        return tuple(found)

    def locate_all(self, findings: Iterable[Finding]) -> list[Problem]:
        """Problems for all findings, but for those about a value whose text is flawed and was reported as such."""
        found = [self.locate(finding) for finding in findings]
        flawed = {
            (source.document.file, format_path(flaw.path)) for source in self.sources for flaw in source.document.flaws
        }
        return [problem for problem in found if (problem.file, problem.path) not in flawed]


def merge(own: Document, archetype: Document | None = None) -> Merged:
    """A pipeline's document over its archetype's."""
    if archetype is None:
        single = Source(own, normalise(own.value))
        return _whole(single.normalised.document, (single,), {})
    several = "schedules" in own.value or "schedules" in archetype.value
    sources = tuple(Source(document, normalise(document.value, several=several)) for document in (own, archetype))
    spread = spread_exclusions(_over(sources[0].normalised.document, sources[1].normalised.document))
    return _whole(spread.document, sources, spread.origins)


def _whole(document: dict[str, object], sources: tuple[Source, ...], origins: Mapping[Path, Path]) -> Merged:
    """With what follows from the rest, once nothing more is merged. Its place is where that rest stands."""
    filled = with_default_rules(document)
    if "validation" in filled and "validation" not in document:
        origins = {**origins, ("validation",): ("after",)}
    return Merged(filled, sources, origins)


def _over(top: dict[str, object], bottom: dict[str, object]) -> dict[str, object]:
    merged = dict(bottom)
    for key, value in top.items():
        below = merged.get(key)
        if value is None and key in bottom:
            del merged[key]
        else:
            merged[key] = _over(value, below) if isinstance(value, dict) and isinstance(below, dict) else value
    return merged
