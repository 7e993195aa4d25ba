"""Which files belong to a path: the pipelines, and the calendars and archetypes beside them."""

import os
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Final

import msgspec

from interlock.config.documents import MAX_BYTES, SUFFIXES, Document, read_document
from interlock.config.problems import Problem

PIPELINES: Final = "pipelines"
CALENDARS: Final = "calendars"
ARCHETYPES: Final = "archetypes"


class Place(msgspec.Struct, frozen=True):
    """Pipeline files, and the folders that serve them. `whole`: all pipelines there are, as far as anybody says.

    `folder` is where the files lie; None for a single file.
    """

    files: tuple[FilePath, ...]
    calendars: FilePath | None
    archetypes: FilePath | None
    whole: bool
    folder: FilePath | None = None


def find_place(path: FilePath) -> Place:
    """What a path stands for: a project, a folder of pipelines, or a single file."""
    if not path.is_dir():
        return Place((path,), _beside(path.parent, CALENDARS), _beside(path.parent, ARCHETYPES), whole=False)
    folder = path / PIPELINES if (path / PIPELINES).is_dir() else path
    # In a folder that is for pipelines, teams have folders of their own; elsewhere those may hold anything.
    files = tuple(config_files(folder, deep=folder.resolve().name == PIPELINES))
    return Place(files, _beside(folder, CALENDARS), _beside(folder, ARCHETYPES), whole=True, folder=folder)


def config_files(folder: FilePath, *, deep: bool = False) -> Iterator[FilePath]:
    """The YAML and JSON files of a folder, in order; hidden ones are nobody's config."""
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            if deep and entry.name not in (CALENDARS, ARCHETYPES):
                yield from config_files(folder / entry.name, deep=True)
        elif entry.name.lower().endswith(SUFFIXES):
            yield folder / entry.name


def read_file(path: FilePath) -> Document | tuple[Problem, ...]:
    """The document of a file; that it cannot be read is a problem like any other."""
    name = str(path)
    try:
        if not path.is_file():
            what = "is not a regular file" if path.exists() else "does not exist"
            return (Problem(name, None, "", what),)
        with path.open("rb") as stream:
            return read_document(name, stream.read(MAX_BYTES + 1))
    except OSError as error:
        return (Problem(name, None, "", f"cannot be read: {error.strerror or error}"),)


def _beside(folder: FilePath, name: str) -> FilePath | None:
    """A folder of that name in this one, or else beside it."""
    for candidate in (folder / name, folder / ".." / name):
        if candidate.is_dir():
            return FilePath(_tidy(candidate))
    return None


def _tidy(path: FilePath) -> FilePath:
    """`pipelines/../calendars` as `calendars`, so that messages show the name people know."""
    parts = path.parts
    if len(parts) >= 3 and parts[-2] == ".." and parts[-3] not in ("..", "/"):
        return FilePath(*parts[:-3], parts[-1])
    return path
