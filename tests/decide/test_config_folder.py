"""Absence: removed, still waited for, or the folder is lost. One row each."""

from datetime import UTC, datetime, timedelta

import pytest

from interlock.decide.config_folder import GRACE, Folder, Verdict, judge, settled

MOMENT = timedelta(seconds=9)


def folder(
    absent: int, known: int, *, since: timedelta = GRACE, vanished: int | None = None, problem: str = "", lost: str = ""
) -> Folder:
    return Folder(
        problem=problem,
        files=known - absent,
        known=known,
        absent={f"p{index}": since for index in range(absent)},
        vanished=absent if vanished is None else vanished,
        lost=lost,
    )


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (folder(0, 3), Verdict()),
        (folder(1, 3), Verdict(removed=("p0",))),
        (folder(1, 3, since=MOMENT), Verdict()),
        (folder(2, 3), Verdict(removed=("p0", "p1"))),
        (folder(3, 3), Verdict(lost="it holds no pipeline any more")),
        (folder(1, 1), Verdict(lost="it holds no pipeline any more")),
        (folder(1, 1, since=MOMENT), Verdict()),
        (folder(5, 10), Verdict(removed=("p0", "p1", "p2", "p3", "p4"))),
        (folder(6, 10), Verdict(lost="6 of its 10 pipelines vanished at once")),
        (folder(6, 10, since=MOMENT), Verdict()),
        # Nine are few: a person may remove most of them.
        (folder(8, 9), Verdict(removed=tuple(f"p{index}" for index in range(8)))),
        # Their files are there and name others now: nothing vanished.
        (folder(6, 10, vanished=0), Verdict(removed=tuple(f"p{index}" for index in range(6)))),
        (folder(2, 4, problem="it cannot be read"), Verdict(lost="it cannot be read")),
        (folder(0, 0, problem="it does not exist"), Verdict()),
        # Once lost, all must be back, however few are missing.
        (folder(1, 10, since=MOMENT, lost="it does not exist"), Verdict(lost="it does not exist")),
        (folder(1, 10, lost="it does not exist"), Verdict(lost="it does not exist")),
        (folder(0, 10, lost="it does not exist"), Verdict()),
    ],
)
def test_what_follows_from_absence(found: Folder, verdict: Verdict) -> None:
    assert judge(found) == verdict


def test_at_a_start_nobody_is_replacing_files() -> None:
    assert judge(folder(3, 3, since=timedelta(0)), starting=True) == Verdict(lost="it holds no pipeline any more")
    assert judge(folder(1, 3, since=timedelta(0)), starting=True) == Verdict()


def test_some_are_due_and_some_are_not() -> None:
    absent = {"old": GRACE, "new": MOMENT}
    found = Folder(problem="", files=3, known=5, absent=absent, vanished=2, lost="")
    assert judge(found) == Verdict(removed=("old",))


@pytest.mark.parametrize(
    ("seconds", "counts"), [((), False), ((0, 9), False), ((9.999,), False), ((10,), True), ((0, 3_600), True)]
)
def test_absence_counts_once_any_pipeline_has_been_absent_for_the_grace(
    seconds: tuple[float, ...], counts: bool
) -> None:
    now = datetime(2026, 3, 2, 8, tzinfo=UTC)
    absent = {f"p{index}": now - timedelta(seconds=ago) for index, ago in enumerate(seconds)}
    assert settled(absent, now) is counts
