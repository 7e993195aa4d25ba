"""A world with the real job targets: they call moto's AWS with the rights of their function, and a job ends as AWS does
it: its state changes, and EventBridge tells of that.

Sources of the events: Glue Developer Guide, "Automating AWS Glue with EventBridge"; EMR Management Guide, "Monitor
Amazon EMR events with CloudWatch"; EMR Serverless User Guide, "Monitoring with EventBridge"; Step Functions Developer
Guide, "Automating Step Functions event delivery with EventBridge".
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from moto.glue.models import glue_backends

from interlock.simulation.scenario import Scenario
from tests.aws.world.calls import Call
from tests.aws.world.functions import Modules
from tests.aws.world.plan import REGION, Plan, PlannedFunction
from tests.aws.world.play import AwsWorld
from tests.aws.world.terraform import shipped
from tests.jobs.aws.moto_services import Aws, played_jobs

GLUE_LOGS: Final = "/aws-glue/jobs"
_KEPT: Final = ("job_runners", "prober", "refused")


@dataclass(frozen=True, slots=True)
class _Act:
    at: datetime
    act: Callable[[], object]


class TargetWorld(AwsWorld):
    """A scenario whose jobs run in moto's AWS. To be used within `with_targets`."""

    def __init__(self, scenario: Scenario, plan: Plan, aws: Aws) -> None:
        super().__init__(scenario, plan)
        self.aws = aws
        self.takes = timedelta(minutes=4)
        """How long a job runs."""
        self.errors: list[str] = []
        """What the next jobs that end fail with; "": they succeed, as all others do."""
        self.silent = False
        """EventBridge tells nobody."""
        self._outside: list[_Act] = []
        self.cloud.calls.after.append(self._started)

    def outside(self, at: datetime, act: Callable[[], object]) -> None:
        """Something that happens in the account at an instant, and is none of the controller's."""
        self._outside.append(_Act(at, act))

    def _prepare(self, modules: Modules, function: PlannedFunction) -> None:
        wiring: Any = modules["interlock.aws.controller"]
        real = {name: getattr(wiring, name) for name in _KEPT}
        super()._prepare(modules, function)
        for name, value in real.items():
            setattr(wiring, name, value)

    def _round(self, now: datetime) -> None:
        due = [one for one in self._outside if one.at <= now]
        self._outside = [one for one in self._outside if one.at > now]
        for one in due:
            one.act()
            self._done += 1
        super()._round(now)

    def _next_instant(self, now: datetime, step_at: datetime | None) -> datetime | None:
        found = [super()._next_instant(now, step_at), *(one.at for one in self._outside)]
        return min((at for at in found if at is not None), default=None)

    # --------------------------------------------------------------------------------------------------- jobs

    def _started(self, call: Call, answer: Mapping[str, Any]) -> None:
        """A job was started: its end is set."""
        arguments = call.arguments
        match call.service, call.operation:
            case "glue", "StartJobRun":
                self._ends(lambda: self._end_glue(arguments["JobName"], answer["JobRunId"]))
            case "emr", "AddJobFlowSteps":
                self._ends(lambda: self._end_step(arguments["JobFlowId"], answer["StepIds"][0]))
            case "emr-serverless", "StartJobRun":
                run = self.aws.emr_job_runs(arguments["applicationId"])[-1]
                run.state = "RUNNING"  # moto's have succeeded as they are started
                self._ends(lambda: self._end_serverless(arguments["applicationId"], run))
            case "stepfunctions", "StartExecution" if arguments["stateMachineArn"] != self.cloud.plan.machine.arn:
                execution = self.aws.executions(arguments["stateMachineArn"])[-1]
                self._ends(lambda: self._end_execution(arguments["stateMachineArn"], execution))

    def _ends(self, act: Callable[[], object]) -> None:
        self.outside(self.clock.now() + self.takes, act)

    def _error(self) -> str:
        return self.errors.pop(0) if self.errors else ""

    def _tell(self, source: str, detail_type: str, detail: Mapping[str, Any]) -> None:
        if not self.silent:
            self.cloud.bus.publish(source, detail_type, detail)

    def _end_glue(self, job: str, run_id: str) -> None:
        accounts = [backends[REGION] for backends in glue_backends.values()]
        runs: list[Any] = [run for glue in accounts if job in glue.jobs for run in glue.jobs[job].job_runs]
        (run,) = (one for one in runs if one.job_run_id == run_id)
        if run.status == "STOPPED":
            return
        error, described = self._error(), run.as_dict
        run.status, run.completed_on = "FAILED" if error else "SUCCEEDED", self.clock.now()
        run.as_dict = lambda: {**described(), "LogGroupName": GLUE_LOGS, **({"ErrorMessage": error} if error else {})}
        self.aws.log(f"{GLUE_LOGS}/output", run_id, self.clock.now(), f"{job} wrote its rows")
        detail = {"jobName": job, "severity": "INFO", "state": run.status, "jobRunId": run_id, "message": error}
        self._tell("aws.glue", "Glue Job State Change", detail)

    def _end_step(self, cluster: str, step_id: str) -> None:
        (step,) = (one for one in self.aws.emr_steps(cluster) if one.id == step_id)
        if step.state == "CANCELLED":
            return
        error = self._error()
        step.state, step.last_state_change_reason = ("FAILED" if error else "COMPLETED"), error
        detail = {"stepId": step_id, "name": step.name, "clusterId": cluster, "state": step.state, "severity": "INFO"}
        self._tell("aws.emr", "EMR Step Status Change", detail)

    def _end_serverless(self, application: str, run: Any) -> None:
        if run.state == "CANCELLED":
            return
        error = self._error()
        run.state, run.state_details = ("FAILED" if error else "SUCCESS"), error
        detail = {"jobRunId": run.id, "applicationId": application, "state": run.state, "previousState": "RUNNING"}
        self._tell("aws.emr-serverless", "EMR Serverless Job Run State Change", detail)

    def _end_execution(self, machine: str, execution: Any) -> None:
        if execution.status == "ABORTED":
            return
        error = self._error()
        execution.status, execution.cause = ("FAILED" if error else "SUCCEEDED"), error or None
        arn = execution.execution_arn
        detail = {"executionArn": arn, "stateMachineArn": machine, "name": execution.name, "status": execution.status}
        self._tell("aws.states", "Step Functions Execution Status Change", detail)


def everything(variables: Mapping[str, str] | None = None) -> Plan:
    """The plan with every opt-in, without Slack; `variables`: what jobs may use, as `job_environment` gives it."""
    plan = shipped(name="plan-everything", variables={"ALERTS": "[]"})

    def given(function: PlannedFunction) -> PlannedFunction:
        calls_targets = "INTERLOCK_REGION" in function.environment
        return (
            replace(function, environment={**function.environment, **(variables or {})}) if calls_targets else function
        )

    return replace(plan, functions=tuple(given(one) for one in plan.functions))


@contextmanager
def with_targets(scenario: Scenario, plan: Plan | None = None) -> Iterator[TargetWorld]:
    """A world in which the scenario can be played."""
    with played_jobs() as aws:
        world = TargetWorld(scenario, plan or everything(), aws)
        with world.cloud.running():
            yield world
