"""A discovery file that somebody else put beside a store does not get the token of its reader."""

import http.server
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from interlock.embedded.clock import SystemClock
from interlock.embedded.process.discovery import announce, find_server, ignored, server_file
from tests.security.commands import STRANGER, as_root, give_away, interlock

_TOKEN = {"INTERLOCK_TOKEN": "ilk_mine"}


class _Thief(http.server.BaseHTTPRequestHandler):
    seen: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        self.seen.append(self.headers.get("Authorization", ""))
        self.send_error(404)

    def log_message(self, *_: object) -> None:
        pass


def _plant(store: Path, url: str, **changes: Any) -> Path:
    """The file as a controller of this very process would write it, changed."""
    announce(store, url, SystemClock().now())
    file = server_file(store)
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    return file


@as_root
def test_a_strangers_file_gets_no_token(tmp_path: Path) -> None:
    store = tmp_path / "interlock.db"
    assert interlock(tmp_path, "token", "create", "--name", "a", "--scope", "read").returncode == 0
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Thief)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        file = _plant(store, f"http://127.0.0.1:{server.server_port}")
        asked = interlock(tmp_path, "watchdog", environment=_TOKEN)
        assert _Thief.seen, asked.stderr  # our own: the token is sent
        _Thief.seen.clear()
        give_away(file)
        done = interlock(tmp_path, "watchdog", environment=_TOKEN)
        assert not _Thief.seen
        assert f"{file} is ignored: it belongs to user {STRANGER}" in done.stderr
    finally:
        server.shutdown()
        server.server_close()


def _readable(file: Path) -> None:
    file.chmod(0o644)


def _link(file: Path) -> None:
    file.rename(file.with_name("real"))
    file.symlink_to("real")


def _pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize(
    ("spoil", "word"),
    [(_readable, "others may read or write it"), (_link, "symbolic link"), (_pipe, "no regular file")],
)
def test_what_is_not_ours_alone_is_ignored(tmp_path: Path, spoil: Callable[[Path], None], word: str) -> None:
    store = tmp_path / "s.db"
    file = _plant(store, "http://127.0.0.1:1")
    assert find_server(store) is not None
    spoil(file)
    assert find_server(store) is None
    assert word in ignored(store)


@pytest.mark.parametrize("url", ["http://192.0.2.1:80", "http://example.com:80", "ftp://127.0.0.1:1", "ftp://x", "x"])
def test_an_address_elsewhere_is_ignored(tmp_path: Path, url: str) -> None:
    store = tmp_path / "s.db"
    _plant(store, url)
    assert find_server(store) is None
    assert "not an address of this machine" in ignored(store)


def test_a_file_without_the_start_of_its_process_is_ignored(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    _plant(store, "http://127.0.0.1:1", processStart="")
    assert find_server(store) is None


def test_announcing_follows_no_link(tmp_path: Path) -> None:
    store, precious = tmp_path / "s.db", tmp_path / "precious"
    precious.write_text("mine")
    server_file(store).symlink_to(precious)
    server_file(store).with_name(f"s.db.server.json.{os.getpid()}").symlink_to(precious)
    announce(store, "http://127.0.0.1:1", SystemClock().now())
    assert precious.read_text() == "mine"
    assert find_server(store) is not None
