"""The embedded controller on virtual time, with the real targets, on moto's AWS.

A `Target` is one of the five with something to run in it: what the config says, how its jobs end, how many there are.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from interlock.control import catalog, records, starting
from interlock.control.context import Control
from interlock.jobs.aws.clients import AwsClients
from interlock.jobs.aws.emr import EmrRunner
from interlock.jobs.aws.emr_serverless import EmrServerlessRunner
from interlock.jobs.aws.glue import GlueRunner
from interlock.jobs.aws.lambda_function import LambdaRunner
from interlock.jobs.aws.step_function import StepFunctionRunner
from interlock.model.job_configs import AwsConfig
from interlock.model.keys import RunKey
from interlock.model.run import JobRecord, Run
from interlock.ports.clock import Clock
from interlock.ports.jobs import JobRequest, JobRunner
from interlock.simulation.jobs import ScriptedTargets
from interlock.simulation.scenario import inline_scenario
from interlock.simulation.world import World
from tests.jobs.aws.moto_services import ROLE, Aws, FunctionFailedError

DAY: Final = "2026-03-02"
KEY: Final = RunKey("gold", "stream", DAY)
START: Final = f"{DAY}T08:00:00Z"
PASSING: Final = "Rate exceeded"
BROKEN: Final = "no such column"


class _LossyClients(AwsClients):
    """Clients whose starts are made, and whose answers get lost when the test says so."""

    def __init__(self, target: "Target") -> None:
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
    def __init__(self, client: Any, target: "Target") -> None:
        self._client = client
        self._target = target

    def __getattr__(self, operation: str) -> Any:
        def call(**parameters: Any) -> Any:
            getattr(self._client, operation)(**parameters)
            raise self._target.lost.pop(0)

        return call


class Target:
    """One target with something to run in it."""

    type: str
    tells = False
    """The start itself says how the job ended."""

    def __init__(self, aws: Aws) -> None:
        self.aws = aws
        self.lost: list[BaseException] = []
        """What the next starts raise in place of their answer; the start itself is made."""
        self.clients = _LossyClients(self)
        self.config: dict[str, Any] = {}

    def runner(self, clock: Clock) -> JobRunner:
        raise NotImplementedError

    def started(self) -> int:
        """How many jobs there are."""
        raise NotImplementedError

    def end(self, now: datetime, error: str = "") -> None:
        """The latest job ends."""
        raise NotImplementedError


class Glue(Target):
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


class Emr(Target):
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


class EmrServerless(Target):
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


class StepFunction(Target):
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


class LambdaSync(Target):
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


ALL: Final[tuple[type[Target], ...]] = (Glue, Emr, EmrServerless, StepFunction, LambdaSync)
POLLED: Final[tuple[type[Target], ...]] = (Glue, Emr, EmrServerless, StepFunction)

Act = Callable[["AwsWorld"], None]


class _Targets(ScriptedTargets):
    """The real target of one type, the scripted ones of the others; what happens at AWS happens at its instant."""

    def __init__(self, target: Target, clock: Clock, acts: list[tuple[datetime, Callable[[], None]]]) -> None:
        super().__init__({}, clock)
        self._target = target
        self._acts = sorted(acts, key=lambda act: act[0])

    def runners(self) -> dict[str, JobRunner]:
        return {**super().runners(), self._target.type: self._target.runner(self._clock)}

    def next_end(self) -> datetime | None:
        return self._acts[0][0] if self._acts else None

    def ended(self, now: datetime) -> JobRequest | None:
        while self._acts and self._acts[0][0] <= now:
            self._acts.pop(0)[1]()
        return None


def pipeline(target: Target, **job: Any) -> dict[str, Any]:
    """A pipeline whose job is in the target."""
    return {
        "pipeline": {"id": "gold"},
        "schedule": {"trigger": {"key": "ready", "check": "exists"}},
        "validation": {"rules": [{"key": "ready", "check": "exists"}]},
        "job": {"type": target.type, "config": target.config, "maxCodeRetries": 0, **job},
    }


class AwsWorld(World):
    """One run of a pipeline whose job is in the target; its sensor is written at 08:01."""

    def __init__(
        self,
        target: Target,
        acts: Mapping[str, Act],
        *,
        document: dict[str, Any] | None = None,
        sensor: str = "ready",
        key: RunKey = KEY,
        **job: Any,
    ) -> None:
        crashes = [{"at": at, "crash": True} for at, act in acts.items() if act is crash]
        written = {"at": "+1m", "sensor": f"{key.pipeline}/{sensor}#{DAY}", "data": {"status": "ready"}}
        made = document or pipeline(target, **job)
        scenario = inline_scenario(start=START, until="+3h", pipelines=[made], steps=[written, *crashes])
        super().__init__(scenario)
        self.target = target
        self.key = key
        at_aws = [(self._instant_of(at), self._bound(act)) for at, act in acts.items() if act is not crash]
        self.targets = _Targets(target, self.clock, at_aws)

    def _instant_of(self, at: str) -> datetime:
        return self.scenario.start + timedelta(minutes=float(at.strip("+m")))

    def _bound(self, act: Act) -> Callable[[], None]:
        return lambda: act(self)

    @property
    def control(self) -> Control:
        return self.engine.control

    @property
    def run(self) -> Run:
        found = self.run_of(self.key)
        assert found is not None
        return found

    @property
    def job_log(self) -> list[JobRecord]:
        return records.job_log(self.engine.store, self.key)

    def request(self) -> JobRequest:
        """The job of the latest attempt, as the controller would call its target."""
        run = self.run
        config = catalog.opened_with(self.engine.store, run.pipeline, run.config_version)
        return starting.request_of(self.control, config, run)

    def counts(self) -> dict[str, int]:
        types = [event.type.value for event in self.events]
        return {name: types.count(name) for name in dict.fromkeys(types)}


def crash(world: AwsWorld) -> None:
    """An act: the controller dies and starts again."""
    raise AssertionError("played as a step of the scenario")


def succeeds(world: AwsWorld) -> None:
    """An act: the latest job succeeds."""
    world.target.end(world.clock.now())


def breaks(world: AwsWorld) -> None:
    """An act: the latest job fails, by its own fault."""
    world.target.end(world.clock.now(), BROKEN)


def stumbles(world: AwsWorld) -> None:
    """An act: the latest job fails, by the world's fault."""
    world.target.end(world.clock.now(), PASSING)
