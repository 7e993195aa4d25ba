"""The gate alone: nothing is called, and nothing but a report ends the job."""

from interlock.jobs.external import ExternalRunner
from interlock.ports.jobs import JobRunner, JobStarted, JobState, JobStatus
from tests.jobs.command_trials import request


def test_a_start_is_the_run_id_and_a_lost_one_the_same() -> None:
    runner: JobRunner = ExternalRunner()
    asked = request("run-7", anything="goes")
    assert runner.start(asked) == runner.recover(asked) == JobStarted(job_id="run-7")
    assert runner.check(asked, "run-7") == JobStatus(state=JobState.RUNNING)
