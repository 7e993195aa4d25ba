"""Looks as records: claimed once, recorded once, whatever dies in between."""

import dataclasses
from datetime import timedelta
from typing import Any

import pytest

from interlock.config.stored import read_stored
from interlock.control import catalog, probing, records, writing
from interlock.control.attempts import opening
from interlock.control.probing import Claim
from interlock.control.views import explain
from interlock.model import keys
from interlock.model.config import PipelineConfig
from interlock.model.errors import InvalidValueError, UnknownPipelineError
from interlock.model.events import EventType
from interlock.model.keys import RunKey, Table
from interlock.model.run import Run, RunStatus
from interlock.ports.probes import ProbeRequest
from interlock.ports.store import Delete, Put
from interlock.simulation.scenario import inline_scenario
from interlock.simulation.world import World

DAY = "2026-03-02"
KEY = RunKey("gold", "cron", DAY)


class Stage(World):
    """A controller at 08:00 whose looks are taken by the test."""

    def __init__(self, probe: dict[str, Any] | None = None, *, start: str = f"{DAY}T07:59:00Z") -> None:
        probe = {"key": "rows", "type": "file", "config": {"path": "x"}, **(probe or {})}
        super().__init__(
            inline_scenario(
                start=start,
                until=f"{DAY}T12:00:00Z",
                pipelines=[
                    {
                        "pipeline": {"id": "gold"},
                        "schedule": {"cron": "0 8 * * *", "evaluation": {"window": "1h", "interval": "5m"}},
                        "validation": {"rules": [{"key": "rows", "check": "gte", "field": "count", "value": 1}]},
                        "probes": [probe],
                        "job": {"type": "external"},
                    }
                ],
                probes={"gold": {"rows": [{"data": {"count": 1}}]}},
            )
        )
        self._until_done(self._begin)

    @property
    def control(self) -> Any:
        return self.engine.control

    def claim(self) -> Claim:
        found = probing.claim_next(self.control, "gold", "rows")
        assert isinstance(found, Claim)
        return found

    def later(self, **length: float) -> None:
        """Time passes; what is due happens, except looks."""
        self.clock.move_to(self.clock.now() + timedelta(**length))
        self.engine.calendar.deliver_due(self.clock.now())
        self.rest()

    def rest(self) -> None:
        while self.engine.executions.run_due(self.clock.now()) + self._pump():
            pass

    def count_events(self, type_: EventType) -> int:
        found = self.engine.store.query(Table.EVENTS, keys.pipeline_pk("gold"))
        return sum(one.item["type"] == type_ for one in found)

    def status(self) -> RunStatus | None:
        run = self.run_of(KEY)
        return run.status if run is not None else None


def test_a_look_is_claimed_once_per_interval() -> None:
    stage = Stage()
    start = stage.clock.now()
    claim = stage.claim()
    again = probing.claim_next(stage.control, "gold", "rows")
    assert again == start + timedelta(minutes=5)
    probing.succeeded(stage.control, claim, {"count": 3})
    sensor = records.get_sensors(stage.engine.store, "gold", ["rows"])["rows"]
    # Twice the interval, and the timeout.
    assert (sensor.data, sensor.ttl) == ({"count": 3}, int(start.timestamp()) + 630)
    stage.later(minutes=4, seconds=59)
    assert probing.claim_next(stage.control, "gold", "rows") == start + timedelta(minutes=5)
    stage.later(seconds=1)
    stage.claim()


def test_a_result_that_comes_too_late_is_dropped() -> None:
    stage = Stage()
    late = stage.claim()
    stage.later(minutes=5)
    newer = stage.claim()
    probing.succeeded(stage.control, newer, {"count": 2})
    probing.succeeded(stage.control, late, {"count": 1})
    probing.failed(stage.control, late, "much too late")
    assert records.get_sensors(stage.engine.store, "gold", ["rows"])["rows"].data == {"count": 2}
    assert stage.count_events(EventType.PROBE_FAILED) == 0


def test_a_controller_that_dies_during_a_look_holds_up_nobody_for_long() -> None:
    """The earlier observation counts again when the look cannot end any more; and the next look is due in its turn."""
    stage = Stage({"ttl": "1h"})
    probing.succeeded(stage.control, stage.claim(), {"count": 1})
    stage.later(seconds=10)
    stage.clock.move_to(stage.clock.now() + timedelta(minutes=4, seconds=50))
    stage.claim()  # 08:04, and then it dies
    stage.crash()
    stage.later(seconds=0)
    assert stage.status() is RunStatus.PENDING
    stage.later(seconds=34)
    assert stage.status() is RunStatus.PENDING
    stage.later(seconds=1)
    assert stage.status() is RunStatus.RUNNING
    assert isinstance(probing.claim_next(stage.control, "gold", "rows"), type(stage.clock.now()))


def test_an_evaluation_waits_for_a_look_that_is_due_and_says_so() -> None:
    stage = Stage({"ttl": "3h"})
    probing.succeeded(stage.control, stage.claim(), {"count": 1})
    stage.clock.move_to(stage.clock.now() + timedelta(minutes=30))  # the controller was away, say
    stage.later(seconds=0)
    assert stage.status() is RunStatus.PENDING
    active = records.get_active(stage.engine.store, KEY)
    assert active is not None
    assert "waits for the probe rows to look again" in active.rules
    probing.succeeded(stage.control, stage.claim(), {"count": 0})
    stage.rest()
    assert stage.status() is RunStatus.PENDING
    stage.later(minutes=5)
    probing.succeeded(stage.control, stage.claim(), {"count": 9})
    stage.rest()
    assert stage.status() is RunStatus.RUNNING


def test_when_the_window_closes_what_is_known_counts() -> None:
    stage = Stage({"ttl": "3h"})
    probing.succeeded(stage.control, stage.claim(), {"count": 1})
    stage.clock.move_to(stage.clock.now() + timedelta(minutes=30))
    stage.later(seconds=0)
    assert stage.status() is RunStatus.PENDING
    for _ in range(11):
        stage.later(minutes=5)  # nobody looks
        assert stage.status() is RunStatus.PENDING
    stage.later(minutes=5)
    assert stage.status() is RunStatus.RUNNING


def test_failures_are_said_once_and_why_names_them() -> None:
    stage = Stage()
    for _ in range(3):
        probing.failed(stage.control, stage.claim(), "no such table")
        stage.later(minutes=5)
    assert stage.count_events(EventType.PROBE_FAILED) == 1
    found = catalog.stored(stage.engine.store, "gold")
    assert found is not None
    facts = explain.gather(stage.engine.store, found, KEY, stage.clock.now())
    assert facts.rules[0].result.reason.endswith("; its probe fails: no such table")
    probing.succeeded(stage.control, stage.claim(), {"count": 0})
    facts = explain.gather(stage.engine.store, found, KEY, stage.clock.now())
    assert "probe" not in facts.rules[0].result.reason


@pytest.mark.parametrize("ending", ["succeeded", "failed"])
def test_a_look_for_a_pipeline_that_was_deleted_leaves_nothing(ending: str) -> None:
    stage = Stage()
    claim = stage.claim()
    catalog.delete_config(stage.control, "gold")
    if ending == "succeeded":
        probing.succeeded(stage.control, claim, {"count": 1})
    else:
        probing.failed(stage.control, claim, "gone")
    assert records.get_sensors(stage.engine.store, "gold", ["rows"]) == {}
    assert stage.count_events(EventType.PROBE_FAILED) == 0
    assert probing.claim_next(stage.control, "gold", "rows") is None


def test_a_dated_probe_looks_for_the_periods_that_wait() -> None:
    stage = Stage({"config": {"path": "in/${DATE}.csv"}})
    assert isinstance(probing.claim_next(stage.control, "gold", "rows"), type(stage.clock.now()))  # nobody waits
    stage.later(minutes=1)
    claim = stage.claim()
    assert (claim.state.key, claim.request.date) == (f"rows#{DAY}", DAY)
    assert claim.request.config == {"path": f"in/{DAY}.csv"}
    probing.succeeded(stage.control, claim, {"count": 1})
    stage.rest()
    assert stage.status() is RunStatus.RUNNING
    stage.later(minutes=5)
    assert not isinstance(probing.claim_next(stage.control, "gold", "rows"), Claim)


def test_what_others_write_counts_while_no_look_is_due() -> None:
    stage = Stage()
    probing.failed(stage.control, stage.claim(), "down")
    stage.later(minutes=1)
    writing.write_sensor(stage.control, "gold", "rows", {"count": 5})
    stage.rest()
    assert stage.status() is RunStatus.RUNNING


# -------------------------------------------------------------------------------------------------------------- by hand


def test_a_person_may_have_a_probe_look_and_nothing_is_recorded_of_it() -> None:
    stage = Stage()
    before = stage.engine.store.query(Table.CONTROL, keys.pipeline_pk("gold"))
    found = probing.try_out(stage.control, "gold", "rows", None)
    assert found.config == {"path": "x"}
    assert stage.engine.store.query(Table.CONTROL, keys.pipeline_pk("gold")) == before


def test_a_look_by_hand_names_what_is_wrong_with_the_question() -> None:
    stage = Stage()
    with pytest.raises(InvalidValueError, match="gold has no probe 'other': it has rows"):
        probing.try_out(stage.control, "gold", "other", None)
    with pytest.raises(InvalidValueError, match="looks for no date"):
        probing.try_out(stage.control, "gold", "rows", DAY)
    with pytest.raises(UnknownPipelineError):
        probing.try_out(stage.control, "nobody", "rows", None)


def test_a_dated_probe_looks_for_the_date_that_is_asked_for() -> None:
    stage = Stage({"config": {"path": "x/${DATE}"}})
    assert probing.try_out(stage.control, "gold", "rows", "2026-02-27").config == {"path": "x/2026-02-27"}


def test_without_a_date_a_dated_probe_looks_for_the_latest_period_that_waits_or_for_the_current_one() -> None:
    stage = Stage({"config": {"path": "x/${DATE}"}})
    assert probing.try_out(stage.control, "gold", "rows", None).config == {"path": f"x/{DAY}"}
    opening.open_first(stage.control, opening.Start(key=RunKey("gold", "cron", "2026-02-27"), opened_by="a test"))
    stage.rest()
    assert probing.try_out(stage.control, "gold", "rows", None).config == {"path": "x/2026-02-27"}
    stage.later(minutes=1)
    assert probing.try_out(stage.control, "gold", "rows", None).config == {"path": f"x/{DAY}"}


# ----------------------------------------------------------------------------------------------- looks of an evaluation


def waiting(**probe: Any) -> tuple[Stage, Run]:
    """A run that waits since 08:00; nobody has looked."""
    stage = Stage(probe)
    stage.later(minutes=1)
    run = stage.run_of(KEY)
    assert run is not None
    assert run.status is RunStatus.PENDING
    return stage, run


def test_an_evaluation_claims_the_looks_that_it_would_wait_for_once() -> None:
    stage, run = waiting()
    (claim,) = probing.claim_awaited(stage.control, run)
    assert (claim.request.key, claim.request.date, claim.request.config) == ("rows", "", {"path": "x"})
    assert claim.state.started_at == stage.clock.now()
    assert claim.state.ends_by == stage.clock.now() + claim.request.timeout + timedelta(seconds=5)
    assert (claim.interval, claim.state.version) == (timedelta(minutes=5), 1)
    assert probing.claim_awaited(stage.control, run) == [], "it is under way"
    stage.later(minutes=5)
    (again,) = probing.claim_awaited(stage.control, run)
    assert again.state.version == 2
    assert again.state.look != claim.state.look


def test_an_evaluation_of_a_dated_probe_looks_for_its_own_period() -> None:
    stage, run = waiting(config={"path": "in/${DATE}.csv"})
    (claim,) = probing.claim_awaited(stage.control, run)
    assert (claim.state.key, claim.request.date) == (f"rows#{DAY}", DAY)


class Silent:
    """An installation that has no target for any probe."""

    def answers(self, pipeline: str, key: str) -> bool:
        del pipeline, key
        return False

    def look(self, request: ProbeRequest) -> dict[str, Any]:
        raise AssertionError(f"nobody was to look for {request.key}")


def test_an_evaluation_claims_no_look_that_it_does_not_read_or_that_nobody_can_take() -> None:
    stage, run = waiting()
    document = dict(stage.scenario.pipelines[0].document)
    document["probes"] = [{"key": "other", "type": "file", "config": {"path": "x"}}]
    config = read_stored(document, {})
    assert isinstance(config, PipelineConfig)
    catalog.apply_config(stage.control, config, document)
    assert probing.claim_awaited(stage.control, run) == [], "its rules do not read it"
    stage, run = waiting()
    assert probing.claim_awaited(dataclasses.replace(stage.control, probes=None), run) == []
    silent = dataclasses.replace(stage.control, probes=Silent())
    assert probing.claim_awaited(silent, run) == []
    assert probing.claim_next(silent, "gold", "rows") is None
    catalog.delete_config(stage.control, "gold")
    assert probing.claim_awaited(stage.control, run) == [], "the pipeline is gone"


def test_a_look_that_fails_is_recorded_with_the_beginning_of_its_error() -> None:
    stage, run = waiting()
    (claim,) = probing.claim_awaited(stage.control, run)
    probing.failed(stage.control, claim, "x" * 900)
    state = stage.engine.store.get(records.control_key(keys.pipeline_pk("gold"), keys.PROBE + "rows"))
    assert state is not None
    assert (state["failing"], state["error"], state["endedAt"]) == (True, "x" * 500, "2026-03-02T08:00:00Z")
    assert state["ttl"] == int((stage.clock.now() + timedelta(days=7, minutes=10)).timestamp())
    (event,) = [
        one.item
        for one in stage.engine.store.query(Table.EVENTS, keys.pipeline_pk("gold"))
        if one.item["type"] == EventType.PROBE_FAILED
    ]
    assert event["detail"] == {"key": "rows", "error": "x" * 500}
    stage.later(minutes=5)
    (again,) = probing.claim_awaited(stage.control, run)
    assert (again.state.failing, again.state.error) == (True, "x" * 500), "until a look succeeds"


def test_a_look_that_fails_lets_an_earlier_observation_count_again() -> None:
    stage, _ = waiting(ttl="3h")
    probing.succeeded(stage.control, stage.claim(), {"count": 1})
    stage.clock.move_to(stage.clock.now() + timedelta(minutes=30))
    stage.later(seconds=0)
    before = records.get_active(stage.engine.store, KEY)
    assert before is not None
    probing.failed(stage.control, stage.claim(), "down")
    after = records.get_active(stage.engine.store, KEY)
    assert after is not None
    assert after.wake_seq == before.wake_seq + 1
    stage.rest()
    assert stage.status() is RunStatus.RUNNING


def test_a_look_that_fails_without_an_earlier_observation_wakes_nobody() -> None:
    stage, _ = waiting()
    before = records.get_active(stage.engine.store, KEY)
    probing.failed(stage.control, stage.claim(), "down")
    assert records.get_active(stage.engine.store, KEY) == before


def test_what_may_not_be_stored_is_a_failed_look() -> None:
    stage, _ = waiting()
    probing.succeeded(stage.control, stage.claim(), {"text": "x" * 400_000})
    assert records.get_sensors(stage.engine.store, "gold", ["rows"]) == {}
    assert stage.count_events(EventType.PROBE_FAILED) == 1


def test_a_probe_that_has_changed_looks_at_once_and_forgets_its_failure() -> None:
    stage, run = waiting()
    probing.failed(stage.control, stage.claim(), "down")
    document = dict(stage.scenario.pipelines[0].document)
    document["probes"] = [{"key": "rows", "type": "file", "config": {"path": "y"}}]
    config = read_stored(document, {})
    assert isinstance(config, PipelineConfig)
    catalog.apply_config(stage.control, config, document)
    (claim,) = probing.claim_awaited(stage.control, run)
    assert (claim.request.config, claim.state.failing, claim.state.error) == ({"path": "y"}, False, "")


def test_a_period_that_was_given_up_is_looked_for_while_it_may_open_again() -> None:
    stage = Stage({"config": {"path": "in/${DATE}.csv"}})
    stage.later(minutes=1)
    stage.later(hours=1)
    assert stage.status() is RunStatus.FAILED_FINAL
    assert stage.claim().request.date == DAY
    stage.engine.store.commit([Delete(records.run_record(KEY, keys.EXHAUSTED))])
    stage.later(minutes=5)
    assert not isinstance(probing.claim_next(stage.control, "gold", "rows"), Claim)


def test_a_pipeline_whose_config_is_invalid_has_no_probe_to_try() -> None:
    stage = Stage()
    where = records.control_key(keys.pipeline_pk("gold"), keys.CONFIG)
    stage.engine.store.commit([Put(where, {"document": {"pipeline": {"id": "gold"}}})])
    with pytest.raises(InvalidValueError, match="the config of gold is invalid: it is not run, nor are its probes"):
        probing.try_out(stage.control, "gold", "rows", None)
