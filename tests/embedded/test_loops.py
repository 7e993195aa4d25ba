"""Loops: a thread that fails is called again and named by health, whatever it raised; one that hangs is left behind."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from structlog.testing import capture_logs

from interlock import loops as module
from interlock.loops import Loop, Loops
from tests.api.running import until


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LONGEST_PAUSE", 0.02)


class Work:
    """A step that raises while it is told to, and counts its calls."""

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.called = threading.Semaphore(0)
        self.seconds: float | None = 0.01

    def __call__(self) -> float | None:
        self.called.release()
        if self.error is not None:
            raise self.error
        return self.seconds


@contextmanager
def running(
    work: Callable[[], float | None], *, vital: bool = True, finite: bool = False
) -> Iterator[tuple[Loops, Loop]]:
    loops = Loops()
    loop = loops.add("work", work, vital=vital, finite=finite)
    loop.start()
    try:
        yield loops, loop
    finally:
        loop.stop()


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(1), KeyboardInterrupt(), MemoryError(), GeneratorExit()])
def test_what_fails_is_named_and_called_again(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work()
    monkeypatch.setattr(module, "_MANY_FAILURES", 1_000_000)
    with running(work) as (loops, loop), capture_logs() as logs:
        assert work.called.acquire(timeout=10)
        work.error = error
        until(lambda: loops.degradations() == [f"work failed and was started again ({type(error).__name__})"])
        assert loop.alive
        monkeypatch.setattr(module, "_MANY_FAILURES", 2)
        until(lambda: loops.problems() == [f"work fails again and again ({type(error).__name__})"])
        assert loops.degradations() == []
        work.error = None
        until(lambda: not loops.problems() and not loops.degradations())
    said = [(line["event"], line["loop"]) for line in logs]
    assert said[0] == ("a loop failed; trying again", "work")
    assert said[-1] == ("a loop works again", "work")


def test_what_the_controller_can_do_without_never_makes_it_unready() -> None:
    work = Work()
    work.error = ValueError("x")
    with running(work, vital=False) as (loops, _):
        until(lambda: loops.degradations() == ["work fails again and again (ValueError)"])
        assert loops.problems() == []


def test_health_says_nothing_of_what_the_error_says() -> None:
    work = Work()
    work.error = ValueError("/home/somebody/secret")
    with running(work) as (loops, _):
        until(loops.problems)
        assert "secret" not in str(loops.problems())


def test_work_that_ends_by_itself_is_called_again_unless_it_may_end() -> None:
    work = Work()
    work.seconds = None
    with running(work) as (loops, _):
        until(lambda: loops.problems() == ["work fails again and again (RuntimeError)"])
    ended = Work()
    ended.seconds = None
    with running(ended, finite=True) as (loops, loop):
        until(lambda: not loop.alive)
        assert (loops.problems(), loops.degradations()) == ([], [])


def test_thread_that_died_in_spite_of_all_is_a_problem() -> None:
    died: list[BaseException] = []
    loops, work = Loops(), Work()
    work.error = MemoryError("out of memory")
    loop = loops.add("writer", work, on_failure=died.append)
    loop.start()
    until(lambda: not loop.alive)
    assert died == [work.error]
    assert loops.problems() == ["writer has ended"]
    assert loop.stop()


def test_loop_that_failed_is_sound_after_it_has_run_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that is the whole work never returns: it is sound again once it has run long enough."""
    failed, over = threading.Event(), threading.Event()

    def run() -> None:
        if not failed.is_set():
            failed.set()
            raise ValueError("x")
        over.wait(30)

    loops = Loops()
    loop = loops.add("work", run)
    loop.start()
    until(lambda: loops.degradations() == ["work failed and was started again (ValueError)"])
    monkeypatch.setattr(module, "_SOUND_SECONDS", 0.2)
    until(lambda: not loops.degradations())
    loop.end()
    over.set()
    assert loop.stop()


class Time:
    """The time that loops read, set by the test."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Time:
    found = Time()
    monkeypatch.setattr(module, "time", found)
    return found


def test_loop_that_hangs_is_named_until_it_comes_round(now: Time) -> None:
    within, go_on, after = threading.Event(), threading.Event(), threading.Event()

    def step() -> float:
        if within.is_set():
            after.set()
        within.set()
        assert go_on.wait(30)
        return 0.01

    loops = Loops()
    loop = loops.add("work", step, overdue=600)
    loop.start()
    assert within.wait(30)
    now.seconds += 599
    assert loops.degradations() == []
    now.seconds += 2
    assert loops.degradations() == ["work hangs: it has not come round for 11 minutes"]
    assert loops.problems() == [], "the controller does its work as far as anybody knows"
    go_on.set()
    assert after.wait(30)
    assert loops.degradations() == []
    assert loop.stop()


def test_loop_that_sleeps_between_two_steps_does_not_hang(now: Time) -> None:
    slept = Work()
    slept.seconds = 5000.0
    loops = Loops()
    loop = loops.add("work", slept, overdue=600)
    loop.start()
    until(lambda: slept.called.acquire(blocking=False) and loop._round is None)
    now.seconds += 5000
    assert loops.degradations() == []
    assert loop.stop()


def test_loop_that_waits_for_work_promises_nothing(now: Time) -> None:
    within, go_on = threading.Event(), threading.Event()

    def wait() -> float:
        within.set()
        go_on.wait(30)
        return 0.01

    with running(wait) as (loops, _):
        assert within.wait(30)
        now.seconds += 100_000
        assert loops.degradations() == []
        go_on.set()


def test_step_that_is_the_whole_work_says_that_it_comes_round(now: Time) -> None:
    asked, rounds = threading.Semaphore(0), threading.Semaphore(0)
    loops = Loops()

    def run() -> None:
        while not loop.ending:
            if asked.acquire(timeout=0.01):
                loop.came_round()
                rounds.release()

    loop = loops.add("work", run, overdue=600)
    loop.start()
    asked.release()
    assert rounds.acquire(timeout=30)
    now.seconds += 601
    assert loops.degradations() == ["work hangs: it has not come round for 11 minutes"]
    asked.release()
    assert rounds.acquire(timeout=30)
    assert loops.degradations() == []
    assert loop.stop()


def test_loop_that_pauses_after_a_failure_does_not_hang(now: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FIRST_PAUSE", 30.0)
    monkeypatch.setattr(module, "_LONGEST_PAUSE", 30.0)
    work = Work()
    work.error = ValueError("x")
    loops = Loops()
    loop = loops.add("work", work, overdue=600)
    loop.start()
    until(lambda: loop._round is None and loop.failures)
    now.seconds += 601
    assert loops.degradations() == ["work failed and was started again (ValueError)"]
    assert loop.stop()


def test_ring_in_the_middle_of_a_step_is_not_slept_through() -> None:
    within, go_on, calls = threading.Event(), threading.Event(), threading.Semaphore(0)

    def step() -> float:
        calls.release()
        within.set()
        go_on.wait(10)
        return 600.0

    with running(step) as (_, loop):
        assert within.wait(10)
        loop.ring()
        go_on.set()
        for _ in range(2):
            assert calls.acquire(timeout=10)


def test_loop_that_hangs_is_left_behind_and_named() -> None:
    hang, within = threading.Event(), threading.Event()

    def step() -> None:
        within.set()
        hang.wait(60)

    loop = Loops().add("work", step, stop_seconds=0.05)
    loop.start()
    assert within.wait(10)
    with capture_logs() as logs:
        assert not loop.stop()
    assert [(line["event"], line["loop"]) for line in logs] == [("a loop does not end: it is left behind", "work")]
    hang.set()
    until(lambda: not loop.alive)
    assert loop.stop()


def test_failing_loop_ends_at_once_when_it_is_asked_to() -> None:
    work = Work()
    work.error = ValueError("x")
    with running(work) as (loops, loop):
        until(loops.problems)
        assert loop.stop()
        assert not loop.alive
        assert (loops.problems(), loops.degradations()) == ([], [])


def test_loop_may_ask_itself_to_end() -> None:
    loops = Loops()

    def step() -> float:
        assert loop.stop()
        return 0.0

    loop = loops.add("work", step)
    loop.start()
    until(lambda: not loop.alive)
    assert loops.problems() == []
