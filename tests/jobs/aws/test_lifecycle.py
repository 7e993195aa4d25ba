"""Every target on AWS through the embedded controller: from the sensor to the end of the run, whatever gets lost."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from time import monotonic

import msgspec
import pytest
from botocore.exceptions import ReadTimeoutError

from interlock.control import records, writing
from interlock.control.attempts import cancelling
from interlock.control.views import explain, job_output
from interlock.embedded.service import Service, ServiceSettings
from interlock.model.errors import JobStopError
from interlock.model.events import EventType
from interlock.model.keys import RunKey
from interlock.model.run import FailureCategory, FinalReason, JobEvent, RunStatus
from interlock.ports.jobs import JobStop
from interlock.simulation.world import SimulatedCrash
from tests.jobs import stage
from tests.jobs.aws import targets as aws_targets
from tests.jobs.aws.moto_services import Aws
from tests.jobs.aws.targets import AwsTarget
from tests.jobs.stage import KEY, TargetWorld, breaks, crash, stumbles, succeeds


@pytest.fixture(params=aws_targets.ALL, ids=lambda kind: kind.__name__)
def target(request: pytest.FixtureRequest, aws: Aws) -> AwsTarget:
    made: AwsTarget = request.param(aws)
    return made


@pytest.fixture(params=aws_targets.POLLED, ids=lambda kind: kind.__name__)
def polled(request: pytest.FixtureRequest, aws: Aws) -> AwsTarget:
    made: AwsTarget = request.param(aws)
    return made


def test_from_the_sensor_to_completed(target: AwsTarget) -> None:
    world = TargetWorld(target, {} if target.tells else {"+10m": succeeds})
    world.play()
    assert (world.run.status, world.run.attempt) == (RunStatus.COMPLETED, 1)
    counts = world.counts()
    assert (counts["JOB_TRIGGERED"], counts["JOB_COMPLETED"]) == (1, 1)
    assert counts.get("JOB_STARTED", 0) == (0 if target.tells else 1)
    assert target.started() == 1
    assert world.dead_letters() == 0


def test_a_failure_is_classified_and_retried(target: AwsTarget) -> None:
    if isinstance(target, aws_targets.LambdaSync):
        target.errors = [stage.PASSING, ""]
    world = TargetWorld(target, {} if target.tells else {"+10m": stumbles, "+20m": succeeds}, maxRetries=1)
    world.play()
    assert (world.run.status, world.run.attempt) == (RunStatus.COMPLETED, 2)
    failed = next(record for record in world.job_log if record.event is JobEvent.FAIL)
    assert failed.category is FailureCategory.TRANSIENT
    assert stage.PASSING in failed.error
    assert target.started() == 2


def test_a_failure_of_the_code_is_the_end(target: AwsTarget) -> None:
    if isinstance(target, aws_targets.LambdaSync):
        target.errors = [stage.BROKEN]
    world = TargetWorld(target, {} if target.tells else {"+10m": breaks}, maxRetries=3)
    world.play()
    assert (world.run.status, world.run.final_reason) == (RunStatus.FAILED_FINAL, FinalReason.RETRIES_USED_UP)
    assert [record.category for record in world.job_log] == [FailureCategory.PERMANENT]
    assert target.started() == 1


def test_a_lost_answer_starts_nothing_twice(polled: AwsTarget) -> None:
    polled.lost = [ReadTimeoutError(endpoint_url="https://aws")]
    world = TargetWorld(polled, {"+10m": succeeds})
    world.play()
    assert (world.run.status, world.run.attempt) == (RunStatus.COMPLETED, 1)
    assert polled.started() == 1
    assert [record.event for record in world.job_log] == [JobEvent.INFRA_TRIGGER_FAILURE, JobEvent.SUCCESS]
    assert "Read timeout" in world.job_log[0].error


def test_a_crash_at_the_call_starts_nothing_twice(polled: AwsTarget) -> None:
    polled.lost = [SimulatedCrash()]
    world = TargetWorld(polled, {"+10m": succeeds})
    world.play()
    assert (world.run.status, world.run.attempt) == (RunStatus.COMPLETED, 1)
    assert (polled.started(), world.crashes) == (1, 1)
    assert world.counts()["JOB_TRIGGERED"] == 1


@pytest.mark.parametrize("lost", [ReadTimeoutError(endpoint_url="https://aws"), SimulatedCrash()], ids=["answer", "us"])
def test_nobody_knows_how_a_synchronous_call_ended(aws: Aws, lost: BaseException) -> None:
    target = aws_targets.LambdaSync(aws)
    target.lost = [lost]
    world = TargetWorld(target, {})
    world.play()
    assert (world.run.status, world.run.final_reason) == (RunStatus.FAILED_FINAL, FinalReason.UNCERTAIN)
    assert world.counts()["TRIGGER_UNCERTAIN"] == 1
    assert target.started() == 1


def test_the_controller_is_restarted_while_the_job_runs(polled: AwsTarget) -> None:
    world = TargetWorld(polled, {"+5m": crash, "+10m": succeeds, "+11m": crash})
    world.play()
    assert (world.run.status, world.run.attempt) == (RunStatus.COMPLETED, 1)
    assert (polled.started(), world.crashes) == (1, 2)


def test_a_job_is_stopped(polled: AwsTarget) -> None:
    def stop(world: TargetWorld) -> None:
        runner = world.control.jobs[polled.type]
        assert runner.stop(world.request(), world.run.job_id) is JobStop.REQUESTED

    world = TargetWorld(polled, {"+5m": stop})
    world.play()
    assert (world.run.status, world.run.final_reason) == (RunStatus.FAILED_FINAL, FinalReason.RETRIES_USED_UP)
    assert world.job_log[-1].category is FailureCategory.TRANSIENT
    ended = world.control.jobs[polled.type].stop(world.request(), world.run.job_id)
    assert ended is JobStop.ENDED


def test_a_run_is_cancelled_at_its_target_also_over_a_crash(polled: AwsTarget) -> None:
    def asked(world: TargetWorld) -> None:
        assert cancelling.cancel(world.control, world.key, reason="wrong input", by="ana") == "stopping"

    world = TargetWorld(polled, {"+5m": asked, "+5.5m": crash}, maxRetries=2, maxCodeRetries=2)
    world.play()
    assert (world.run.status, world.run.final_reason) == (RunStatus.FAILED_FINAL, FinalReason.CANCELLED)
    assert (world.counts()["JOB_CANCELLED"], world.run.attempt, polled.started()) == (1, 1, 1)


def test_the_controller_reads_what_a_job_wrote_or_links_to_it(target: AwsTarget) -> None:
    if isinstance(target, aws_targets.EmrServerless):
        pytest.skip("moto has no dashboards: test_emr_serverless.py supplies them")
    world = TargetWorld(target, {} if target.tells else {"+10m": succeeds})
    world.play()
    found = job_output.read(world.control, world.key)
    assert found.text or found.link.startswith("https://"), found
    assert found.run_id == world.run.run_id


def test_where_a_job_is_looked_at(target: AwsTarget) -> None:
    if isinstance(target, aws_targets.LambdaSync):
        target.errors = [stage.BROKEN]
    world = TargetWorld(target, {} if target.tells else {"+10m": breaks})
    world.play()
    runner = world.control.jobs[target.type]
    assert runner.link(world.request(), world.run.job_id).startswith("https://us-east-1.console.aws.amazon.com/")


# --------------------------------------------------------------------------------------------------- one of a kind


def test_glue_says_succeeded_and_is_not_believed(aws: Aws) -> None:
    """The failure is in the log a few seconds after Glue has said that all went well."""
    target = aws_targets.Glue(aws)

    def logged(world: TargetWorld) -> None:
        (run,) = aws.glue_runs("etl")
        line = "26/03/02 08:10:01 ERROR App: org.apache.spark.SparkException: Job aborted"
        aws.log("test/log/output", run.job_run_id, world.clock.now(), line)

    world = TargetWorld(target, {"+10m": succeeds, "+10.25m": logged}, pollInterval="10s")
    world.play()
    assert world.run.status is RunStatus.FAILED_FINAL
    assert "its driver log says: 26/03/02 08:10:01 ERROR App" in world.job_log[-1].error
    assert world.counts().get("JOB_COMPLETED", 0) == 0


def test_a_success_is_known_soon_after_its_logs_had_their_time(aws: Aws) -> None:
    """Half a minute after the end, not at the next poll, which is ten minutes away."""
    world = TargetWorld(aws_targets.Glue(aws), {"+10.9m": succeeds}, pollInterval="10m")
    world.play()
    completed = next(event for event in world.events if event.type is EventType.JOB_COMPLETED)
    assert completed.timestamp - world.scenario.start == timedelta(minutes=11, seconds=30)


def test_a_success_that_could_not_be_checked_is_in_the_job_log_with_a_warning(
    aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Aws, "log", lambda *_: None)
    world = TargetWorld(aws_targets.Glue(aws), {"+10m": succeeds})
    world.play()
    assert world.run.status is RunStatus.COMPLETED
    assert "the job has no logs in test/log/output" in world.job_log[-1].warning
    explained = explain.explain(world.engine.store, "gold", world.clock.now(), date=stage.DAY)
    lines = [line.text for section in explained.sections for line in section.lines]
    assert any("warning: Glue's SUCCEEDED could not be checked" in line for line in lines)


def test_glue_is_busy_and_tried_again(aws: Aws) -> None:
    target = aws_targets.Glue(aws)
    aws.glue_job("busy", concurrent=1)
    aws.client("glue").start_job_run(JobName="busy")
    target.config = {"jobName": "busy"}

    def free(_world: TargetWorld) -> None:
        aws.glue_runs("busy")[0].status = "SUCCEEDED"

    def ends(world: TargetWorld) -> None:
        run = aws.glue_runs("busy")[-1]
        run.status, run.completed_on = "SUCCEEDED", world.clock.now()

    world = TargetWorld(target, {"+1.2m": free, "+10m": ends})
    world.play()
    assert world.run.status is RunStatus.COMPLETED
    assert [record.event for record in world.job_log] == [JobEvent.INFRA_TRIGGER_FAILURE, JobEvent.SUCCESS]
    assert "ConcurrentRunsExceededException" in world.job_log[0].error


def test_a_job_that_is_not_there_is_not_tried_again(aws: Aws) -> None:
    target = aws_targets.Glue(aws)
    target.config = {"jobName": "nothing"}
    world = TargetWorld(target, {})
    world.play()
    assert (world.run.status, world.run.final_reason) == (RunStatus.FAILED_FINAL, FinalReason.TRIGGER_EXHAUSTED)
    assert [record.event for record in world.job_log] == [
        JobEvent.INFRA_TRIGGER_FAILURE,
        JobEvent.INFRA_TRIGGER_EXHAUSTED,
    ]


def test_a_function_that_takes_an_event_reports_its_own_end(aws: Aws) -> None:
    target = aws_targets.LambdaSync(aws)
    target.config = {"functionName": "etl", "mode": "async", "payload": {"run": "${RUN_ID}"}}
    target.lost = [ReadTimeoutError(endpoint_url="https://aws")]

    def stop(world: TargetWorld) -> None:
        with pytest.raises(JobStopError, match="cannot be stopped"):
            world.control.jobs["lambda"].stop(world.request(), world.run.job_id)

    def report(world: TargetWorld) -> None:
        writing.report_job(world.control, KEY, JobEvent.SUCCESS, run_id=world.run.run_id)

    world = TargetWorld(target, {"+4m": stop, "+5m": crash, "+8m": report})
    world.play()
    assert (world.run.status, world.run.attempt) == (RunStatus.COMPLETED, 1)
    assert aws.invocations == [("etl", "Event", {"run": world.run.run_id})] * 2  # the second knows the run of the first


def test_all_of_them_at_once_in_real_time(aws: Aws, tmp_path: Path) -> None:
    """Threads, a file, the real clock: what `interlock serve` is, with targets that it makes by itself."""
    targets = {kind.__name__.lower(): kind(aws) for kind in aws_targets.ALL}
    targets["glue"].config["falseSuccessCheck"] = False  # half a minute of real time
    folder = tmp_path / "pipelines"
    folder.mkdir()
    for name, target in targets.items():
        document = stage.document(target, pollInterval="1s")
        document["pipeline"]["id"] = name
        (folder / f"{name}.json").write_bytes(msgspec.json.encode(document))
    service = Service(ServiceSettings(store=tmp_path / "interlock.db", pipelines=folder))
    try:
        service.start()
        for name in targets:
            writing.write_sensor(service.control, name, f"ready#{stage.DAY}", {"status": "ready"})
        for target in targets.values():
            wait_for(service, partial(_has_started, target))
            if not target.tells:
                target.end(service.clock.now())
        for name in targets:
            wait_for(service, partial(_has_completed, service, name))
    finally:
        service.stop()


def _has_started(target: AwsTarget) -> bool:
    return target.started() == 1


def _has_completed(service: Service, pipeline: str) -> bool:
    run = records.get_run(service.engine.store, RunKey(pipeline, "stream", stage.DAY))
    return run is not None and run.status is RunStatus.COMPLETED


def wait_for(service: Service, condition: Callable[[], bool]) -> None:
    """Until it holds, looking again after every commit."""
    end = monotonic() + 30
    while not condition():
        assert monotonic() < end, "it did not come to pass"
        service.database.wait_for_change(service.database.head(), 0.1)
