"""Turns: one thread at a time, in the order they came, and nobody waits for ever."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from interlock.embedded import turns as module
from interlock.embedded.turns import Turns

WAIT = 20.0


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE", WAIT)


@pytest.mark.usefixtures("patient")
def test_one_thread_at_a_time_has_the_turn() -> None:
    turns, inside, most = Turns(), 0, 0

    def work(_: int) -> None:
        nonlocal inside, most
        with turns.taken():
            inside += 1
            most = max(most, inside)
            threading.Event().wait(0.001)
            inside -= 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(40)))
    assert most == 1
    assert not turns.mine


@pytest.mark.usefixtures("patient")
def test_who_waits_for_something_lets_another_have_the_turn_and_takes_it_again() -> None:
    turns, been = Turns(), threading.Event()

    def other() -> None:
        with turns.taken():
            been.set()

    with turns.taken():
        thread = threading.Thread(target=other)
        thread.start()
        with turns.given_up():
            assert been.wait(WAIT)
            with turns.given_up():
                pass
        assert turns.mine
        thread.join(WAIT)
    assert not turns.mine


def test_who_does_not_get_the_turn_in_time_goes_on_without() -> None:
    turns, went_on, release = Turns(), threading.Event(), threading.Event()

    def hog() -> None:
        with turns.taken():
            went_on.wait(WAIT)
            release.wait(WAIT)

    thread = threading.Thread(target=hog)
    thread.start()
    while not turns._taken:
        threading.Event().wait(0.001)
    with turns.taken():
        assert not turns.mine
        went_on.set()
    release.set()
    thread.join(WAIT)
    with turns.taken():
        assert turns.mine


def test_a_turn_that_was_given_up_for_good_is_not_given_up_twice() -> None:
    turns = Turns()
    with turns.taken():
        turns.give_up()
        with turns.taken():
            assert turns.mine
    assert not turns.mine


def test_a_turn_within_a_turn_is_the_same_turn() -> None:
    turns = Turns()
    with turns.taken(), turns.taken():
        assert turns.mine
    assert not turns.mine
