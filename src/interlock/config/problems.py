"""What is wrong with a config, and where: the one form in which everything in this package reports."""

from enum import StrEnum

import msgspec

Path = tuple[str | int, ...]


class Severity(StrEnum):
    """An error keeps a config from running; a warning does not."""

    ERROR = "error"
    WARNING = "warning"


class Finding(msgspec.Struct, frozen=True):
    """Something about one value of a document, before anybody looked up the file and line it stands in.

    `needs` are the other places the judgement rests on, most often because something was not found there. Where one of
    them has errors of its own, nothing can be concluded from it, and the finding is dropped.
    """

    path: Path
    message: str
    severity: Severity = Severity.ERROR
    needs: tuple[Path, ...] = ()


class Problem(msgspec.Struct, frozen=True):
    """A finding with its place. `file` is empty and `line` is None for a document that came from a store."""

    file: str
    line: int | None
    path: str
    message: str
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        """`pipelines/gold.yaml:14 job.maxRetries: 11 is not in 0..10`."""
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        where = " ".join(part for part in (place, self.path) if part)
        mark = "warning: " if self.severity is Severity.WARNING else ""
        return f"{where}: {mark}{self.message}" if where else f"{mark}{self.message}"


def format_path(path: Path) -> str:
    """`validation.rules[0].check`; a key that could be mistaken for something else is quoted."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            shown = step if step.isprintable() and step.strip() and "." not in step else repr(step)
            text += f".{shown}" if text else shown
    return text
