"""Routing again what the streams may have lost: they forget after 24 hours, whether a function has read them or not.

What is in the tables is handed to the functions as the records of a stream: configs, sensors, markers, runs and
requests, the job log, and the events. A change is a hint, so a record that was routed before does nothing new; an alert
that was sent is not sent again. The bus may bring an event twice, as it may at any time.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, Final

import msgspec

from interlock.aws.dynamodb import attributes
from interlock.aws.dynamodb.attributes import PK, SK
from interlock.aws.names import Function
from interlock.aws.operations.environment import Environment
from interlock.aws.operations.invoking import call_function
from interlock.control import catalog, config_files, records
from interlock.model import keys
from interlock.model.errors import UnavailableError
from interlock.model.keys import Table
from interlock.model.times import epoch_millis, parse_instant
from interlock.ports.store import Record, Store

_BATCH: Final = 10
_PAGE: Final = 500
INFRASTRUCTURE: Final = "_infrastructure"
_ROUTED: Final = (keys.CONFIG, keys.SENSOR, keys.MARKER, keys.RUN, keys.SLA, keys.RERUN_REQUEST)
"""What of a pipeline's control partition sets something in motion, in the order in which that makes sense."""
_TIMES: Final = (records.RECEIVED, "updatedAt", "requestedAt", "at")


class Replayed(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How many records of each kind were handed over."""

    pipelines: int = 0
    control: int = 0
    job_log: int = 0
    events: int = 0


class Replay:
    """One replay: what was written in since <= t < until."""

    def __init__(self, environment: Environment, store: Store, since: datetime, until: datetime) -> None:
        self._environment = environment
        self._store = store
        self._since = since
        self._until = until

    def run(self, pipelines: Sequence[str] = (), progress: Callable[[str], None] = lambda _: None) -> Replayed:
        """Hand everything over, pipeline by pipeline (none named: all); `progress` is called with the name of each."""
        total = Replayed()
        if not pipelines:
            self._deliver(Function.STREAM_ROUTER, self._store.query(Table.CONTROL, keys.CALENDARS))
        for name in pipelines or self._everybody():
            progress(name)
            total = self._pipeline(name, total)
        return total

    def _everybody(self) -> list[str]:
        """Every pipeline, those that are gone and still run, and the events that are no pipeline's."""
        names = [*self._store.pipelines(), *catalog.retired(self._store), INFRASTRUCTURE, config_files.NOBODY]
        return list(dict.fromkeys(names))

    def _pipeline(self, name: str, before: Replayed) -> Replayed:
        pk = keys.pipeline_pk(name)
        routed = [one for prefix in _ROUTED for one in self._within(Table.CONTROL, pk, prefix)]
        logged = list(self._within(Table.JOBLOG, pk, keys.JOB))
        return Replayed(
            pipelines=before.pipelines + 1,
            control=before.control + self._deliver(Function.STREAM_ROUTER, routed),
            job_log=before.job_log + self._deliver(Function.STREAM_ROUTER, logged),
            events=before.events + self._deliver(Function.EVENT_SINK, self._events(pk)),
        )

    # ------------------------------------------------------------------------------------------------- reading

    def _within(self, table: Table, pk: str, prefix: str) -> Iterator[Record]:
        """The records of a kind that were written then; one that does not say when counts."""
        after = None
        while True:
            rows = self._store.query(table, pk, prefix, after=after, limit=_PAGE)
            for row in rows:
                if row.key.sk.startswith(keys.CONFIG_VERSION):
                    continue
                at = written_at(row)
                if at is None or self._since <= at < self._until:
                    yield row
            if len(rows) < _PAGE:
                return
            after = rows[-1].key.sk

    def _events(self, pk: str) -> Iterator[Record]:
        after, end = f"{epoch_millis(self._since):013d}", f"{epoch_millis(self._until):013d}"
        while True:
            rows = self._store.query(Table.EVENTS, pk, after=after, limit=_PAGE)
            for row in rows:
                if not row.key.sk[:1].isdigit() or row.key.sk >= end:
                    return  # threads and deliveries lie behind the events
                yield row
            if len(rows) < _PAGE:
                return
            after = rows[-1].key.sk

    # ----------------------------------------------------------------------------------------------- handing over

    def _deliver(self, function: Function, rows: Iterable[Record]) -> int:
        count = 0
        source = iter(rows)
        while batch := list(islice(source, _BATCH)):
            event = {"Records": [self._record(row, count + at) for at, row in enumerate(batch)]}
            said = call_function(self._environment, function, event)
            if isinstance(said, dict) and said.get("batchItemFailures"):
                raise UnavailableError(
                    f"{self._environment.address}: the {function} could not route {batch[0].key.pk}: a service is down,"
                    " its log says which; run this again when it is back"
                )
            count += len(batch)
        return count

    def _record(self, row: Record, number: int) -> dict[str, Any]:
        """A record of the table's stream, as Lambda gives it to a function."""
        names = self._environment.names
        key = {PK: {"S": row.key.pk}, SK: {"S": row.key.sk}}
        at = written_at(row) or self._until
        return {
            "eventID": f"replay-{number}",
            "eventName": "MODIFY",
            "eventSource": "aws:dynamodb",
            "awsRegion": names.region,
            "eventSourceARN": names.table_arn(row.key.table) + "/stream/replay",
            "dynamodb": {
                "Keys": key,
                "NewImage": {**key, **attributes.encode_item(row.item)},
                "SequenceNumber": str(number),
                "ApproximateCreationDateTime": int(min(at, self._until).timestamp()),
                "StreamViewType": "NEW_IMAGE",
            },
        }


def written_at(row: Record) -> datetime | None:
    """When a record was written, where it says so."""
    for name in _TIMES:
        found = row.item.get(name)
        if isinstance(found, str) and (at := parse_instant(found)) is not None:
            return at
    return None
