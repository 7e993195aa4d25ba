"""The one thread that sees processes end: it holds the right one, and no trouble with one blinds it to the others."""

import subprocess
import threading
from collections.abc import Iterator

import pytest

from interlock.jobs.command.watch import ExitWatch
from interlock.loops import Loops
from tests.jobs.command.trials import LONG


class Answers:
    """A `settle` that answers in turn, the last time with None, and says when it did."""

    def __init__(self, **answers: list[int | Exception]) -> None:
        self.calls: list[str] = []
        self.over = threading.Event()
        self._answers = answers

    def __call__(self, run_id: str) -> int | None:
        self.calls.append(run_id)
        left = self._answers.get(run_id)
        if not left:
            self.over.set()
            return None
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that ends when its input is closed."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        yield process


def test_an_error_in_one_run_leaves_the_others_watched() -> None:
    answers = Answers(bad=[RuntimeError("the disk is gone")])
    watch = ExitWatch(answers)
    watch.add("bad")
    watch.add("good")
    assert answers.over.wait(LONG)
    watch.close()
    assert answers.calls.count("good") == 1


def test_a_process_is_held_only_if_it_is_still_awaited_after_taking_hold_of_it(
    sleeper: "subprocess.Popen[bytes]",
) -> None:
    """Its number could have been given to another process before: then nobody awaits it any more."""
    answers = Answers(run=[sleeper.pid])
    watch = ExitWatch(answers)
    watch.add("run")
    assert answers.over.wait(LONG)
    watch.close()
    assert answers.calls == ["run", "run"]
    assert sleeper.poll() is None


def test_a_change_of_the_awaited_process_is_looked_at_again(sleeper: "subprocess.Popen[bytes]") -> None:
    answers = Answers(run=[sleeper.pid, 1, 0])
    watch = ExitWatch(answers)
    watch.add("run")
    assert answers.over.wait(LONG)
    watch.close()
    assert answers.calls == ["run"] * 4


def test_the_end_of_a_strangers_process_is_seen(sleeper: "subprocess.Popen[bytes]") -> None:
    answers = Answers(run=[sleeper.pid, sleeper.pid])
    watch = ExitWatch(answers)
    watch.add("run")
    assert sleeper.stdin is not None
    sleeper.stdin.close()
    assert answers.over.wait(LONG)
    watch.close()


def test_after_closing_nothing_is_watched() -> None:
    answers = Answers()
    watch = ExitWatch(answers)
    watch.close()
    watch.add("run")
    assert answers.calls == []
    assert not [thread for thread in threading.enumerate() if thread.name == "command-exits"]


def test_whoever_hears_of_an_end_may_close_the_watch() -> None:
    called = threading.Event()
    threads: list[threading.Thread] = []

    def close(_run_id: str) -> None:
        threads.append(threading.current_thread())
        watch.close()
        called.set()

    loops = Loops()
    watch = ExitWatch(close, loops)
    watch.add("run")
    assert called.wait(LONG)
    threads[0].join(LONG)
    assert not threads[0].is_alive()
    assert loops.degradations() == []
