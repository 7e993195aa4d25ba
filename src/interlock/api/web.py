"""The page: a shell and its hashed files, from memory, with the headers that keep foreign code out of it.

Every path that is not the API's, nor an asset's, is answered with the shell, which needs no token and knows which pages
there are. Assets have their hash in their name and never change; the shell is asked for anew each time, so that an
upgraded controller serves its own page at once. All files are read when the first is asked for, so that a page that is
built anew under a running controller is not half of each.
"""

import gzip
from collections.abc import Iterator, Mapping
from hashlib import sha256
from http import HTTPStatus
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec

from interlock.api.answers import takes_gzip
from interlock.api.credentials import headers_of
from interlock.api.http.messages import Header, Receive, Scope, Send
from interlock.api.problems import RequestError, not_found

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'"
)
ASSETS: Final = "/assets/"
_SHELL: Final = "index.html"
_API: Final = frozenset({"/api", "/healthz", "/readyz", "/metrics", "/openapi.json"})
_IMMUTABLE: Final = b"public, max-age=31536000, immutable"
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_PAGE: Final[tuple[Header, ...]] = (
    (b"content-security-policy", POLICY.encode()),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
_NOT_BUILT: Final = b"""<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Interlock</title>
<h1>Interlock is running</h1>
<p>This installation has no dashboard: it was started from a checkout in which the page was not built.
<p>Install Node.js 20 or newer, run <code>make ui</code> in the checkout, and start the controller again.
A released wheel contains the page and needs no Node.js.
<p>The API is at <code>/api/v1</code>, described at <a href="/openapi.json">/openapi.json</a>;
<code>interlock status</code> and <code>interlock why</code> answer on the command line.
</html>
"""


def is_page(path: str) -> bool:
    """Is this an address of the page, and not of the API?"""
    return path not in _API and not path.startswith("/api/")


class _File(msgspec.Struct, frozen=True):
    content: bytes
    packed: bytes
    headers: tuple[Header, ...]
    etag: bytes


def built_folder() -> Path:
    """Where `make ui` puts the page."""
    return Path(str(files("interlock.web"))) / "dist"


class Web:
    """Serves the built page."""

    def __init__(self) -> None:
        self._files: Mapping[str, _File] | None = None

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """Answer a request for a page or an asset."""
        if scope["method"] not in ("GET", "HEAD"):
            detail = f"{scope['method']} is not for pages: the API is at /api/v1"
            raise RequestError(HTTPStatus.METHOD_NOT_ALLOWED, "method-not-allowed", detail, headers={"Allow": "GET"})
        if self._files is None:
            self._files = _read(built_folder())
        headers = headers_of(scope)
        found = self._find(str(scope["path"]), self._files)
        known = headers.get(b"if-none-match") == found.etag
        packed = takes_gzip(headers) and len(found.packed) < len(found.content)
        body = b"" if known else found.packed if packed else found.content
        answer = [*found.headers, (b"etag", found.etag), (b"vary", b"accept-encoding")]
        if not known:
            answer.append((b"content-length", str(len(body)).encode()))
            answer += [(b"content-encoding", b"gzip")] if packed else []
        status = HTTPStatus.NOT_MODIFIED if known else HTTPStatus.OK
        await send({"type": "http.response.start", "status": int(status), "headers": answer})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    @staticmethod
    def _find(path: str, known: Mapping[str, _File]) -> _File:
        found = known.get(path)
        if found is not None:
            return found
        if path.startswith(ASSETS):
            raise not_found(
                f"there is no file {path[:200]}: this controller has another version of the page; reload it"
            )
        return known["/"]


def _read(folder: Path) -> Mapping[str, _File]:
    found = dict(_built(folder))
    if "/" not in found:
        found["/"] = _file(_NOT_BUILT, ".html", b"no-store")
    return found


def _built(folder: Path) -> Iterator[tuple[str, _File]]:
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if not path.is_file() or path.suffix not in _TYPES:
            continue
        name = f"/{PurePosixPath(path.relative_to(folder))}"
        kept = _IMMUTABLE if name.startswith(ASSETS) else b"no-cache"
        yield "/" if name == f"/{_SHELL}" else name, _file(path.read_bytes(), path.suffix, kept)


def _file(content: bytes, suffix: str, kept: bytes) -> _File:
    headers = ((b"content-type", _TYPES[suffix].encode()), (b"cache-control", kept), *_PAGE)
    etag = f'"{sha256(content).hexdigest()[:16]}"'.encode()
    return _File(content, gzip.compress(content, 9, mtime=0), headers, etag)
