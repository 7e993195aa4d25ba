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
