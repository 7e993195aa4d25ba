"""StreamBatch: the conformance suite on moto, and what is said to the event source mapping."""

import json
import random
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.aws.dead_letters import LARGEST, Letter, letter_text, read_letter
from interlock.aws.dynamodb.changes import change_of
from interlock.aws.dynamodb.streams import StreamBatch, dated, table_name
from interlock.aws.names import Function
from interlock.model.errors import AccessError, InvalidValueError, StoreError, ThrottledError, UnavailableError
from interlock.model.keys import Table
from interlock.model.times import epoch_millis
from interlock.ports.store import Change, Store
from tests.aws.dynamo import REGION, STREAMED, TABLES
from tests.aws.installation import ACCOUNT, Installation, installation
from tests.aws.test_store import stream_records
from tests.conformance.manual_clock import START, ManualClock
from tests.conformance.stream_suite import TABLES as ALL
from tests.conformance.stream_suite import Handler, Stream, StreamSuite

BATCH = 10


def stream_arn(table: Table) -> str:
    return f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{TABLES[table]}/stream/2026-03-02T00:00:00.000"


def wire(record: dict[str, Any], table: Table) -> dict[str, Any]:
    """A record of the streams API as Lambda gives it: plain JSON, times in whole seconds."""
    inner = dict(record["dynamodb"])
    inner["ApproximateCreationDateTime"] = int(inner["ApproximateCreationDateTime"].timestamp())
    plain = {"eventName": record["eventName"], "eventSource": "aws:dynamodb", "eventSourceARN": stream_arn(table)}
    return dict(json.loads(json.dumps({**plain, "dynamodb": inner}, default=lambda raw: b64encode(raw).decode())))


class MotoStream:
    """The event source mappings, in small: batches of ten, and everything from the first failure again."""

    def __init__(self, here: Installation) -> None:
        self._here = here
        self._read: dict[Table, int] = {}
        self._redriven: list[dict[str, Any]] = []
        self._letters: list[Letter] = []

    @property
    def store(self) -> Store:
        return self._here.controller.store

    def deliver(self, handler: Handler, tables: Sequence[Table] = ALL) -> None:
        redriven, self._redriven = self._redriven, []
        self._map(redriven, handler)
        for table in STREAMED:
            records = [wire(record, table) for record in stream_records(TABLES[table])]
            read = self._read.get(table, 0)
            self._read[table] = len(records)
            if table in tables:
                self._map(records[read:], handler)

    def _map(self, records: list[dict[str, Any]], handler: Handler) -> None:
        waiting = deque(records)
        while waiting:
            batch = [waiting.popleft() for _ in range(min(BATCH, len(waiting)))]
            answer = self._here.controller.stream(Function.STREAM_ROUTER).deliver(batch, handler)
            for failure in answer["batchItemFailures"]:
                numbers = [record["dynamodb"]["SequenceNumber"] for record in batch]
                waiting.extendleft(reversed(batch[numbers.index(failure["itemIdentifier"]) :]))

    def _collect(self) -> None:
        for queue in ("control-dlq", "joblog-dlq", "events-dlq"):
            self._letters += [read_letter(json.dumps(body)) for body in self._here.messages(queue)]

    def dead_letters(self) -> list[Change]:
        self._collect()
        return [change_of(letter.record or {}, Table(letter.table)) for letter in self._letters]

    def redrive(self) -> None:
        self._collect()
        self._redriven += [letter.record or {} for letter in self._letters]
        self._letters.clear()


class TestOnMoto(StreamSuite):
    @contextmanager
    def open_stream(self) -> Iterator[Stream]:
        with installation(ManualClock()) as here:
            yield MotoStream(here)

    @settings(suppress_health_check=list(HealthCheck), max_examples=4, deadline=None)
    @given(
        written=st.lists(st.sampled_from("abc"), max_size=30),
        poisoned=st.sets(st.integers(0, 29), max_size=4),
    )
    def test_each_record_is_handled_in_order_or_is_a_dead_letter(self, written: list[str], poisoned: set[int]) -> None:
        """Fewer than elsewhere: moto is slow."""
        self.play(written, poisoned)


# ------------------------------------------------------------------------------------------------- partial failures


def record(n: int, table: Table = Table.CONTROL, **inner: Any) -> dict[str, Any]:
    record = {
        "Keys": {"PK": {"S": "a"}, "SK": {"S": f"s{n}"}},
        "NewImage": {"PK": {"S": "a"}, "SK": {"S": f"s{n}"}, "n": {"N": str(n)}},
        "SequenceNumber": str(1000 + n),
        "ApproximateCreationDateTime": int(START.timestamp()),
        **inner,
    }
    return {"eventName": "MODIFY", "eventSourceARN": stream_arn(table), "dynamodb": record}


class Buried:
    """Remembers what was buried; fails as long as it is told to."""

    def __init__(self, error: Exception | None = None) -> None:
        self.letters: list[Letter] = []
        self.error = error

    def __call__(self, table: Table, letter: Letter) -> None:
        if self.error is not None:
            raise self.error
        self.letters.append(letter)


def deliver(
    records: list[dict[str, Any]], handler: Callable[[Sequence[Change]], None], buried: Buried | None = None
) -> list[str]:
    batch = StreamBatch(TABLES, ManualClock(), buried or Buried(), "stream-router")
    answer = batch.deliver(records, handler)
    return [one["itemIdentifier"] for one in answer["batchItemFailures"]]


@pytest.mark.parametrize("error", [ThrottledError("slow"), UnavailableError("down"), AccessError("no right")])
@pytest.mark.parametrize("at", [0, 3, 9])
def test_while_a_service_is_down_the_first_unhandled_record_is_reported(error: Exception, at: int) -> None:
    seen: list[int] = []
    buried = Buried()

    def handler(changes: Sequence[Change]) -> None:
        for change in changes:
            assert change.item is not None
            if change.item["n"] == at:
                raise error
            seen.append(change.item["n"])

    failed = deliver([record(n) for n in range(10)], handler, buried)
    assert failed == ["1000"], "the batch began with it: whoever was handled before is handled again"
    assert buried.letters == []


def test_a_record_that_fails_by_itself_does_not_hide_a_service_that_is_down() -> None:
    """0 is poison, 4 meets a service that is down: 0 is a dead letter, and the rest comes again."""
    buried = Buried()

    def handler(changes: Sequence[Change]) -> None:
        for change in changes:
            assert change.item is not None
            if change.item["n"] == 0:
                raise RuntimeError("poison")
            if change.item["n"] == 4:
                raise UnavailableError("down")

    assert deliver([record(n) for n in range(8)], handler, buried) == ["1004"]
    assert [letter.tries for letter in buried.letters] == [3]
    assert buried.letters[0].error == "RuntimeError: poison"
    assert buried.letters[0].function == "stream-router"


def test_a_record_is_not_lost_when_the_dead_letter_queue_is_down() -> None:
    def handler(changes: Sequence[Change]) -> None:
        raise RuntimeError("poison")

    assert deliver([record(1)], handler, Buried(UnavailableError("SQS"))) == ["1001"]


@pytest.mark.parametrize(
    "odd",
    [
        {"Keys": {"id": {"N": "1"}}},
        {"Keys": {"PK": {"N": "1"}, "SK": {"S": "s"}}},
        {"Keys": None},
        {"NewImage": {"x": {"WHAT": 1, "EVER": 2}}},
    ],
)
def test_a_record_that_is_none_of_ours_is_a_dead_letter_with_its_key(odd: dict[str, Any]) -> None:
    handled: list[str] = []
    buried = Buried()
    records = [record(0), record(1, **odd), record(2)]
    assert deliver(records, lambda changes: handled.extend(change.sk for change in changes), buried) == []
    assert handled == ["s0", "s2"]
    (letter,) = buried.letters
    assert letter.record is not None
    assert letter.record["dynamodb"] == records[1]["dynamodb"]


def test_those_before_a_foreign_record_are_handled_before_it_is_reported() -> None:
    handled: list[str] = []
    records = [record(0), record(1, Keys=None), record(2)]
    failed = deliver(
        records,
        lambda changes: handled.extend(change.sk for change in changes),
        Buried(UnavailableError("SQS")),
    )
    assert (handled, failed) == (["s0"], ["1001"])


def test_a_record_of_another_environment_is_refused() -> None:
    foreign = {**record(1), "eventSourceARN": stream_arn(Table.CONTROL).replace("test-", "prod-")}
    with pytest.raises(StoreError, match="prod-interlock-control"):
        deliver([foreign], lambda _: None)
    assert table_name("nonsense") == ""


# ------------------------------------------------------------------------------------------------------------- dates


@pytest.mark.parametrize(("processed", "millis"), [(0.0, 0), (0.4, 400), (0.999, 999), (3.0, 999)])
def test_a_change_is_never_dated_before_it_happened(processed: float, millis: int) -> None:
    clock = ManualClock()
    clock.advance(seconds=processed)
    begun = epoch_millis(START)
    change = Change(1, Table.CONTROL, "a", "s", begun, None)
    assert dated(change, clock.now()).at == begun + millis


def test_a_clock_that_is_behind_the_stream_makes_no_change_older() -> None:
    change = Change(1, Table.CONTROL, "a", "s", epoch_millis(START) + 60_000, None)
    assert dated(change, START).at == change.at


# ------------------------------------------------------------------------------------------------------ dead letters


def letter(record_: dict[str, Any]) -> Letter:
    return Letter(table="control", record=record_, error="x", tries=3, first_at=START, last_at=START)


@pytest.mark.parametrize("size", [10, 300_000, 900_000])
def test_a_letter_keeps_its_record_whole(size: int) -> None:
    kept = letter(record(1, NewImage={"text": {"S": "x" * size}}))
    text = letter_text(kept)
    assert len(text) <= LARGEST
    assert read_letter(text) == kept


def test_a_record_that_no_message_can_hold_leaves_its_key() -> None:
    noise = random.Random(1).randbytes(1_200_000).hex()
    found = read_letter(letter_text(letter(record(7, NewImage={"text": {"S": noise}}))))
    assert found.record is None
    assert found.keys == {"PK": {"S": "a"}, "SK": {"S": "s7"}}


def test_what_is_no_letter_says_so() -> None:
    with pytest.raises(InvalidValueError, match="no dead letter"):
        read_letter('{"requestContext": {}}')
