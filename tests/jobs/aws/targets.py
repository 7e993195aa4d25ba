"""The targets on AWS to play whole runs in: each is the real one, on moto's AWS, with something to run in it."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from interlock.jobs.aws.clients import AwsClients
from interlock.jobs.aws.emr import EmrRunner
from interlock.jobs.aws.emr_serverless import EmrServerlessRunner
from interlock.jobs.aws.glue import GlueRunner
from interlock.jobs.aws.lambda_function import LambdaRunner
from interlock.jobs.aws.step_function import StepFunctionRunner
from interlock.model.job_configs import AwsConfig
from interlock.ports.clock import Clock
from interlock.ports.jobs import JobRequest, JobRunner
from tests.jobs.aws.moto_services import ROLE, Aws, FunctionFailedError
from tests.jobs.stage import Target


class _LossyClients(AwsClients):
    """Clients whose starts are made, and whose answers get lost when the test says so."""

    def __init__(self, target: "AwsTarget") -> None:
        super().__init__()
        self._target = target
        self.made: list[str] = []
        """Every call: service and operation."""

    def _make(self, way: Any) -> Any:
        client = super()._make(way)
        name = client.meta.service_model.service_name
        client.meta.events.register("before-call", lambda model, **_: self.made.append(f"{name}:{model.name}"))
        return client

    def starting(self, service: str, config: AwsConfig, *, read_timeout: timedelta | None = None) -> Any:
        client = super().starting(service, config, read_timeout=read_timeout)
        return _LossyClient(client, self._target) if self._target.lost else client


class _LossyClient:
    def __init__(self, client: Any, target: "AwsTarget") -> None:
        self._client = client
        self._target = target

    def __getattr__(self, operation: str) -> Any:
        def call(**parameters: Any) -> Any:
            getattr(self._client, operation)(**parameters)
            raise self._target.lost.pop(0)

        return call


class AwsTarget(Target):
    """A target on AWS with something to run in it."""

    tells = False
    """The start itself says how the job ended."""

    def __init__(self, aws: Aws) -> None:
        self.aws = aws
        self.lost: list[BaseException] = []
        """What the next starts raise in place of their answer; the start itself is made."""
        self.clients = _LossyClients(self)
        self.config = {}

    def runners(self, clock: Clock) -> Mapping[str, JobRunner]:
        return {self.type: self.runner(clock)}

    def runner(self, clock: Clock) -> JobRunner:
        """What calls it."""
        raise NotImplementedError


class Glue(AwsTarget):
    type = "glue"

    def __init__(self, aws: Aws) -> None:
        super().__init__(aws)
        self.job = "etl"
        aws.glue_job(self.job)
        self.config = {"jobName": self.job}

    def runner(self, clock: Clock) -> JobRunner:
        return GlueRunner(self.clients, clock)

    def started(self) -> int:
        return len(self.aws.glue_runs(self.job))

    def end(self, now: datetime, error: str = "") -> None:
        run = self.aws.glue_runs(self.job)[-1]
        run.status, run.completed_on = "FAILED" if error else "SUCCEEDED", now
        described = run.as_dict
        run.as_dict = lambda: {**described(), "ErrorMessage": error} if error else described()
        self.aws.log("test/log/output", run.job_run_id, now, "wrote 5 rows")


class Emr(AwsTarget):
    type = "emr"

    def __init__(self, aws: Aws) -> None:
        super().__init__(aws)
        self.cluster = aws.emr_cluster()
        self.config = {"clusterId": self.cluster, "arguments": ["spark-submit", "s3://etl/gold.py", "${DATE}"]}

    def renamed(self, cluster: str) -> None:
        """Have the cluster known by another id."""
        self.aws.rename_cluster(self.cluster, cluster)
        self.cluster = cluster

    def runner(self, clock: Clock) -> JobRunner:
        return EmrRunner(self.clients, clock)

    def started(self) -> int:
        return len(self.aws.emr_steps(self.cluster))

    def end(self, now: datetime, error: str = "") -> None:
        step = self.aws.emr_steps(self.cluster)[-1]
        step.state, step.last_state_change_reason = ("FAILED" if error else "COMPLETED"), error


class EmrServerless(AwsTarget):
    type = "emr-serverless"

    def __init__(self, aws: Aws) -> None:
        super().__init__(aws)
        self.application = aws.emr_application()
        self.config = {
            "applicationId": self.application,
            "executionRoleArn": ROLE,
            "jobDriver": {"sparkSubmit": {"entryPoint": "s3://etl/gold.py", "entryPointArguments": ["${DATE}"]}},
        }

    def renamed(self, application: str) -> None:
        """Have the application known by another id."""
        self.aws.rename_application(self.application, application)
        self.application = application

    def runner(self, clock: Clock) -> JobRunner:
        target = self

        class Runner(EmrServerlessRunner):
            """moto's job runs have succeeded as they are started."""

            def start(self, request: JobRequest) -> Any:
                before = target.started()
                try:
                    return super().start(request)
                finally:
                    for run in target.aws.emr_job_runs(target.application)[before:]:
                        run.state = "RUNNING"

        return Runner(self.clients)

    def started(self) -> int:
        return len(self.aws.emr_job_runs(self.application))

    def end(self, now: datetime, error: str = "") -> None:
        run = self.aws.emr_job_runs(self.application)[-1]
        run.state, run.state_details = ("FAILED" if error else "SUCCESS"), error


class StepFunction(AwsTarget):
    type = "step-function"

    def __init__(self, aws: Aws) -> None:
        super().__init__(aws)
        self.machine = aws.state_machine("etl")
        self.config = {"stateMachineArn": self.machine, "input": {"day": "${DATE}"}}

    def runner(self, clock: Clock) -> JobRunner:
        return StepFunctionRunner(self.clients)

    def started(self) -> int:
        return len(self.aws.executions(self.machine))

    def end(self, now: datetime, error: str = "") -> None:
        execution = self.aws.executions(self.machine)[-1]
        execution.status, execution.cause = ("FAILED" if error else "SUCCEEDED"), error or None


class LambdaSync(AwsTarget):
    type, tells = "lambda", True

    def __init__(self, aws: Aws) -> None:
        super().__init__(aws)
        aws.function("etl", self._work)
        self.config = {"functionName": "etl"}
        self.errors: list[str] = []

    def _work(self, _event: Any) -> Any:
        if self.errors and (error := self.errors.pop(0)):
            raise FunctionFailedError("RuntimeError", error, "wrote 5 rows\n")
        return {"rows": 5}

    def runner(self, clock: Clock) -> JobRunner:
        return LambdaRunner(self.clients)

    def started(self) -> int:
        return len(self.aws.invocations)


ALL: Final[tuple[type[AwsTarget], ...]] = (Glue, Emr, EmrServerless, StepFunction, LambdaSync)
POLLED: Final[tuple[type[AwsTarget], ...]] = (Glue, Emr, EmrServerless, StepFunction)
