"""Settings, pipelines, calendars and stores that another user made are not obeyed, unless a person named them."""

import http.server
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from interlock.ownership import refusal
from tests.api.running import pipeline, serving, until, write_pipeline
from tests.security.commands import STRANGER, as_root, give_away, interlock, refused


@contextmanager
def listening() -> Iterator[tuple[str, list[str]]]:
    """A server of the stranger's, and the tokens it was sent."""
    seen: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers.get("Authorization", ""))
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        server.server_close()


@as_root
def test_a_foreign_toml_gets_no_token(tmp_path: Path) -> None:
    inner = tmp_path / "theirs" / "inner"
    inner.mkdir(parents=True)
    toml = tmp_path / "theirs" / "interlock.toml"
    with listening() as (url, seen):
        toml.write_text(f'url = "{url}"\n')
        give_away(toml)
        done = interlock(inner, "status", environment={"INTERLOCK_TOKEN": "ilk_mine"})
        assert not seen
        refused(done, str(toml), f"belongs to user {STRANGER}", f"--config {toml}")
        interlock(inner, "--config", str(toml), "status", environment={"INTERLOCK_TOKEN": "ilk_mine"})
        assert seen
        seen.clear()
        interlock(inner, "status", environment={"INTERLOCK_TOKEN": "ilk_mine", "INTERLOCK_CONFIG": str(toml)})
        assert seen


@as_root
def test_serve_runs_no_foreign_project(tmp_path: Path) -> None:
    (tmp_path / "interlock.toml").write_text('pipelines = "pipelines"\n')
    give_away(tmp_path / "interlock.toml")
    refused(interlock(tmp_path, "serve", "--port", "0"), "interlock.toml is not obeyed")
    assert not (tmp_path / "interlock.db").exists()
    with serving(tmp_path, "--config", "interlock.toml"):
        pass


@as_root
def test_serve_follows_no_foreign_pipelines(tmp_path: Path) -> None:
    file = write_pipeline(tmp_path, "gold", pipeline("gold"))
    give_away(file.parent, file)
    refused(interlock(tmp_path, "serve", "--port", "0"), f"{file.parent} is not obeyed", "--trust-dir")
    for named in (("--trust-dir", str(tmp_path)), ("--pipelines", "pipelines")):
        with serving(tmp_path, *named) as process:
            assert process.client.get("/api/v1/pipelines/gold").status_code == 200


@as_root
def test_a_foreign_file_in_an_own_folder_is_invalid(tmp_path: Path) -> None:
    theirs = write_pipeline(tmp_path, "theirs", pipeline("theirs"))
    write_pipeline(tmp_path, "mine", pipeline("mine"))
    give_away(theirs)
    with serving(tmp_path) as process:
        assert process.client.get("/api/v1/pipelines/mine").status_code == 200
        assert process.client.get("/api/v1/pipelines/theirs").status_code == 404
        (event,) = process.client.get("/api/v1/events", params={"type": "CONFIG_INVALID"}).json()["items"]
        assert f"is not obeyed: {theirs} belongs to user {STRANGER}" in event["message"]
        os.chown(theirs, 0, 0)
        until(lambda: process.client.get("/api/v1/pipelines/theirs").status_code == 200, "the file being obeyed")


@as_root
def test_a_foreign_calendar_is_not_obeyed(tmp_path: Path) -> None:
    schedule = {**pipeline("gold")["schedule"], "exclude": {"calendar": "closed"}}
    write_pipeline(tmp_path, "gold", pipeline("gold", schedule=schedule))
    (tmp_path / "calendars").mkdir()
    calendar = tmp_path / "calendars" / "closed.yaml"
    calendar.write_text("name: closed\ndates: ['2026-12-25']\n")
    give_away(calendar)
    with serving(tmp_path) as process:
        assert process.client.get("/api/v1/calendars").json()["items"] == []


@as_root
def test_a_foreign_store_is_not_opened(tmp_path: Path) -> None:
    store = tmp_path / "interlock.db"
    assert interlock(tmp_path, "token", "create", "--name", "a", "--scope", "read").returncode == 0
    give_away(store)
    for command in (("serve", "--port", "0"), ("status",), ("token", "list")):
        refused(interlock(tmp_path, *command), f"{store} is not obeyed", "--store sqlite:///")
    assert interlock(tmp_path, "token", "list", "--store", "sqlite:///interlock.db").returncode == 0


def test_what_everybody_may_write_is_not_obeyed_even_if_named(tmp_path: Path) -> None:
    toml = tmp_path / "interlock.toml"
    toml.write_text("port = 0\n")
    toml.chmod(0o666)
    refused(interlock(tmp_path, "status"), f"everybody may write {toml}")
    refused(interlock(tmp_path, "--config", str(toml), "status"), f"everybody may write {toml}")
    toml.unlink()
    assert interlock(tmp_path, "token", "create", "--name", "a", "--scope", "read").returncode == 0
    (tmp_path / "interlock.db").chmod(0o666)
    refused(interlock(tmp_path, "status"), "everybody may write")
    refused(interlock(tmp_path, "status", "--store", "sqlite:///interlock.db"), "everybody may write")


def test_a_folder_that_becomes_writable_for_all_is_lost_not_obeyed(tmp_path: Path) -> None:
    write_pipeline(tmp_path, "gold", pipeline("gold"))
    with serving(tmp_path) as process:
        (tmp_path / "pipelines").chmod(0o777)
        write_pipeline(tmp_path, "evil", pipeline("evil"))
        until(lambda: process.client.get("/readyz").json()["degraded"], "the loss of the folder")
        assert process.client.get("/api/v1/pipelines/gold").status_code == 200
        assert process.client.get("/api/v1/pipelines/evil").status_code == 404


def test_the_search_ends_at_the_home_folder_and_at_a_repository(tmp_path: Path) -> None:
    (tmp_path / "interlock.toml").write_text("this is not TOML\n")
    home, repository = tmp_path / "home", tmp_path / "repository"
    (home / "project").mkdir(parents=True)
    (repository / ".git").mkdir(parents=True)
    assert "cannot be read" in interlock(tmp_path, "status").stderr
    assert "no store" in interlock(home / "project", "status", environment={"HOME": str(home)}).stderr
    assert "no store" in interlock(repository, "status").stderr


@pytest.mark.parametrize(
    ("mode", "named", "reported"),
    [
        (0o755, False, False),
        (0o777, False, True),
        (0o1777, False, False),
        (0o777, True, True),
        (0o1777, True, False),
    ],
)
def test_folders_above_a_file(tmp_path: Path, mode: int, named: bool, reported: bool) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    file = folder / "interlock.toml"
    file.touch(mode=0o644)
    folder.chmod(mode)
    assert bool(refusal(file, named=named)) is reported


@as_root
def test_a_group_of_strangers_and_links_that_leave(tmp_path: Path) -> None:
    theirs, mine = tmp_path / "theirs", tmp_path / "mine"
    theirs.mkdir()
    mine.mkdir()
    (theirs / "file").touch()
    (mine / "link").symlink_to(theirs / "file")
    assert refusal(mine / "link") == ""
    os.chown(theirs, 0, STRANGER)
    theirs.chmod(0o775)
    assert f"the group {STRANGER} may write {theirs}" in refusal(mine / "link")
    assert refusal(mine / "link", named=True) == ""
    give_away(theirs)
    assert f"belongs to user {STRANGER}" in refusal(mine / "link")
