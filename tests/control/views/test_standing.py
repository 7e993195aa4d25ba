"""How a pipeline stands: as the worst of its runs, of what was missed, and of SLAs that nobody opened a run for."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from interlock.control import catalog, records
from interlock.control.views import lane_rows, standing
from interlock.control.views.standing import SlaStanding, Stand, Standing, stand_of
from interlock.model import keys
from interlock.ports.store import Delete, Put
from interlock.simulation.world import World
from tests.control.played import pipeline, played, ready

GRACE: Final = timedelta(minutes=5)
START: Final = datetime(2026, 3, 2, 7, tzinfo=UTC)
SLA: Final = {"deadline": "09:00", "expectedDuration": "30m"}
WINDOW: Final = {"cron": "0 8 * * *", "evaluation": {"window": "3h"}}


def stand(world: World, name: str = "a", *, watched_since: datetime = START) -> Stand:
    store, now = world.engine.store, world.clock.now()
    (rows,) = lane_rows.read_rows(store, lane_rows.read_configs(store, [name]), None, now)
    return stand_of(rows, catalog.calendars(store), now, watched_since=watched_since, grace=GRACE)


def of(until: str, steps: list[dict[str, Any]] | None = None, jobs: Any = None, **changes: Any) -> Stand:
    return stand(played([pipeline("a", **changes)], until, steps=steps or [], jobs=jobs or {}))


def shown(found: Stand) -> tuple[Standing, str, str | None, str]:
    assert found.current is not None
    return found.standing, found.current.word, found.current.since, found.current.summary


def test_before_anything_is_due_there_is_nothing_to_speak_of() -> None:
    found = of("2026-03-02T07:30:00Z")
    assert (found.standing, found.current, found.sla) == (Standing.NOT_DUE, None, None)


def test_a_waiting_run_says_since_when_and_what_for() -> None:
    found = of("2026-03-02T08:30:00Z")
    assert shown(found)[:3] == (Standing.WAITING, "waiting", "2026-03-02T08:00:00Z")
    assert "no sensor ready" in shown(found)[3]
    assert found.current is not None
    assert (found.current.schedule, found.current.date, found.current.attempt) == ("cron", "2026-03-02", 1)
    assert found.current.opened_at == "2026-03-02T08:00:00Z"


def test_a_running_job_says_since_when() -> None:
    jobs = {"a": [{"after": "30m", "result": "success"}]}
    found = of("2026-03-02T08:20:00Z", [ready("2026-03-02T08:10:00Z")], jobs)
    assert shown(found) == (Standing.RUNNING, "running", "2026-03-02T08:10:00Z", "its job is under way")


def test_a_failed_run_says_why_and_a_held_one_too() -> None:
    jobs = {"a": [{"after": "5m", "result": "fail", "category": "PERMANENT", "error": "no such column"}]}
    job = {"type": "command", "config": {"command": ["true"]}, "maxCodeRetries": 0}
    failed = of("2026-03-02T09:00:00Z", [ready("2026-03-02T08:10:00Z")], jobs, job=job)
    assert shown(failed)[:3] == (Standing.FAILED, "failed", "2026-03-02T08:15:00Z")
    assert "no such column" in shown(failed)[3]
    held = of("2026-03-02T09:30:00Z")
    assert shown(held)[:3] == (Standing.HELD, "held", "2026-03-02T09:00:00Z")


def test_a_start_that_is_tried_again_is_running_and_says_what_hinders_it() -> None:
    jobs = {"a": [{"result": "refuse", "category": "TRANSIENT", "error": "busy"}]}
    found = of("2026-03-02T08:10:20Z", [ready("2026-03-02T08:10:00Z")], jobs)
    assert shown(found)[:2] == (Standing.RUNNING, "running")
    assert shown(found)[3] != ""


def test_the_alerts_of_an_sla_make_it_worse_until_it_is_done() -> None:
    assert of("2026-03-02T08:20:00Z", sla=SLA, schedule=WINDOW).standing is Standing.WAITING
    risky = of("2026-03-02T08:40:00Z", sla=SLA, schedule=WINDOW)
    assert risky.sla is not None
    assert (risky.standing, risky.sla.state) == (Standing.AT_RISK, SlaStanding.AT_RISK)
    assert risky.sla.warning_at == datetime(2026, 3, 2, 8, 30, tzinfo=UTC)
    assert risky.sla.breach_at == datetime(2026, 3, 2, 9, tzinfo=UTC)
    breached = of("2026-03-02T09:10:00Z", sla=SLA, schedule=WINDOW)
    assert (breached.standing, breached.sla and breached.sla.state) == (Standing.BREACHED, SlaStanding.BREACHED)
    late = of("2026-03-02T10:00:00Z", [ready("2026-03-02T09:20:00Z")], sla=SLA, schedule=WINDOW)
    assert (late.standing, late.sla and late.sla.state) == (Standing.DONE, SlaStanding.RECOVERED)
    met = of("2026-03-02T10:00:00Z", [ready("2026-03-02T08:10:00Z")], sla=SLA, schedule=WINDOW)
    assert (met.standing, met.sla and met.sla.state) == (Standing.DONE, SlaStanding.MET)
    pending = of("2026-03-02T08:20:00Z", sla=SLA, schedule=WINDOW)
    assert pending.sla is not None
    assert pending.sla.state is SlaStanding.PENDING


def test_a_run_that_is_over_without_success_has_a_cancelled_sla_and_is_failed() -> None:
    jobs = {"a": [{"after": "5m", "result": "fail", "category": "PERMANENT"}]}
    job = {"type": "command", "config": {"command": ["true"]}, "maxCodeRetries": 0}
    found = of("2026-03-02T08:20:00Z", [ready("2026-03-02T08:10:00Z")], jobs, job=job, sla=SLA)
    assert (found.standing, found.sla and found.sla.state) == (Standing.FAILED, SlaStanding.CANCELLED)


def test_of_two_slas_the_earlier_instants_are_shown() -> None:
    schedule = {"cron": "0 8 * * *", "trigger": {"key": "go", "check": "exists"}, "evaluation": {"window": "5h"}}
    sla = {"deadline": "12:00", "expectedDuration": "30m", "maxDuration": "1h"}
    steps = [{"at": "2026-03-02T08:05:00Z", "sensor": "a/go", "data": {}}]
    found = of("2026-03-02T08:10:00Z", steps, schedule=schedule, sla=sla)
    assert found.sla is not None
    assert found.sla.breach_at == datetime(2026, 3, 2, 9, 5, tzinfo=UTC)
    assert found.sla.warning_at == datetime(2026, 3, 2, 8, 35, tzinfo=UTC)


def test_an_older_run_that_is_not_done_goes_before_a_later_one_that_is_for_a_day() -> None:
    steps = [ready("2026-03-03T08:10:00Z")]
    held = played([pipeline("a")], "2026-03-03T08:20:00Z", steps=steps)
    found = stand(held)
    assert found.current is not None
    assert (found.standing, found.current.date) == (Standing.DONE, "2026-03-03")
    recent = stand(played([pipeline("a", schedule={"cron": "0 */6 * * *"})], "2026-03-02T23:00:00Z", steps=[]))
    assert recent.current is not None
    assert (recent.standing, recent.current.date) == (Standing.HELD, "2026-03-02T18"), "of several, the latest"


def test_a_tick_that_opened_nothing_is_missed_after_its_grace_and_not_before_anybody_watched() -> None:
    world = played([pipeline("a")], "2026-03-02T08:03:00Z")
    (opened,) = records.active_runs(world.engine.store, "a")
    world.engine.store.commit([Delete(records.run_record(opened, kind)) for kind in (keys.RUN, keys.ACTIVE)])
    assert stand(world).standing is Standing.NOT_DUE
    world.clock.move_to(datetime(2026, 3, 2, 8, 6, tzinfo=UTC))
    found = stand(world)
    assert shown(found)[:3] == (Standing.MISSED, "missed", "2026-03-02T08:00:00Z")
    assert "it should have opened" in shown(found)[3]
    assert found.current is not None
    assert found.current.attempt == 0
    later = datetime(2026, 3, 2, 8, 1, tzinfo=UTC)
    assert stand(world, watched_since=later).standing is Standing.NOT_DUE


def test_an_excluded_day_is_not_missed() -> None:
    found = of("2026-03-02T09:00:00Z", schedule={"cron": "0 8 * * *", "exclude": {"dates": ["2026-03-02"]}})
    assert found.standing is Standing.NOT_DUE


def test_a_period_that_breached_although_nothing_opened_it_is_seen() -> None:
    schedule = {"trigger": {"key": "go", "check": "exists"}}
    found = of("2026-03-02T10:00:00Z", schedule=schedule, sla={"deadline": "09:00", "dayOffset": 0})
    assert found.current is not None
    assert (found.standing, found.current.word, found.current.date) == (
        Standing.BREACHED,
        standing.NOT_OPENED,
        "2026-03-02",
    )
    assert "nothing has opened it; what opens it" in found.current.summary
    before = of("2026-03-02T08:00:00Z", schedule=schedule, sla={"deadline": "09:00", "dayOffset": 0})
    assert before.standing is Standing.NOT_DUE


def test_an_invalid_config_says_what_is_wrong() -> None:
    world = played([pipeline("a")], "2026-03-02T07:30:00Z")
    key = records.control_key(keys.pipeline_pk("a"), keys.CONFIG)
    world.engine.store.commit([Put(key, {"document": {"pipeline": {"id": "a"}}, "version": "bad"})])
    found = stand(world)
    assert (shown(found)[0], shown(found)[1], shown(found)[2]) == (Standing.INVALID, "invalid", None)
    assert shown(found)[3].startswith("not run: ")
    assert found.current is not None
    assert (found.current.schedule, found.current.date, found.current.attempt) == ("", "", 0)


@pytest.mark.parametrize(
    ("steps", "word", "since", "summary"),
    [
        ([], None, None, ""),
        (["a/go"], "dry run", "2026-03-02T08:10:00Z", "it would be waiting"),
        (["a/ready", "a/go"], "dry run", "2026-03-02T08:10:00Z", "its job would have been started"),
    ],
)
def test_a_dry_run_says_what_it_would_be(steps: list[str], word: str | None, since: str | None, summary: str) -> None:
    written = [{"at": "2026-03-02T08:10:00Z", "sensor": name, "data": {}} for name in steps]
    found = of("2026-03-02T09:00:00Z", written, dryRun=True, schedule={"trigger": {"key": "go", "check": "exists"}})
    assert found.standing is Standing.DRY_RUN
    current = found.current
    seen = (current.word, current.since, current.summary) if current is not None else (None, None, "")
    assert seen == (word, since, summary)
