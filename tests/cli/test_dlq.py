"""`interlock dlq`: looking at dead letters, and having them done again."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from interlock.embedded.clock import SystemClock
from interlock.embedded.sqlite.database import Database
from interlock.embedded.stream.dead_letters import Failure, LetterKind, bury
from tests.api.running import Process
from tests.cli.stage import Stage, plain, served, store_of, waited

Capsys = pytest.CaptureFixture[str]


@contextmanager
def opened(path: Path) -> Iterator[Database]:
    with Database.open(path, clock=SystemClock(), create=False) as database:
        yield database


def bury_one(path: Path, ref: str, *, consumer: str = "stream-router") -> None:
    """Give up on a change of a sensor that is not there: done again, it does nothing."""
    with opened(path) as database:
        now = database.clock.now()
        record = {"table": "control", "pk": "PIPELINE#gold", "sk": f"SENSOR#{ref}", "at": 0, "item": None}
        failure = Failure(ValueError("boom\x1b[31m"), 3, now, now)
        known = "INSERT OR IGNORE INTO consumers (name, checkpoint) VALUES (?, 0)"
        database.write(lambda connection: connection.execute(known, (consumer,)))
        database.write(lambda connection: bury(connection, LetterKind.CHANGE, consumer, ref, record, failure))


def test_on_a_file(capsys: Capsys, tmp_path: Path) -> None:
    stage = plain(capsys, tmp_path)
    assert stage.good("dlq", "list") == "no dead letters\n"
    assert stage.json("dlq", "list") == {"deadLetters": []}
    for ref in ("a", "b", "c"):
        bury_one(tmp_path / "plain.db", ref)
    lines = stage.good("dlq", "list").splitlines()
    assert lines[0].split() == ["id", "kind", "source", "tries", "last", "about", "error"]
    assert lines[1].split()[:4] == ["1", "change", "stream-router", "3"]
    assert "ValueError: boom" in lines[1]
    shown = stage.good("dlq", "show", "2")
    assert '"sk": "SENSOR#b"' in shown
    assert "\x1b" not in shown + lines[1]
    assert stage.json("dlq", "show", "2")["record"]["sk"] == "SENSOR#b"
    assert "1 dead letter redriven" in stage.good("dlq", "redrive", "2")
    assert [one["id"] for one in stage.json("dlq", "list")["deadLetters"]] == [1, 3]
    out = stage.good("dlq", "redrive", "--all")
    assert "2 dead letters redriven" in out
    assert "until `interlock serve` is started" in out
    assert stage.good("dlq", "list") == "no dead letters\n"


def test_through_the_server(capsys: Capsys, server: Process) -> None:
    stage = served(capsys, server, "letters")
    bury_one(server.store, "lost")
    [letter] = stage.json("dlq", "list")["deadLetters"]
    file = Stage(capsys, "--store", store_of(server))
    assert file.json("dlq", "show", str(letter["id"])) == letter
    assert stage.json("dlq", "redrive", str(letter["id"])) == {"redriven": 1}
    waited(lambda: stage.json("dlq", "list")["deadLetters"] == [], "the end of the letter")


def test_what_is_wrong_is_said(capsys: Capsys, tmp_path: Path) -> None:
    stage = plain(capsys, tmp_path)
    assert "say --all" in stage.refused("dlq", "redrive", code=2)
    assert "say --all" in stage.refused("dlq", "redrive", "1", "--all", code=2)
    assert "no dead letter 7" in stage.refused("dlq", "show", "7")
    assert "no dead letter 7" in stage.refused("dlq", "redrive", "7")
