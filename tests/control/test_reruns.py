"""Rerun requests: what is refused, why, and that every request is decided once."""

from dataclasses import replace
from typing import Any, Final

import pytest

from interlock.control import catalog, records, reruns, writing
from interlock.control.attempts import completion
from interlock.control.views import rerun_preview
from interlock.model import keys
from interlock.model.config import PipelineConfig
from interlock.model.errors import InterlockError, UnavailableError
from interlock.model.events import Event, EventType
from interlock.model.keys import RunKey, Table
from interlock.model.run import FinalReason, JobEvent, RunStatus, Source
from interlock.ports.jobs import JobRequest, JobStatus
from interlock.ports.store import Delete, Item, Put
from tests.safety.faults import FaultyWorld
from tests.safety.stage import KEY, control_of, count_events, later, pipeline, run_of, settle, staged

DONE: Final = "2026-03-05T00:30:00Z"


def refused(world: FaultyWorld) -> Event:
    world._pump()
    (event,) = [event for event in world.events if event.type is EventType.RERUN_REJECTED]
    return event


def requests(world: FaultyWorld) -> list[Item]:
    found = control_of(world).store.query(Table.CONTROL, KEY.pk, keys.RERUN_REQUEST)
    return [record.item for record in found]


def ask(world: FaultyWorld, key: RunKey = KEY, **options: Any) -> None:
    reruns.request(control_of(world), key, **options)
    settle(world)


def test_a_rerun_of_a_dry_run_is_refused_and_starts_nothing() -> None:
    world = staged(pipeline(dryRun=True), until=DONE)
    ask(world, force=True)
    assert "orders is a dry run: nothing is ever started" in refused(world).message
    assert world.run_of(KEY) is None
    assert world.targets.starts == []


def test_a_rerun_of_a_run_whose_pipeline_became_a_dry_run_is_refused() -> None:
    world = staged(pipeline(), until=DONE)
    assert run_of(world).status is RunStatus.COMPLETED
    dry = {"document": pipeline(dryRun=True), "version": "dry"}
    control_of(world).store.commit([Put(records.control_key(KEY.pk, keys.CONFIG), dry)])
    settle(world)
    ask(world, force=True)
    assert "is a dry run" in refused(world).message
    assert (run_of(world).status, run_of(world).attempt) == (RunStatus.COMPLETED, 1)
    assert len(world.targets.starts) == 1


def test_the_preview_of_a_dry_run_says_the_same() -> None:
    world = staged(pipeline(dryRun=True), until=DONE)
    config = catalog.current(control_of(world).store, "orders")
    assert isinstance(config, PipelineConfig)
    found = rerun_preview.preview(control_of(world), config, KEY, force=True)
    assert (found.decision.value, found.reason) == ("rejected", "orders is a dry run: nothing is ever started")


def test_a_request_that_is_delivered_again_is_decided_once() -> None:
    world = staged(pipeline(), until=DONE)
    made = reruns.request(control_of(world), KEY, force=True)
    where = records.control_key(KEY.pk, keys.rerun_request_sk(KEY, made.id))
    for _ in range(3):
        reruns.process(control_of(world), where)
    assert count_events(world, EventType.RERUN_ACCEPTED) == 1
    assert run_of(world).attempt == 2
    assert [item["decision"] is not None for item in requests(world)] == [True]


def test_a_request_that_has_vanished_is_not_decided() -> None:
    world = staged(pipeline(), until=DONE)
    made = reruns.request(control_of(world), KEY, force=True)
    where = records.control_key(KEY.pk, keys.rerun_request_sk(KEY, made.id))
    control_of(world).store.commit([Delete(where)])
    reruns.process(control_of(world), where)
    settle(world)
    assert count_events(world, EventType.RERUN_ACCEPTED) + count_events(world, EventType.RERUN_REJECTED) == 0
    assert run_of(world).attempt == 1


def test_a_request_whose_pipeline_is_deleted_meanwhile_is_refused() -> None:
    world = staged(pipeline(), until=DONE)
    reruns.request(control_of(world), KEY, force=True)
    catalog.delete_config(control_of(world), "orders")
    settle(world)
    assert "there is no valid pipeline orders with schedule stream" in refused(world).message
    assert run_of(world).attempt == 1


def test_a_rerun_while_an_attempt_is_active_is_refused() -> None:
    world = staged(pipeline(), until="2026-03-05T00:15:00Z")
    assert run_of(world).status is RunStatus.RUNNING
    ask(world, force=True)
    assert refused(world).date == KEY.date
    assert run_of(world).attempt == 1


def test_a_rerun_is_refused_when_nothing_has_changed_and_accepted_by_force() -> None:
    world = staged(pipeline(), until=DONE)
    ask(world)
    assert count_events(world, EventType.RERUN_REJECTED) == 1
    ask(world, force=True, reason="because", requested_by="anna")
    run = run_of(world)
    assert (run.attempt, run.source, run.requested_by) == (2, Source.MANUAL, "anna")
    (accepted,) = [event for event in world.events if event.type is EventType.RERUN_ACCEPTED]
    assert (accepted.detail["requestedBy"], accepted.detail["reason"], accepted.detail["attempt"]) == (
        "anna",
        "because",
        2,
    )


def test_a_rerun_of_a_job_that_has_succeeded_meanwhile_is_refused() -> None:
    job = {"type": "glue", "config": {"jobName": "x"}, "pollInterval": "1m", "jobPollWindowSeconds": 600}
    world = staged(pipeline(job=job), until=DONE, jobs=[{"after": "40m", "result": "success"}])
    assert run_of(world).status is RunStatus.FAILED_FINAL
    ask(world, force=True)
    assert count_events(world, EventType.RERUN_REJECTED) == 1, "the job still runs"
    world.clock.move_to(world.clock.now().replace(minute=55))
    ask(world, force=True)
    later(world, minutes=1)
    assert count_events(world, EventType.RERUN_REJECTED) == 2
    assert (run_of(world).status, run_of(world).attempt) == (RunStatus.COMPLETED, 1)
    assert len(world.targets.starts) == 1


class Mute:
    """A target that may not be asked."""

    def check(self, request: JobRequest, job_id: str) -> JobStatus:
        raise UnavailableError(f"no right to ask about {job_id}")


def test_a_rerun_of_a_job_that_cannot_be_asked_about_is_refused_and_says_so() -> None:
    world = staged(pipeline(), until="2026-03-05T00:15:00Z", jobs=[{"result": "hang"}])
    control = control_of(world)
    completion.fail_final(control, KEY, 1, FinalReason.STALE, "its lease is over")
    asked = reruns.request(control, KEY, force=True)
    mute: Any = {name: Mute() for name in control.jobs}
    where = records.control_key(KEY.pk, keys.rerun_request_sk(KEY, asked.id))
    reruns.process(replace(control, jobs=mute), where)

    event = refused(world)
    assert event.detail["code"] == "job-unknown"
    assert f"could not be asked (no right to ask about {run_of(world).job_id})" in event.message
    assert "interlock job report orders --date 2026-03-05 --attempt 1 fail" in event.message
    assert "running" not in event.message

    writing.report_job(control, KEY, JobEvent.FAIL, attempt=1)
    ask(world)
    assert run_of(world).attempt == 2, "once somebody has said what became of it"


@pytest.mark.parametrize(
    "key",
    [RunKey("nobody", "stream", "2026-03-05"), RunKey("orders", "cron", "2026-03-05"), RunKey("orders", "stream", "x")],
)
def test_what_cannot_exist_is_an_error_at_once(key: RunKey) -> None:
    world = staged(pipeline(), until=DONE)
    with pytest.raises(InterlockError):
        reruns.request(control_of(world), key)
    assert requests(world) == []
