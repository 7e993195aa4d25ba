"""What every target must have beside `start`, `recover` and `check`, for tests that are about those three."""

from interlock.ports.jobs import JobOutput, JobRequest, JobStop


class MuteTarget:
    """Its jobs are over before anybody can stop them, and write nothing."""

    def stop(self, request: JobRequest, job_id: str) -> JobStop:
        return JobStop.ENDED

    def output(self, request: JobRequest, job_id: str, *, offset: int = 0) -> JobOutput:
        return JobOutput(next_offset=offset, complete=True)

    def link(self, request: JobRequest, job_id: str) -> str:
        return ""
