"""A shell without a network: does a flow's steps from a script, and remembers what was asked of it."""

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from interlock.client.retries import RetryPolicy
from interlock.client.settings import Settings
from interlock.client.steps import Came, Flow, Give, HangUp, Pause, Reply, Step

T = TypeVar("T")

URL = "http://interlock.test"


class Script:
    """Answers each Send, Listen and NextChunk with the next of what it was given. Time passes by pauses alone."""

    def __init__(self, *came: Came) -> None:
        self.came = list(came)
        self.steps: list[Step] = []
        self.time = 0.0

    def settings(self, retries: int = 3) -> Settings:
        """The settings of a client whose chance is always the highest, so that delays are exact."""
        policy = RetryPolicy(retries=retries, first_delay=1.0, longest_delay=8.0)
        return Settings(url=URL, retry=policy, random=lambda: 1.0, monotonic=lambda: self.time)

    def perform(self, flow: Flow[T]) -> T:
        """Do a flow to its end."""
        came: Came = None
        while True:
            try:
                step = flow.send(came)
            except StopIteration as end:
                result: T = end.value
                return result
            came = self._do(step)

    def take(self, flow: Flow[None], count: int) -> list[Any]:
        """The first values that a flow gives."""
        given: list[Any] = []
        came: Came = None
        while len(given) < count:
            step = flow.send(came)
            if isinstance(step, Give):
                given.append(step.value)
                came = None
            else:
                came = self._do(step)
        flow.close()
        return given

    def _do(self, step: Step) -> Came:
        self.steps.append(step)
        if isinstance(step, Pause):
            self.time += step.seconds
            return None
        if isinstance(step, HangUp):
            return None
        assert self.came, f"nothing is left to answer {step} with"
        return self.came.pop(0)

    def pauses(self) -> list[float]:
        """How long was waited, each time."""
        return [step.seconds for step in self.steps if isinstance(step, Pause)]

    def of(self, kind: type[T]) -> list[T]:
        """The steps of a kind."""
        return [step for step in self.steps if isinstance(step, kind)]


def ok(value: object) -> Reply:
    """An answer with a JSON body."""
    return Reply(200, {}, msgspec.json.encode(value))


def refused(status: int, detail: str = "", headers: Iterable[tuple[str, str]] = ()) -> Reply:
    """A problem document."""
    body = {"type": "about:blank", "title": "Problem", "status": status, "detail": detail}
    return Reply(status, dict(headers), msgspec.json.encode(body))
