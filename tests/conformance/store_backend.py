"""How a test of the store suite gets its store."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager

import pytest

from interlock.model.keys import Table
from interlock.ports.store import (
    Change,
    Key,
    Store,
)
from tests.conformance.manual_clock import START, ManualClock

PK = "PIPELINE#gold"
SECONDS = int(START.timestamp())


def key(sk: str = "SENSOR#a", pk: str = PK, table: Table = Table.CONTROL) -> Key:
    return Key(table, pk, sk)


class StoreBackend(ABC):
    """What a backend says of itself."""

    @abstractmethod
    def open_store(self, clock: ManualClock) -> AbstractContextManager[Store]:
        """A new, empty store on that clock."""

    @abstractmethod
    def changes(self, store: Store) -> list[Change]:
        """Everything its stream has told so far, per partition in the order it tells it."""

    @pytest.fixture
    def clock(self) -> ManualClock:
        return ManualClock()

    @pytest.fixture
    def store(self, clock: ManualClock) -> Iterator[Store]:
        with self.open_store(clock) as store:
            yield store
