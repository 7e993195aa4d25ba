"""Events: one table for all of them, and the envelope that subscribers receive."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.model.events import CATALOGUE, Event, EventType, Severity

NOW = datetime(2026, 3, 3, 12, tzinfo=UTC)


def test_the_catalogue_has_every_event_once() -> None:
    assert list(CATALOGUE) == list(EventType)
    assert all(entry.when and entry.when[0].islower() for entry in CATALOGUE.values())
    assert "DATA_DRIFT" not in EventType.__members__


@pytest.mark.parametrize("type_", EventType)
def test_dry_runs_alarm_nobody(type_: EventType) -> None:
    if type_.startswith("DRY_RUN_"):
        assert CATALOGUE[type_].severity is Severity.INFO
    assert type_.value == type_.name


def test_severities_are_ordered() -> None:
    assert [one.rank for one in Severity] == [0, 1, 2, 3]
    assert [one.raised() for one in Severity] == [
        Severity.WARNING,
        Severity.ERROR,
        Severity.CRITICAL,
        Severity.CRITICAL,
    ]


def event(**changes: Any) -> Event:
    return Event(
        type=EventType.JOB_TRIGGERED,
        severity=Severity.INFO,
        pipeline_id="silver-orders",
        schedule_id="stream",
        date="2026-03-01",
        message="triggered http job",
        timestamp=NOW,
        **changes,
    )


def test_the_envelope_is_that_of_the_documents() -> None:
    assert event().envelope() == {
        "source": "interlock",
        "detail-type": "JOB_TRIGGERED",
        "detail": {
            "pipelineId": "silver-orders",
            "scheduleId": "stream",
            "date": "2026-03-01",
            "message": "triggered http job",
            "timestamp": "2026-03-03T12:00:00Z",
            "severity": "info",
        },
    }
    assert event(detail={"attempt": 1}).envelope()["detail"]["detail"] == {"attempt": 1}


@given(
    st.sampled_from(EventType),
    st.sampled_from(Severity),
    st.text(st.characters(codec="utf-8")),
    st.datetimes(timezones=st.just(UTC)),
    st.dictionaries(st.text(st.characters(codec="utf-8")), st.integers(-(2**60), 2**60) | st.none()),
)
def test_an_event_goes_there_and_back(
    type_: EventType, severity: Severity, message: str, at: datetime, detail: dict[str, Any]
) -> None:
    made = Event(type=type_, severity=severity, pipeline_id="p", message=message, timestamp=at, detail=detail)
    assert msgspec.json.decode(msgspec.json.encode(made), type=Event) == made
    assert msgspec.json.decode(msgspec.json.encode(made.envelope()))["detail-type"] == type_.value
