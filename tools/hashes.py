"""Writes what `make` installs by: the pins of constraints.txt, each with the digests of every file of its release.

    python -m tools.hashes constraints.txt requirements.lock

All files count, whatever platform they are for: the same lock serves every machine. It names no registry; the digests
come from the simple API of the index that pip is told to use (PIP_INDEX_URL), or of PyPI, as JSON or as a page.
"""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import httpx
import msgspec
from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

_PYPI: Final = "https://pypi.org/simple"
_TYPES: Final = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
_AT_ONCE: Final = 8
_SHA: Final = re.compile(r"[0-9a-f]{64}")
_HEAD: Final = """\
# The pins of constraints.txt with the SHA-256 of every file of each release. Made by `make lock`; do not edit.
"""

Pins = Mapping[str, str]


class UnknownReleaseError(Exception):
    """The index does not say what is needed."""


class _Links(HTMLParser):
    """File names and digests of a page of the simple API."""

    def __init__(self) -> None:
        super().__init__()
        self.files: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Each file is a link."""
        address = dict(attrs).get("href") or ""
        if tag == "a" and address:
            parts = urlsplit(address)
            kind, _, digest = parts.fragment.partition("=")
            self.files.append((unquote(parts.path.rpartition("/")[2]), digest if kind == "sha256" else ""))


def read_pins(text: str) -> dict[str, str]:
    """Names and versions; comments and digests are passed over."""
    found = re.findall(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s\\;]+)", text, flags=re.MULTILINE)
    return dict(found)


def files_of(content: bytes, kind: str) -> list[tuple[str, str]]:
    """What an answer of the simple API lists: file names and SHA-256."""
    if "json" in kind:
        document = msgspec.json.decode(content)
        return [(one["filename"], one.get("hashes", {}).get("sha256", "")) for one in document["files"]]
    links = _Links()
    links.feed(content.decode("utf-8", "replace"))
    return links.files


def digests(files: list[tuple[str, str]], version: str) -> list[str]:
    """The digests of the files of a release."""
    wanted = Version(version)
    return sorted({digest for name, digest in files if _version(name) == wanted and _SHA.fullmatch(digest)})


def _version(name: str) -> Version | None:
    try:
        if name.endswith(".whl"):
            return parse_wheel_filename(name)[1]
        if name.endswith((".tar.gz", ".zip")):
            return parse_sdist_filename(name)[1]
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        pass
    return None


def locked(pins: Pins, index: str) -> Iterator[str]:
    """The lines of the lock."""
    with httpx.Client(timeout=60.0, follow_redirects=True, headers={"Accept": _TYPES}) as client:

        def ask(name: str) -> list[str]:
            plain = re.sub(r"[-_.]+", "-", name).lower()
            answer = client.get(f"{index.rstrip('/')}/{plain}/")
            if answer.status_code != 200:
                raise UnknownReleaseError(f"{name}: the index answers HTTP {answer.status_code}")
            found = digests(files_of(answer.content, answer.headers.get("content-type", "")), pins[name])
            if not found:
                raise UnknownReleaseError(f"{name}=={pins[name]}: the index gives no SHA-256 of any of its files")
            return found

        with ThreadPoolExecutor(_AT_ONCE) as threads:
            for name, found in zip(pins, threads.map(ask, pins), strict=True):
                yield " \\\n".join([f"{name}=={pins[name]}", *(f"    --hash=sha256:{digest}" for digest in found)])


def main(arguments: list[str]) -> int:
    """Write the lock, or say why not and leave the one that is there."""
    pins, out = (Path(one) for one in arguments)
    index = os.environ.get("PIP_INDEX_URL", _PYPI)
    try:
        lines = list(locked(read_pins(pins.read_text(encoding="utf-8")), index))
    except (UnknownReleaseError, httpx.HTTPError, msgspec.DecodeError) as error:
        print(f"{out}: not written: {str(error) or type(error).__name__}", file=sys.stderr)
        return 1
    out.write_text(_HEAD + "\n".join(lines) + "\n", encoding="utf-8")
    print(f"{out}: {len(lines)} releases")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
