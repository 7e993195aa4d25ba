"""Records of a DynamoDB stream, handed to a handler in batches (SPEC 13).

A batch that fails is halved until the record that fails by itself is found; that record is tried three times, then goes
whole to the dead-letter queue, and the rest goes on. A record that is none of ours goes there at once. While a service
is down nothing is given up: the lowest sequence number that was not handled is reported, and the event source mapping
comes again with it.

The stream says when a write was made in whole seconds, rounded down. Taken as it is, a write could look older than a
completion that it followed, and count as data the job has seen. So a change is dated at the end of that second, or now
if that is sooner: never before it happened.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from interlock.aws.dead_letters import Letter
from interlock.aws.dynamodb.changes import change_of
from interlock.logs import get_logger
from interlock.model.errors import AccessError, StoreError, StoreUnavailableError, UnavailableError
from interlock.model.keys import Table
from interlock.model.times import epoch_millis
from interlock.ports.clock import Clock
from interlock.ports.store import Change

MAX_TRIES: Final = 3
SERVICE_DOWN: Final = (UnavailableError, StoreUnavailableError, AccessError)
"""What fails because of a service or a missing right, whatever the record: nothing is given up for it."""
_WITHIN_A_SECOND: Final = 999
_log = get_logger(__name__)

Handler = Callable[[Sequence[Change]], object]
Bury = Callable[[Table, Letter], None]


class _Entry(msgspec.Struct, frozen=True):
    """A record and what it says."""

    record: Mapping[str, Any]
    change: Change


class _StoppedError(Exception):
    """A service is down: which record could not be handled."""

    def __init__(self, entry: _Entry) -> None:
        super().__init__("a service is down")
        self.entry = entry


class StreamBatch:
    """Delivers the records of one invocation. `bury` puts a record that was given up on into its dead-letter queue."""

    def __init__(self, tables: Mapping[Table, str], clock: Clock, bury: Bury, function: str = "") -> None:
        self._tables = {name: table for table, name in tables.items()}
        self._clock = clock
        self._bury = bury
        self._function = function

    def deliver(self, records: Sequence[Mapping[str, Any]], handler: Handler) -> dict[str, Any]:
        """Handle the records in their order; what the event source mapping is to be answered."""
        waiting: list[_Entry] = []
        try:
            for record in records:
                table = self._table(record)
                try:
                    waiting.append(_Entry(record, dated(change_of(record, table), self._clock.now())))
                except StoreError as error:
                    # Those before it first: what is reported as failed brings everything after it again.
                    self._deliver(waiting, handler)
                    waiting = []
                    self._refuse(record, table, error)
            self._deliver(waiting, handler)
        except _StoppedError as stopped:
            return {"batchItemFailures": [{"itemIdentifier": _sequence_number(stopped.entry.record)}]}
        return {"batchItemFailures": []}

    def _refuse(self, record: Mapping[str, Any], table: Table, error: StoreError) -> None:
        """A record that is none of ours is a dead letter with its key."""
        _log.error("not-a-record", table=table.value, error=str(error))
        self._give_up(table, record, error, 1, self._clock.now())

    def _table(self, record: Mapping[str, Any]) -> Table:
        name = table_name(str(record.get("eventSourceARN", "")))
        if name not in self._tables:
            known = ", ".join(sorted(self._tables))
            raise StoreError(f"a record of the table {name!r}, which is none of this environment: it has {known}")
        return self._tables[name]

    def _deliver(self, entries: Sequence[_Entry], handler: Handler) -> None:
        if not entries:
            return
        if len(entries) == 1:
            self._deliver_one(entries[0], handler)
            return
        try:
            handler([entry.change for entry in entries])
        except SERVICE_DOWN as error:
            raise _stopped(entries[0], error) from error
        except Exception as error:  # noqa: BLE001 - its record is found below, and says why
            _log.warning("batch-failed", records=len(entries), error=_shown(error))
            half = len(entries) // 2
            self._deliver(entries[:half], handler)
            self._deliver(entries[half:], handler)

    def _deliver_one(self, entry: _Entry, handler: Handler) -> None:
        first = self._clock.now()
        for turn in range(1, MAX_TRIES + 1):
            try:
                handler([entry.change])
                return
            except SERVICE_DOWN as error:
                raise _stopped(entry, error) from error
            except Exception as error:  # noqa: BLE001 - a dead letter keeps it, with its record
                change = entry.change
                _log.error("record-failed", table=change.table, pk=change.pk, sk=change.sk, error=_shown(error))
                if turn == MAX_TRIES:
                    self._give_up(change.table, entry.record, error, turn, first)

    def _give_up(self, table: Table, record: Mapping[str, Any], error: Exception, tries: int, first: datetime) -> None:
        letter = Letter(
            table=table.value,
            function=self._function,
            record=dict(record),
            error=_shown(error),
            tries=tries,
            first_at=first,
            last_at=self._clock.now(),
        )
        try:
            self._bury(table, letter)
        except SERVICE_DOWN as failure:
            # Never silently lost: the mapping brings it again.
            raise _stopped(_Entry(record, _nothing(table)), failure) from failure


def dated(change: Change, now: datetime) -> Change:
    """The change with the latest instant at which it can have been made, within the second that the stream tells."""
    return msgspec.structs.replace(
        change, at=max(change.at, min(change.at - change.at % 1000 + _WITHIN_A_SECOND, epoch_millis(now)))
    )


def table_name(stream_arn: str) -> str:
    """The table of `arn:aws:dynamodb:REGION:ACCOUNT:table/NAME/stream/LABEL`; "" if it is no such ARN."""
    parts = stream_arn.split(":table/", 1)
    return parts[1].split("/", 1)[0] if len(parts) == 2 else ""


def _sequence_number(record: Mapping[str, Any]) -> str:
    return str(record.get("dynamodb", {}).get("SequenceNumber", ""))


def _stopped(entry: _Entry, error: Exception) -> _StoppedError:
    _log.error("service-down", table=entry.change.table, pk=entry.change.pk, error=_shown(error))
    return _StoppedError(entry)


def _nothing(table: Table) -> Change:
    return Change(0, table, "", "", 0, None)


def _shown(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
