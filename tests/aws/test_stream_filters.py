"""The filters of the stream mappings: they drop what invokes nothing, and nothing that the router acts on."""

from typing import Any, cast

import pytest

from interlock.aws.dynamodb import attributes
from interlock.aws.dynamodb.changes import change_of
from interlock.control import event_sink, router
from interlock.control.context import Control
from interlock.model import keys
from interlock.model.keys import Table
from interlock.model.run import JobEvent, RunStatus
from interlock.ports.store import Change
from tests.aws import planned
from tests.aws.patterns import matches

_BY_TTL = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}
_PK = "PIPELINE#silver-orders"


def record(
    pk: str, sk: str, item: dict[str, Any] | None, *, event: str = "MODIFY", by_ttl: bool = False
) -> dict[str, Any]:
    """A stream record as Lambda gives it; without an item a removal."""
    image = {} if item is None else {"NewImage": attributes.encode_item({"PK": pk, "SK": sk, **item})}
    return {
        "eventID": "1",
        "eventName": "REMOVE" if item is None else event,
        "eventSource": "aws:dynamodb",
        **({"userIdentity": _BY_TTL} if by_ttl else {}),
        "dynamodb": {
            "ApproximateCreationDateTime": 1_700_000_000,
            "Keys": {"PK": {"S": pk}, "SK": {"S": sk}},
            "SequenceNumber": "100",
            "StreamViewType": "NEW_IMAGE",
            **image,
        },
    }


def passes(table: Table, record: dict[str, Any]) -> bool:
    """Would the mapping invoke the function?"""
    return any(matches(one, record) for one in planned.stream_filters(table))


class _ActedError(Exception):
    """The router did more than look at the change."""


class _Untouchable:
    def __getattr__(self, name: str) -> Any:
        raise _ActedError(name)


def acts(change: Change) -> bool:
    """Does the router go on to the store, or stumble over the record?"""
    try:
        router.route(cast(Control, _Untouchable()), change)
    except _ActedError:
        return True
    except Exception:  # noqa: BLE001 - a record that is none of ours is a dead letter, which is an act
        return True
    return False


_SORT_KEYS = sorted(
    value if value == keys.CONFIG else f"{value}stream#2026-03-01"
    for name, value in vars(keys).items()
    if name.isupper() and isinstance(value, str) and name != "ID_PATTERN"
)
_RUNS: list[dict[str, Any]] = [
    {"status": status.value, "version": 3, **more}
    for status in RunStatus
    for more in (
        {},
        {"passedAt": "2026-03-01T10:00:00Z"},
        {"claimId": "c1"},
        {"claimId": "c1", "jobStartedAt": "2026-03-01T10:00:00Z"},
        {"markersLeft": True},
    )
]
_CONTROL_RECORDS = [
    *(record(_PK, sk, {"x": 1}) for sk in _SORT_KEYS),
    *(record(_PK, sk, None) for sk in _SORT_KEYS),
    *(record(_PK, sk, {"x": 1}, event="INSERT") for sk in _SORT_KEYS),
    *(record(_PK, "TRIGGER#stream#2026-03-01", run) for run in _RUNS),
    *(record(_PK, "TRIGGER#stream#2026-03-01", run, event="INSERT") for run in _RUNS),
    record(_PK, "CONFIG", {"document": {}}),
    record(_PK, "CONFIG", None),
    record(_PK, "CONFIGV#0123", {"document": {}}),
    record("CALENDARS", "holidays", {"dates": []}),
    record("CALENDARS", "holidays", None),
    record("REGISTRY", _PK, {}),
    record("POOL#warehouse", "SLOT#1", {"run": "x"}),
    record("TIMER#tick-x", "TIMER", {"at": "x"}),
    record("CONTROLLER", "CONTROLLER", {"firstStartedAt": "x"}),
    record(_PK, "SENSOR#orders", {"data": {"complete": True}}),
    record(_PK, "SENSOR#orders#20260301", None),
    record(_PK, "SENSOR#orders", None),
]
_LOGGED = {
    "pipeline": "silver-orders",
    "schedule": "stream",
    "date": "2026-03-01",
    "attempt": 1,
    "at": "2026-03-01T10:00:00Z",
}
_JOBLOG_RECORDS = [
    *(record(_PK, "JOB#stream#2026-03-01#1", {**_LOGGED, "event": one.value}) for one in JobEvent),
    *(record(_PK, "JOB#stream#2026-03-01#1", {**_LOGGED, "event": one.value}, event="INSERT") for one in JobEvent),
    record(_PK, "JOB#stream#2026-03-01#1", {"event": "exploded"}),
    record(_PK, "JOB#stream#2026-03-01#1", {"event": 7}),
    record(_PK, "JOB#stream#2026-03-01#1", {"message": "no event"}),
    record(_PK, "JOB#stream#2026-03-01#1", None),
]


def _name(record: dict[str, Any]) -> str:
    key, image = record["dynamodb"]["Keys"], record["dynamodb"].get("NewImage", {})
    more = "+".join(name for name in image if name not in ("PK", "SK"))
    status = image.get("status", image.get("event", {})).get("S", "")
    return f"{record['eventName']} {key['PK']['S']} {key['SK']['S']} {status} {more}"


@pytest.mark.parametrize("record", _CONTROL_RECORDS, ids=_name)
def test_what_the_router_acts_on_is_delivered(record: dict[str, Any]) -> None:
    change = change_of(record, Table.CONTROL)
    removed_run = change.item is None and change.sk.startswith(keys.RUN)
    # Of a removed run the router reads what has become of it, and what has come since has a change of its own.
    if acts(change) and not removed_run:
        assert passes(Table.CONTROL, record)


@pytest.mark.parametrize("record", _JOBLOG_RECORDS, ids=_name)
def test_what_the_job_log_says_is_delivered(record: dict[str, Any]) -> None:
    assert passes(Table.JOBLOG, record) is acts(change_of(record, Table.JOBLOG))


@pytest.mark.parametrize(
    "record",
    [
        record(_PK, "ACTIVE#stream#2026-03-01", {"token": "t", "wakeSeq": 4}),
        record(_PK, "BASELINE#stream#2026-03-01", {"sensors": {}}),
        record(_PK, "ALERTED#x", {"at": "x"}),
        record(_PK, "CONFIGV#0123", {"document": {}}),
        record(_PK, "INUSE#0123", {"until": "x"}),
        record(_PK, "DOWNSTREAM#gold", {"downstream": "gold"}),
        record(_PK, "TRIGGER#stream#2026-03-01", {"status": "RUNNING", "jobStartedAt": "x"}),
        record(_PK, "TRIGGER#stream#2026-03-01", {"status": "RUNNING", "claimId": "c", "jobStartedAt": "x"}),
        record(_PK, "TRIGGER#stream#2026-03-01", {"status": "TRIGGERING"}, event="INSERT"),
        record("REGISTRY", _PK, {}),
        record("POOL#warehouse", "SLOT#1", {"run": "x"}),
        record("TIMER#tick-x", "TIMER", {"at": "x"}),
    ],
    ids=_name,
)
def test_bookkeeping_invokes_nothing(record: dict[str, Any]) -> None:
    assert not passes(Table.CONTROL, record)


@pytest.mark.parametrize("sk", ["SENSOR#orders#20260301", "SLA#stream#2026-03-01", "CONFIG", "MARKER#a", "TRIGGER#a#b"])
def test_expiry_invokes_nothing(sk: str) -> None:
    assert not passes(Table.CONTROL, record(_PK, sk, None, by_ttl=True))
    assert not passes(Table.CONTROL, record("CALENDARS", "holidays", None, by_ttl=True))
    assert not passes(Table.JOBLOG, record(_PK, "JOB#a#b#c", None, by_ttl=True))
    assert not passes(Table.EVENTS, record(_PK, "1700000000000#JOB_FAILED#u", None, by_ttl=True))


@pytest.mark.parametrize(
    "record",
    [
        record(_PK, "1700000000000#JOB_FAILED#u", {"type": "JOB_FAILED"}, event="INSERT"),
        record("PIPELINE#_infrastructure", "0700000000000#INFRA_ALARM#u", {"type": "INFRA_ALARM"}, event="INSERT"),
        record(_PK, "9999999999999#JOB_FAILED#u", {"type": "JOB_FAILED"}, event="INSERT"),
        record(_PK, "THREAD#stream#2026-03-01", {"ts": "1"}, event="INSERT"),
        record("DELIVERY#1", "slack", {"type": "x"}, event="INSERT"),
    ],
    ids=_name,
)
def test_events_and_only_events_are_published(record: dict[str, Any]) -> None:
    assert passes(Table.EVENTS, record) is event_sink.is_event(change_of(record, Table.EVENTS))


@pytest.mark.parametrize("table", ["control", "joblog", "events"])
def test_mappings_keep_to_the_limits_of_lambda(table: str) -> None:
    mapping = planned.resources()[f'aws_lambda_event_source_mapping.stream["{table}"]']
    assert len(planned.stream_filters(table)) <= 5
    assert all(len(one["pattern"]) <= 4096 for one in mapping["filter_criteria"][0]["filter"])
    assert mapping["function_response_types"] == ["ReportBatchItemFailures"]
    assert (mapping["batch_size"], mapping["parallelization_factor"]) == (10, 1 if table == "events" else 4)
    assert (mapping["maximum_retry_attempts"], mapping["maximum_record_age_in_seconds"]) == (-1, 23 * 3600)
