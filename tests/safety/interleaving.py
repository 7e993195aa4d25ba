"""Two actors and one store, in an order that is chosen: the second acts just before a certain commit of the first.

A race between two functions of the controller is always the same story: one reads and decides, the other commits
something in between, and the first commits what is no longer true. `InterleavingStore` plays exactly that, so every
suspicion of a race is a test that always comes out the same.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from interlock.control.context import Control
from interlock.ports.store import Conflict, Store, Write
from tests.conformance.wrapped_store import WrappedStore

BeforeCommit = Callable[[Sequence[Write]], None]


class InterleavingStore(WrappedStore):
    """The Store port; `before_commit` is told of every commit just before it is made, and may act meanwhile."""

    def __init__(self, store: Store, before_commit: BeforeCommit) -> None:
        super().__init__(store)
        self._before_commit = before_commit

    def commit(self, writes: Sequence[Write]) -> Conflict | None:
        """Let the other actor go first, then commit."""
        self._before_commit(writes)
        return super().commit(writes)


def interrupted(control: Control, other: Callable[[], object], when: Callable[[Sequence[Write]], bool]) -> Control:
    """The same controller, whose first commit that fits `when` is preceded by what the other actor does, once."""
    done: list[bool] = []

    def before(writes: Sequence[Write]) -> None:
        if not done and when(writes):
            done.append(True)
            other()

    return replace(control, store=InterleavingStore(control.store, before))


def touches(kind: str) -> Callable[[Sequence[Write]], bool]:
    """Does a commit write a record of this kind (`keys.RUN`, `keys.AWAITED` ...)?"""
    return lambda writes: any(write.key.sk.startswith(kind) for write in writes)
