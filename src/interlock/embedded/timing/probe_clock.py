"""Which probe is to be looked at when. The instants are kept in memory; the records in the store decide.

At start, and when its config changes, a probe is due at once: whether it really is, is found when its look is claimed.
So there is nothing that a crash could lose.
"""

import heapq
import threading
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from interlock.control import catalog, probing
from interlock.control.context import Control
from interlock.control.probing import Claim
from interlock.decide.probes import is_dated
from interlock.logs import get_logger
from interlock.model.config import PipelineConfig
from interlock.model.errors import ProbeError
from interlock.model.run import RunStatus
from interlock.ports.probes import Prober

_log = get_logger(__name__)
_TRY_AGAIN: Final = timedelta(seconds=1)


class ProbeEntry:
    """One probe of one pipeline, while its config is in force. `slow`: its last look did not end in time.

    `due` is its place in the queue, None while it is taken.
    """

    __slots__ = ("dated", "due", "key", "live", "pipeline", "slow")

    def __init__(self, pipeline: str, key: str, *, dated: bool) -> None:
        self.pipeline = pipeline
        self.key = key
        self.dated = dated
        self.live = True
        self.slow = False
        self.due: datetime | None = None

    def waits_for(self, at: datetime) -> bool:
        """Is that its place, and not one that it has left?"""
        return self.live and self.due == at


class ProbeClock:
    """All probes in the order in which they are due."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._lock = threading.Lock()
        self._entries: dict[str, list[ProbeEntry]] = {}
        self._heap: list[tuple[datetime, int, ProbeEntry]] = []
        self._count = 0
        self._listeners: list[Callable[[], None]] = []

    def on_changed(self, listener: Callable[[], None]) -> None:
        """Call `listener` when something may be due sooner than it was."""
        self._listeners.append(listener)

    def load(self, found: Iterable[catalog.Stored]) -> None:
        """Begin with every stored pipeline, by the configs that were read of them."""
        if self._control.probes is not None:
            for one in found:
                self._follow(self._control.probes, one.pipeline, one.config)

    def refresh(self, pipeline: str) -> None:
        """A pipeline's config was written or removed: follow it."""
        self.follow(pipeline, catalog.stored(self._control.store, pipeline))

    def follow(self, pipeline: str, found: catalog.Stored | None) -> None:
        """As `refresh`, by a config that was read already."""
        if self._control.probes is not None:
            self._follow(self._control.probes, pipeline, found.config if found is not None else None)

    def _follow(self, prober: Prober, pipeline: str, config: PipelineConfig | None) -> None:
        now = self._control.now()
        wanted = [probe for probe in config.probes if prober.answers(pipeline, probe.key)] if config is not None else []
        if not wanted and pipeline not in self._entries:
            return
        entries = [ProbeEntry(pipeline, probe.key, dated=is_dated(probe)) for probe in wanted]
        with self._lock:
            for old in self._entries.pop(pipeline, []):
                old.live = False
            if entries:
                self._entries[pipeline] = entries
            for entry in entries:
                self._push(entry, now)
        self._ring()

    def run_changed(self, pipeline: str, status: object) -> None:
        """A run was opened: probes that look for its period are due, though others of the same probe are not."""
        dated = [entry for entry in self._entries.get(pipeline, ()) if entry.dated]
        if not dated or status != RunStatus.PENDING:
            return
        now = self._control.now()
        with self._lock:
            for entry in dated:
                self._push(entry, now)
        self._ring()

    def next_at(self) -> datetime | None:
        """When something may be due next."""
        with self._lock:
            self._drop_left()
            return self._heap[0][0] if self._heap else None

    def take(self, now: datetime) -> ProbeEntry | None:
        """The probe that has been due longest; the caller claims its looks, or puts it back."""
        with self._lock:
            self._drop_left()
            if not self._heap or self._heap[0][0] > now:
                return None
            entry = heapq.heappop(self._heap)[2]
            entry.due = None
            return entry

    def claim(self, entry: ProbeEntry) -> Claim | None:
        """A look of a probe that was taken, and then it may have more; None: there is none now, and it is put back."""
        try:
            found = probing.claim_next(self._control, entry.pipeline, entry.key)
        except Exception as error:  # noqa: BLE001 - one probe must not stop the others; it is tried again
            _log.error("a probe could not be claimed", pipeline=entry.pipeline, probe=entry.key, error=str(error))
            found = self._control.now() + _TRY_AGAIN
        if isinstance(found, Claim):
            return found
        if found is not None:
            self.put_back(entry, found)
        return None

    def put_back(self, entry: ProbeEntry, at: datetime) -> None:
        """Look at it again at that instant."""
        with self._lock:
            self._push(entry, at)

    def look_at_all(self, now: datetime) -> int:
        """Take every look that is due, one after the other, right here; how many. For a clock that stands still."""
        done = 0
        while (entry := self.take(now)) is not None:
            while (claim := self.claim(entry)) is not None:
                finish(self._control, claim, self._look(claim))
                done += 1
        return done

    def _look(self, claim: Claim) -> dict[str, Any] | ProbeError:
        prober = self._control.probes
        try:
            return prober.look(claim.request) if prober is not None else ProbeError("there is nobody to ask")
        except ProbeError as error:
            return error

    def _push(self, entry: ProbeEntry, at: datetime) -> None:
        """Give it a place, unless it has an earlier one; a later one that it had is left."""
        if entry.live and (entry.due is None or at < entry.due):
            entry.due = at
            self._count += 1
            heapq.heappush(self._heap, (at, self._count, entry))

    def _drop_left(self) -> None:
        while self._heap and not self._heap[0][2].waits_for(self._heap[0][0]):
            heapq.heappop(self._heap)

    def _ring(self) -> None:
        for listener in self._listeners:
            listener()


def finish(control: Control, claim: Claim, result: dict[str, Any] | ProbeError) -> None:
    """Record how a look ended."""
    if isinstance(result, ProbeError):
        probing.failed(control, claim, str(result))
    else:
        probing.succeeded(control, claim, result)
