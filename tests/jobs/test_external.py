"""The gate alone: nothing is called, and nothing but a report ends the job."""

import pytest

from interlock.jobs.external import ExternalRunner
from interlock.model.errors import JobStopError
from interlock.ports.jobs import JobOutput, JobRunner, JobStarted, JobState, JobStatus
from tests.jobs.command.trials import request


def test_a_start_is_the_run_id_and_a_lost_one_the_same() -> None:
    runner: JobRunner = ExternalRunner()
    asked = request("run-7", anything="goes")
    assert runner.start(asked) == runner.recover(asked) == JobStarted(job_id="run-7")
    assert runner.check(asked, "run-7") == JobStatus(state=JobState.RUNNING)


def test_only_the_other_scheduler_can_stop_it() -> None:
    runner: JobRunner = ExternalRunner()
    with pytest.raises(JobStopError, match=r"stop it there, then report its end \(interlock job report gold"):
        runner.stop(request("run-7"), "run-7")
    assert runner.output(request("run-7"), "run-7") == JobOutput(complete=True)
    assert runner.link(request("run-7"), "run-7") == ""
