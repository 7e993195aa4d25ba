"""Where each value of a pipeline was written: in its own file, or in its archetype's; what `plan` shows people."""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from interlock.config.problems import Finding, Path, format_path
from interlock.config.sources import Merged
from interlock.model.config import PipelineConfig

_KEYS: Final = tuple(field.encode_name for field in msgspec.structs.fields(PipelineConfig))


class Origin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A value of a merged config and its place. `over`: the place of the archetype's value that it replaces."""

    path: str
    value: object
    file: str
    line: int | None = None
    over: str = ""

    @property
    def place(self) -> str:
        """`archetypes/hourly.yaml:7`."""
        return place_of(self.file, self.line)


def place_of(file: str, line: int | None) -> str:
    """A file and a line, as people write it."""
    return file if line is None else f"{file}:{line}"


def origins(merged: Merged) -> list[Origin]:
    """Every value of a merged config, in the order of the model. A list is one value: it replaces as a whole."""
    document = {name: merged.document[name] for name in _KEYS if name in merged.document}
    return [_origin(merged, path, value) for path, value in _values(document, ())]


def _values(value: object, path: Path) -> Iterator[tuple[Path, object]]:
    if isinstance(value, Mapping) and (value or not path):
        for name, inner in value.items():
            yield from _values(inner, (*path, str(name)))
    else:
        yield path, value


def _origin(merged: Merged, path: Path, value: object) -> Origin:
    at = merged.locate(Finding(path, ""))
    over = _replaced(merged, path) if at.file == merged.file else ""
    return Origin(path=format_path(path), value=value, file=at.file, line=at.line, over=over)


def _replaced(merged: Merged, path: Path) -> str:
    """The place of what the archetype has at this path; "" when it has nothing there."""
    for source in merged.sources[1:]:
        inner: object = source.normalised.document
        for step in path:
            if not isinstance(inner, Mapping) or step not in inner:
                break
            inner = inner[step]
        else:
            at = source.place(path)[1]
            return place_of(at.file, at.line)
    return ""
