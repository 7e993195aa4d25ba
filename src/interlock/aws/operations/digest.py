"""Which code a function runs: a digest of the sources that the functions are built from.

The build of the functions writes it into their descriptions, and `interlock doctor` compares that with its own: the
same in a checkout, in an installed package and in a build, whatever else lies there.
"""

import re
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

import interlock

PACKAGES: Final = ("alerts", "aws", "config", "control", "decide", "jobs", "model", "ports", "probes")
"""What functions may import of this project."""
_DESCRIPTION: Final = re.compile(r"interlock (\S+) source ([0-9a-f]{16})")
_SHIPPED: Final = (".py", ".json")


def source_digest() -> str:
    """The digest of the sources of this very program."""
    found = sha256()
    for package in PACKAGES:
        for name, content in sorted(_sources(files("interlock") / package, package)):
            found.update(f"{name}\x00{len(content)}\x00".encode())
            found.update(content)
    return found.hexdigest()[:16]


def describe() -> str:
    """The description of a function that is built from this program."""
    return f"interlock {interlock.__version__} source {source_digest()}"


def read_description(text: str) -> tuple[str, str] | None:
    """Version and digest that a function's description names; None when it names none."""
    found = _DESCRIPTION.search(text)
    return None if found is None else (found[1], found[2])


def _sources(folder: Traversable, path: str) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for entry in folder.iterdir():
        place = f"{path}/{entry.name}"
        if entry.is_dir():
            found += [] if entry.name == "__pycache__" else _sources(entry, place)
        elif entry.name.endswith(_SHIPPED):
            found.append((place, entry.read_bytes().replace(b"\r\n", b"\n")))
    return found
