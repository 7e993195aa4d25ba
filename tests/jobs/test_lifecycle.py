"""Every target with an HTTP API through the embedded controller: from the sensor to the end, whatever gets lost."""

from collections.abc import Iterator

import pytest

from interlock.control.attempts import cancelling
from interlock.control.views import job_output
from interlock.model.errors import JobStopError
from interlock.model.run import FailureCategory, FinalReason, JobEvent, RunStatus
from interlock.ports.jobs import JobStop
from tests.jobs.api_server import Reply
from tests.jobs.sites import SECRETS, SITES, Airflow3, HttpPoll, Site, served
from tests.jobs.stage import TargetWorld, breaks, crash, succeeds


@pytest.fixture(params=SITES, ids=lambda kind: kind.__name__)
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    made: Site = request.param()
    with served(made):
        yield made


def silent(world: TargetWorld) -> None:
    """No secret is in anything that was kept."""
    kept = world.everything_kept()
    assert not [name for name, value in SECRETS.items() if value in kept]


def test_from_the_sensor_to_completed(site: Site) -> None:
    world = TargetWorld(site, {"+10m": succeeds})
    world.play()
    assert (world.run.status, world.run.attempt) == (RunStatus.COMPLETED, 1)
    counts = world.counts()
    assert (counts["JOB_TRIGGERED"], counts["JOB_STARTED"], counts["JOB_COMPLETED"]) == (1, 1, 1)
    assert (site.started(), world.dead_letters()) == (1, 0)
    silent(world)


def test_a_failure_is_classified_and_retried(site: Site) -> None:
    world = TargetWorld(site, {"+10m": breaks, "+20m": succeeds}, maxCodeRetries=1)
    world.play()
    assert (world.run.status, world.run.attempt) == (RunStatus.COMPLETED, 2)
    failed = next(record for record in world.job_log if record.event is JobEvent.FAIL)
    assert failed.category is FailureCategory.PERMANENT
    assert "no such column" in failed.error
    assert site.started() == 2
    silent(world)


def test_a_failure_without_a_retry_is_the_end(site: Site) -> None:
    world = TargetWorld(site, {"+10m": breaks})
    world.play()
    assert (world.run.status, world.run.final_reason) == (RunStatus.FAILED_FINAL, FinalReason.RETRIES_USED_UP)
    assert site.started() == 1


def test_a_lost_answer_starts_nothing_twice(site: Site) -> None:
    site.server.lose_next_post = True
    world = TargetWorld(site, {"+10m": succeeds})
    world.play()
    assert (world.run.status, world.run.attempt, site.started()) == (RunStatus.COMPLETED, 1, 1)
    assert [record.event for record in world.job_log] == [JobEvent.INFRA_TRIGGER_FAILURE, JobEvent.SUCCESS]


def test_a_lost_answer_of_a_target_without_a_key_is_told_and_not_repeated() -> None:
    site = HttpPoll()
    site.config["idempotent"] = False
    site.server.lose_next_post = True
    with served(site):
        world = TargetWorld(site, {})
        world.play()
    assert (world.run.status, world.run.final_reason) == (RunStatus.FAILED_FINAL, FinalReason.UNCERTAIN)
    assert (world.counts()["TRIGGER_UNCERTAIN"], site.started()) == (1, 1)


def test_a_target_that_is_down_is_tried_again(site: Site) -> None:
    site.server.next_replies = [Reply(503, {"detail": "not now"})]
    world = TargetWorld(site, {"+10m": succeeds})
    world.play()
    assert (world.run.status, site.started()) == (RunStatus.COMPLETED, 1)
    assert world.job_log[0].category is FailureCategory.TRANSIENT


def test_the_controller_dies_while_the_job_runs(site: Site) -> None:
    world = TargetWorld(site, {"+5m": crash, "+10m": succeeds, "+11m": crash})
    world.play()
    assert (world.run.status, world.run.attempt) == (RunStatus.COMPLETED, 1)
    assert (site.started(), world.crashes) == (1, 2)
    assert world.counts()["JOB_TRIGGERED"] == 1


def test_a_job_is_stopped(site: Site) -> None:
    def stop(world: TargetWorld) -> None:
        if site.stoppable:
            assert world.runner.stop(world.request(), world.run.job_id) is JobStop.REQUESTED
        else:
            with pytest.raises(JobStopError, match="interlock job report gold"):
                world.runner.stop(world.request(), world.run.job_id)

    world = TargetWorld(site, {"+5m": stop, **({} if site.stoppable else {"+10m": succeeds})})
    world.play()
    expected = RunStatus.FAILED_FINAL if site.stoppable else RunStatus.COMPLETED
    assert world.run.status is expected
    if site.stoppable:
        assert world.runner.stop(world.request(), world.run.job_id) is JobStop.ENDED


def test_a_run_is_cancelled_at_its_target_also_over_a_crash(site: Site) -> None:
    def asked(world: TargetWorld) -> None:
        assert cancelling.cancel(world.control, world.run.key, reason="wrong input", by="ana") == "stopping"

    ends = {} if site.stoppable else {"+20m": breaks}
    world = TargetWorld(site, {"+5m": asked, "+5.5m": crash, **ends}, maxRetries=2, maxCodeRetries=2)
    world.play()
    assert (world.run.status, world.run.final_reason) == (RunStatus.FAILED_FINAL, FinalReason.CANCELLED)
    assert (world.counts()["JOB_CANCELLED"], world.run.attempt, site.started()) == (1, 1, 1)
    assert world.run.cancel is not None
    assert bool(world.run.cancel.problem) is not site.stoppable


def test_the_controller_reads_what_a_job_wrote(site: Site) -> None:
    world = TargetWorld(site, {"+10m": breaks})
    world.play()
    found = job_output.read(world.control, world.run.key)
    assert "12 rows" in found.text
    assert (found.attempt, found.complete) == (1, True)
    assert job_output.find(world.control, "gold", world.run.run_id) == (world.run.key, 1)


def test_what_a_job_wrote_is_read_and_where_it_is_looked_at(site: Site) -> None:
    world = TargetWorld(site, {"+10m": breaks})
    world.play()
    output = world.runner.output(world.request(), world.run.job_id)
    assert "12 rows" in output.text
    assert output.complete
    assert output.link.startswith(site.server.url)
    assert not any(value in output.text for value in SECRETS.values())
    assert world.runner.link(world.request(), world.run.job_id).startswith(site.server.url)
    after = world.runner.output(world.request(), world.run.job_id, offset=output.next_offset)
    assert (after.text, after.complete) == ("", True)


def test_a_dag_that_is_paused_is_refused_at_once() -> None:
    site = Airflow3()
    site.airflow.add_dag("orders", is_paused=True)
    with served(site):
        world = TargetWorld(site, {}, maxRetries=5)
        world.play()
    assert (world.run.status, world.run.final_reason) == (RunStatus.FAILED_FINAL, FinalReason.TRIGGER_EXHAUSTED)
    assert (len(world.job_log), site.started()) == (2, 0)
    assert "is paused" in world.job_log[0].error
