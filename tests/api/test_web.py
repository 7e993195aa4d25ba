"""The page: its shell and files, the headers that keep foreign code out, and what is compressed."""

import gzip
import json
import re
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx
import pytest

from interlock.api import web
from interlock.api.answers import takes_gzip
from interlock.embedded.access.tokens import Scope
from interlock.embedded.service import Service
from tests.api.running import pipeline, problem, running

V1 = "/api/v1"
PLAIN = {"Accept-Encoding": "identity"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, httpx.Client]]:
    """A controller with a page of two files."""
    folder = tmp_path_factory.mktemp("dist")
    (folder / "assets").mkdir()
    (folder / "index.html").write_text("<!doctype html><title>Interlock</title>" + "x" * 3000)
    (folder / "assets" / "index-1a2b3c4d.js").write_text("export {};\n" * 500)
    (folder / "assets" / "index-1a2b3c4d.js.map").write_text("{}")
    (folder / "icon.svg").write_text("<svg/>")
    patch = pytest.MonkeyPatch()
    patch.setattr(web, "built_folder", lambda: folder)
    with running(tmp_path_factory.mktemp("web")) as found:
        yield found
    patch.undo()


def test_the_shell_is_asked_for_anew_and_assets_never_change(built: tuple[Service, httpx.Client]) -> None:
    _, client = built
    shell = client.get("/")
    assert shell.status_code == HTTPStatus.OK
    assert shell.headers["cache-control"] == "no-cache"
    assert shell.headers["content-type"] == "text/html; charset=utf-8"
    asset = client.get("/assets/index-1a2b3c4d.js")
    assert asset.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert asset.headers["content-type"] == "text/javascript; charset=utf-8"
    assert asset.headers["content-encoding"] == "gzip"
    plain = client.get("/assets/index-1a2b3c4d.js", headers=PLAIN)
    assert "content-encoding" not in plain.headers
    assert plain.text == asset.text
    known = client.get("/", headers={"If-None-Match": shell.headers["etag"]})
    assert (known.status_code, known.content) == (HTTPStatus.NOT_MODIFIED, b"")


@pytest.mark.parametrize("path", ["/", "/events", "/pipelines/a/runs/b/c", "/icon.svg", "/assets/index-1a2b3c4d.js"])
def test_every_file_has_the_policy(built: tuple[Service, httpx.Client], path: str) -> None:
    _, client = built
    headers = client.get(path).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == policy["worker-src"] == "'self'"
    assert policy["img-src"] == "'self' data:"
    assert policy["base-uri"] == policy["form-action"] == policy["frame-ancestors"] == "'none'"
    assert policy["require-trusted-types-for"] == "'script'"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-opener-policy"] == headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["x-content-type-options"] == "nosniff"


def test_unknown_paths_get_the_shell_but_never_under_api_or_assets(built: tuple[Service, httpx.Client]) -> None:
    _, client = built
    assert "Interlock" in client.get("/no/such/page").text
    for path in ("/assets/index-99999999.js", "/assets/index-1a2b3c4d.js.map", "/assets/"):
        problem(client.get(path), 404, "not-found")
    problem(client.get("/api"), 404, "not-found")
    problem(client.get("/api/v2/pipelines"), 404, "not-found")
    problem(client.post("/"), 405, "method-not-allowed")
    head = client.head("/")
    assert (head.status_code, head.content) == (HTTPStatus.OK, b"")


def test_the_shell_needs_no_token(built: tuple[Service, httpx.Client], tmp_path: Path) -> None:
    with running(tmp_path) as (service, client):
        service.tokens.create("me", [Scope.READ])
        assert client.get("/").status_code == HTTPStatus.OK
        assert client.get(f"{V1}/pipelines").status_code == HTTPStatus.UNAUTHORIZED


def test_without_a_built_page_the_root_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "built_folder", lambda: tmp_path / "none")
    with running(tmp_path) as (_, client):
        found = client.get("/")
        assert "make ui" in found.text
        assert not re.search(r"<(script|style)|style=", found.text)
        assert "content-security-policy" in found.headers


# ------------------------------------------------------------------------------------------------- answers of the API


def test_answers_are_not_kept_and_tell_the_time(built: tuple[Service, httpx.Client]) -> None:
    _, client = built
    for path in (f"{V1}/pipelines", f"{V1}/pipelines/none", "/healthz"):
        headers = client.get(path).headers
        assert headers["cache-control"] == "no-store"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z;rate=1", headers["x-interlock-time"])


def test_long_json_is_compressed_on_request(built: tuple[Service, httpx.Client]) -> None:
    _, client = built
    for index in range(20):
        client.put(f"{V1}/pipelines/p-{index}", json=pipeline(f"p-{index}"))
    packed = client.get(f"{V1}/pipelines")
    assert packed.headers["content-encoding"] == "gzip"
    assert "accept-encoding" in packed.headers["vary"]
    plain = client.get(f"{V1}/pipelines", headers=PLAIN)
    assert "content-encoding" not in plain.headers
    assert plain.json() == packed.json()
    assert int(packed.headers["content-length"]) < len(plain.content) / 3
    short = client.get("/healthz")
    assert "content-encoding" not in short.headers
    with client.stream("GET", f"{V1}/overview?limit=1000") as raw:
        body = b"".join(raw.iter_raw())
    found: dict[str, Any] = json.loads(gzip.decompress(body))
    assert len(found["items"]) == 20


def test_a_stream_is_never_compressed(built: tuple[Service, httpx.Client]) -> None:
    _, client = built
    with client.stream("GET", f"{V1}/events/stream") as stream:
        assert "content-encoding" not in stream.headers
        assert next(stream.iter_lines()).startswith("id: ")


@pytest.mark.parametrize(
    ("header", "taken"),
    [
        (b"gzip", True),
        (b"br, gzip;q=0.5", True),
        (b"GZIP", True),
        (b"", False),
        (b"identity", False),
        (b"gzip;q=0", False),
        (b"gzip; q=0.0", False),
        (b"x-gzipped", False),
    ],
)
def test_who_asks_for_compression(header: bytes, taken: bool) -> None:
    assert takes_gzip({b"accept-encoding": header}) is taken
