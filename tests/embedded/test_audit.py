"""The audit trail of a store on disk: chained in every commit, and what was changed afterwards is found."""

import re
import sqlite3
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from interlock.control.context import Auditing, Settings
from interlock.embedded.audit.chain import append, next_hash, start_of_day
from interlock.embedded.audit.trail import AuditTrail, AuditWanted
from interlock.embedded.audit.verify import AuditProblem, read_anchor, snapshot, verify
from interlock.embedded.engine import Engine
from interlock.embedded.sqlite.database import Database
from interlock.embedded.sqlite.store import SqliteStore
from interlock.model.audit import ACTIONS, Actor, ActorKind, AuditAction, AuditNote
from interlock.model.errors import InvalidValueError, StoreError
from interlock.model.keys import Table
from interlock.ports.store import Conflict, Delete, Key, Missing, Put
from tests.conformance.manual_clock import ManualClock

ANN = Actor(ActorKind.TOKEN, "ann", "192.0.2.7")
BOB = Actor(ActorKind.OS_USER, "bob", os_user="bob")
DAY = timedelta(days=1)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def database(tmp_path: Path, clock: ManualClock) -> Iterator[Database]:
    with Database.open(tmp_path / "interlock.db", clock=clock, inline=True) as database:
        yield database


def note(n: int, *, actor: Actor = ANN, pipeline: str = "gold") -> AuditNote:
    return AuditNote(action=AuditAction.RERUN_REQUESTED, actor=actor, pipeline=pipeline, subject=f"change {n}")


def fill(database: Database, clock: ManualClock, *, days: int = 3, each: int = 4) -> AuditTrail:
    """Some days with some records; the first is number 1."""
    trail = AuditTrail(database)
    for day in range(days):
        clock.advance(days=1 if day else 0)
        for n in range(each):
            trail.record(note(day * each + n + 1))
    return trail


def problems(database: Database, *, anchor: str = "", latest_only: bool = False) -> list[AuditProblem]:
    assert database.path is not None
    with snapshot(database.path) as connection:
        return verify(connection, anchor=anchor, latest_only=latest_only).problems


def alter(database: Database, *statements: str) -> None:
    """What somebody does who can write to the file, and does not ask the controller."""
    assert database.path is not None
    connection = sqlite3.connect(database.path)
    try:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    finally:
        connection.close()


def days_of(database: Database) -> list[str]:
    return [day for (day,) in database.read("SELECT day FROM audit_days ORDER BY day")]


# ---------------------------------------------------------------------------------------------------- what is kept


def test_a_note_is_kept_with_the_write_it_belongs_to_or_not_at_all(database: Database, clock: ManualClock) -> None:
    store, key = SqliteStore(database, clock), Key(Table.CONTROL, "p", "s")
    assert store.commit([Put(key, {"v": 1}, Missing(), note(1))]) is None
    assert store.commit([Put(key, {"v": 2}, Missing(), note(2))]) == Conflict((0,))
    assert store.commit([Delete(key, None, note(3))]) is None
    assert store.commit([Delete(key, None, note(4))]) is None
    found = AuditTrail(database).read(AuditWanted())
    assert [one.subject for one in found] == ["change 3", "change 1"], "what changes nothing is no record"
    assert problems(database) == []


def test_what_an_item_was_and_is_comes_from_the_commit_itself(database: Database, clock: ManualClock) -> None:
    store, key = SqliteStore(database, clock), Key(Table.CONTROL, "p", "s")
    compared = AuditNote(action=AuditAction.SENSOR_WRITTEN, actor=ANN, compared={"digest": "_digest"})
    for digest in ("a", "b"):
        store.commit([Put(key, {"_digest": digest, "data": {}}, note=compared)])
    store.commit([Delete(key, note=compared)])
    found = AuditTrail(database).read(AuditWanted())
    assert [(one.before, one.after) for one in reversed(found)] == [
        ({}, {"digest": "a"}),
        ({"digest": "a"}, {"digest": "b"}),
        ({"digest": "b"}, {}),
    ]


def test_work_that_fails_leaves_no_record(database: Database) -> None:
    trail = AuditTrail(database)
    trail.record(note(1))

    def fails(connection: sqlite3.Connection) -> None:
        append(connection, [note(2)], 0)
        raise InvalidValueError("no")

    with pytest.raises(InvalidValueError):
        database.write(fails)
    trail.record(note(3))
    assert [one.seq for one in trail.read(AuditWanted())] == [2, 1]
    assert problems(database) == []


def test_a_chain_a_day_each_on_the_last(database: Database, clock: ManualClock) -> None:
    trail = fill(database, clock, days=2, each=2)
    rows = database.read("SELECT day, record, hash FROM audit ORDER BY seq")
    head = b""
    for day in days_of(database):
        head = start_of_day(day, head)
        for _, text, hash_ in (row for row in rows if row[0] == day):
            head = next_hash(head, text.encode())
            assert head == hash_
    found = trail.head()
    assert found is not None
    assert str(found) == f"4:{head.hex()}"


def test_a_clock_that_is_set_back_goes_on_with_the_open_day(database: Database, clock: ManualClock) -> None:
    trail = fill(database, clock, days=2, each=1)
    clock.advance(days=-1)
    trail.record(note(3))
    assert len(days_of(database)) == 2
    assert problems(database) == []


def test_hundreds_of_changes_at_once_are_in_one_chain(tmp_path: Path, clock: ManualClock) -> None:
    """By threads that share the writer, and by another process's connection in between."""
    path = tmp_path / "interlock.db"
    with Database.open(path, clock=clock) as database, Database.open(path, clock=clock, inline=True) as second:
        store, trails = SqliteStore(database, clock), [AuditTrail(database), AuditTrail(second)]

        def work(worker: int) -> None:
            for n in range(40):
                key = Key(Table.CONTROL, f"p{worker}", f"s{n}")
                store.commit([Put(key, {"n": n}, note=note(n, pipeline=f"p{worker}"))])
                trails[0].submit(note(n, actor=BOB))

        threads = [threading.Thread(target=work, args=(worker,)) for worker in range(8)]
        for thread in threads:
            thread.start()
        for n in range(20):
            trails[1].record(note(n))
        for thread in threads:
            thread.join()
        database.write(lambda _: None)
        found = trails[0].read(AuditWanted(), limit=10_000)
        assert len(found) == 8 * 40 * 2 + 20
        assert problems(database) == []


# ------------------------------------------------------------------------------------------------------- asking


def test_records_are_found_by_what_they_are_about(database: Database, clock: ManualClock) -> None:
    trail = AuditTrail(database)
    trail.record(note(1), note(2, actor=BOB), note(3, pipeline="silver"))
    clock.advance(days=1)
    later = clock.now()
    trail.record(AuditNote(action=AuditAction.TOKEN_REVOKED, actor=BOB, subject="x"))

    def found(**wanted: object) -> list[int]:
        return [one.seq for one in trail.read(AuditWanted(**wanted))]  # type: ignore[arg-type]  # as given

    assert found() == [4, 3, 2, 1]
    assert found(pipeline="gold") == [2, 1]
    assert found(actor="bob") == [4, 2]
    assert found(actor="bob", pipeline="gold") == [2]
    assert found(actions=(AuditAction.TOKEN_REVOKED,)) == [4]
    assert found(since=later) == [4]
    assert found(since=later - timedelta(minutes=1)) == [4]
    assert found(since=later - timedelta(hours=30)) == [4, 3, 2, 1]
    assert found(since=later + timedelta(days=9)) == []
    assert found(until=later) == [3, 2, 1]


def test_pages_follow_on_each_other(database: Database, clock: ManualClock) -> None:
    trail = fill(database, clock, days=2, each=5)
    pages, before = list[list[int]](), 2**62
    while page := trail.read(AuditWanted(), before=before, limit=3):
        pages.append([one.seq for one in page])
        before = page[-1].seq
    assert pages == [[10, 9, 8], [7, 6, 5], [4, 3, 2], [1]]


def test_questions_are_answered_by_an_index(database: Database) -> None:
    for column in ("pipeline", "actor"):
        sql = f"EXPLAIN QUERY PLAN SELECT record FROM audit WHERE seq < ? AND {column} = ? ORDER BY seq DESC LIMIT 10"
        plan = " ".join(str(row[-1]) for row in database.read(sql, (9, "x")))
        assert f"audit_by_{column}" in plan
        assert "TEMP B-TREE" not in plan


def test_every_action_is_documented() -> None:
    assert set(ACTIONS) == set(AuditAction)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)+", one.value) for one in AuditAction)


# ----------------------------------------------------------------------------------------- what was done to it


Wrong = tuple[str, tuple[str, ...], int, str]

_SWAP = (
    "UPDATE audit SET seq = 1000 WHERE seq = 6",
    "UPDATE audit SET seq = 6 WHERE seq = 7",
    "UPDATE audit SET seq = 7 WHERE seq = 1000",
    "UPDATE sqlite_sequence SET seq = 12 WHERE name = 'audit'",
)
_END_UNTOUCHED = "UPDATE sqlite_sequence SET seq = 12 WHERE name = 'audit'"
_ALTERED = "UPDATE audit SET record = replace(record, 'change 6', 'change 5') WHERE seq = 6"
DAMAGE: list[Wrong] = [
    ("an altered record", (_ALTERED,), 6, "altered"),
    ("an altered hash", ("UPDATE audit SET hash = zeroblob(32) WHERE seq = 6",), 6, "altered"),
    ("another actor's column", ("UPDATE audit SET actor = 'bob' WHERE seq = 6",), 6, "its row says"),
    ("another time's column", ("UPDATE audit SET at = at - 1 WHERE seq = 6",), 6, "its row says"),
    ("another day's column", ("UPDATE audit SET day = '2000-01-01' WHERE seq = 6",), 6, "its row says"),
    ("no record at all", ("UPDATE audit SET record = '{}' WHERE seq = 6",), 6, "altered"),
    ("reordered records", _SWAP, 6, "altered or moved"),
    ("a removed record", ("DELETE FROM audit WHERE seq = 6",), 6, "missing"),
    ("the last record of a day", ("DELETE FROM audit WHERE seq = 8",), 8, "missing"),
    ("the last record of all", ("DELETE FROM audit WHERE seq = 12",), 12, "missing"),
    (
        "the last record and its day's end",
        (
            "DELETE FROM audit WHERE seq = 12",
            "UPDATE audit_days SET last_seq = 11, head = (SELECT hash FROM audit WHERE seq = 11) WHERE last_seq = 12",
        ),
        12,
        "are missing, from the end of",
    ),
    (
        "a removed day",
        ("DELETE FROM audit WHERE seq BETWEEN 5 AND 8", "DELETE FROM audit_days WHERE first_seq = 5"),
        5,
        "records 5 to 8 are missing",
    ),
    (
        "the removed last day",
        ("DELETE FROM audit WHERE seq > 8", "DELETE FROM audit_days WHERE first_seq = 9"),
        9,
        "are missing, from the end of",
    ),
    (
        "the removed first day",
        ("DELETE FROM audit WHERE seq < 5", "DELETE FROM audit_days WHERE first_seq = 1"),
        1,
        "no record says that they were dropped",
    ),
    ("everything", ("DELETE FROM audit", "DELETE FROM audit_days"), 1, "records 1 to 12 are missing"),
    (
        "an added record",
        (
            "INSERT INTO audit SELECT 13, day, at, action, pipeline, actor, record, hash FROM audit WHERE seq = 12",
            _END_UNTOUCHED,
        ),
        13,
        "belongs to no day",
    ),
    ("a turned back counter", ("UPDATE sqlite_sequence SET seq = 3 WHERE name = 'audit'",), 4, "counter"),
    ("a day's other head", ("UPDATE audit_days SET head = zeroblob(32) WHERE first_seq = 5",), 8, "ended with"),
    ("a day's other start", ("UPDATE audit_days SET previous = zeroblob(32) WHERE first_seq = 5",), 5, "follow on"),
]


@pytest.mark.parametrize(("statements", "seq", "what"), [one[1:] for one in DAMAGE], ids=[one[0] for one in DAMAGE])
def test_what_was_changed_is_found(
    database: Database, clock: ManualClock, statements: tuple[str, ...], seq: int, what: str
) -> None:
    fill(database, clock)
    assert problems(database) == []
    alter(database, *statements)
    found = problems(database)
    assert found, "nothing was found"
    assert (found[0].seq, what in found[0].what) == (seq, True), found


def test_a_removed_end_is_found_however_much_comes_after_it(database: Database, clock: ManualClock) -> None:
    trail = fill(database, clock)
    alter(
        database,
        "DELETE FROM audit WHERE seq > 10",
        "UPDATE audit_days SET last_seq = 10, head = (SELECT hash FROM audit WHERE seq = 10) WHERE last_seq = 12",
    )
    for n in range(20):
        trail.record(note(n))
    found = problems(database)
    assert (found[0].seq, found[0].what) == (11, "it is missing")


def test_each_changed_day_is_named(database: Database, clock: ManualClock) -> None:
    fill(database, clock)
    alter(database, "DELETE FROM audit WHERE seq IN (2, 3, 10)")
    assert [(one.day, one.seq) for one in problems(database)] == [(days_of(database)[0], 2), (days_of(database)[2], 10)]


def test_the_latest_day_alone_is_a_quick_look(database: Database, clock: ManualClock) -> None:
    fill(database, clock)
    alter(database, _ALTERED)
    assert problems(database, latest_only=True) == []
    alter(database, "DELETE FROM audit WHERE seq = 11")
    assert [one.seq for one in problems(database, latest_only=True)] == [11]


def _made_anew(database: Database) -> None:
    """What somebody does who knows all of this: another record, and every hash after it."""
    assert database.path is not None
    connection = sqlite3.connect(database.path)
    connection.execute(_ALTERED)
    head = b""
    for day, first, last in connection.execute("SELECT day, first_seq, last_seq FROM audit_days").fetchall():
        connection.execute("UPDATE audit_days SET previous = ? WHERE day = ?", (head, day))
        head = start_of_day(day, head)
        rows = connection.execute("SELECT seq, record FROM audit WHERE seq BETWEEN ? AND ?", (first, last)).fetchall()
        for seq, text in rows:
            head = next_hash(head, text.encode())
            connection.execute("UPDATE audit SET hash = ? WHERE seq = ?", (head, seq))
        connection.execute("UPDATE audit_days SET head = ? WHERE day = ?", (head, day))
    connection.commit()
    connection.close()


def test_a_trail_made_anew_is_found_by_a_head_that_was_kept_elsewhere(database: Database, clock: ManualClock) -> None:
    trail = fill(database, clock)
    kept = trail.head()
    assert kept is not None
    trail.record(note(13))
    assert problems(database, anchor=str(kept)) == []
    assert problems(database, anchor=kept.hash) == []
    _made_anew(database)
    assert problems(database) == [], "this is what nobody can tell from the store alone"
    assert [one.seq for one in problems(database, anchor=str(kept))] == [12]
    assert "no record has the hash" in problems(database, anchor=kept.hash)[0].what
    assert "is missing" in problems(database, anchor=f"99:{kept.hash}")[0].what


@pytest.mark.parametrize("text", ["", "12", "12:abc", "x:" + "0" * 64, "0" * 63])
def test_what_is_no_head_is_refused(text: str) -> None:
    with pytest.raises(InvalidValueError, match="is not a head"):
        read_anchor(text)


def test_a_record_that_cannot_be_read_says_so(database: Database, clock: ManualClock) -> None:
    trail = fill(database, clock, days=1)
    alter(database, "UPDATE audit SET record = 'x' WHERE seq = 2")
    with pytest.raises(StoreError, match="audit verify"):
        trail.read(AuditWanted())


# ------------------------------------------------------------------------------------------------------- dropping


def pruned(trail: AuditTrail, kept: timedelta) -> int:
    count = 0
    while gone := trail.prune(kept):
        count += gone
    return count


def test_old_days_go_whole_and_on_the_record(database: Database, clock: ManualClock) -> None:
    trail = fill(database, clock, days=4)
    head = database.read("SELECT head FROM audit_days ORDER BY day")[1][0]
    clock.advance(hours=1)
    assert pruned(trail, DAY) == 8
    assert pruned(trail, DAY) == 0
    assert [one.seq for one in trail.read(AuditWanted())] == [17, 16, 15, 14, 13, 12, 11, 10, 9]
    said = trail.read(AuditWanted(actions=(AuditAction.AUDIT_PRUNED,)))[0]
    assert said.actor.kind is ActorKind.CONTROLLER
    assert said.before == {"day": said.subject, "seq": 8, "hash": head.hex()}
    assert problems(database) == []
    clock.advance(days=2)
    assert pruned(trail, DAY) == 9
    assert problems(database) == []
    assert len(days_of(database)) == 1


def test_the_sweep_of_a_controller_drops_them(database: Database, clock: ManualClock) -> None:
    trail = fill(database, clock, days=5)
    settings = Settings(audit=Auditing(keep=2 * DAY))
    engine = Engine(database, clock, {}, new_id=lambda: "x", settings=settings)
    while engine.sweep():
        pass
    assert min(one.seq for one in trail.read(AuditWanted())) == 9
    assert problems(database) == []


def test_more_days_than_were_dropped_by_the_controller_are_missed(database: Database, clock: ManualClock) -> None:
    trail = fill(database, clock, days=4)
    pruned(trail, 2 * DAY)
    assert problems(database) == []
    alter(database, "DELETE FROM audit WHERE seq < 9", "DELETE FROM audit_days WHERE first_seq = 5")
    assert "no record says" in problems(database)[0].what
    assert problems(database, anchor=f"2:{'0' * 64}")[-1].what.startswith("it was dropped with its day")


def test_a_crash_between_the_days_and_their_records_is_no_gap(
    database: Database, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    trail = fill(database, clock, days=3)
    monkeypatch.setattr("interlock.embedded.audit.trail._DROPPED_AT_ONCE", 3)
    assert trail.prune(DAY / 4) == 3
    assert problems(database) == [], "the rest of the records is only waiting to be removed"
    assert min(one.seq for one in trail.read(AuditWanted())) == 9
    assert pruned(trail, DAY / 4) == 5
    assert problems(database) == []


def test_days_whose_rows_somebody_removed_are_not_taken_for_old(database: Database, clock: ManualClock) -> None:
    trail = fill(database, clock)
    alter(database, "DELETE FROM audit_days")
    assert pruned(trail, timedelta(days=400)) == 0, "the controller must not finish an attacker's work"
    assert len(trail.read(AuditWanted())) == 12
