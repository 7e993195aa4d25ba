"""Every opt-in right of the module (`plan-everything.json`), used: each target is called through the in-process AWS,
which refuses what the planned policy of the calling function does not allow.

A job of each kind ends and is told of, a start is searched for whose answer got lost, and a job that runs too long is
stopped. Secrets and probes are looked up on the way.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any, Final

import pytest
from moto.glue.models import glue_backends
from moto.secretsmanager.models import secretsmanager_backends
from msgspec import structs

from interlock.control import reruns
from interlock.model.events import EventType
from interlock.model.keys import RunKey
from interlock.model.run import FinalReason, RunStatus
from interlock.simulation.scenario import Scenario, inline_scenario
from tests.aws.world.calls import Call
from tests.aws.world.functions import FunctionKilled
from tests.aws.world.plan import ACCOUNT, REGION, Plan
from tests.aws.world.rights import unused
from tests.aws.world.targets import TargetWorld, everything, with_targets
from tests.aws.world.terraform import shipped

CLUSTER: Final = "j-1ABCDEFGHIJKL"
APPLICATION: Final = "00fabcdefghijk01"
SECRET: Final = f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:warehouse-AbCdEf"
PARAMETER: Final = "/interlock/warehouse-password"
SECRET_KEY: Final = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab"
ETL: Final = f"arn:aws:iam::{ACCOUNT}:role/etl"
THEIRS: Final = "arn:aws:iam::210987654321:role/etl"
MACHINE: Final = f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:gold-revenue"
TARGETS: Final[dict[str, dict[str, Any]]] = {
    "glue": {"type": "glue", "config": {"jobName": "gold-revenue"}},
    "emr": {"type": "emr", "config": {"clusterId": CLUSTER, "arguments": ["spark-submit", "s3://etl/gold.py"]}},
    "emr-serverless": {
        "type": "emr-serverless",
        "config": {
            "applicationId": APPLICATION,
            "executionRoleArn": ETL,
            "jobDriver": {"sparkSubmit": {"entryPoint": "s3://etl/gold.py"}},
        },
    },
    "step-function": {"type": "step-function", "config": {"stateMachineArn": MACHINE}},
}
# Given, and used by no function; each with the reason.
BESIDE: Final = {
    "ReadSlackToken": "the alert-dispatcher reads it: tests/aws/test_alerts.py; here nobody is alerted",
    "OpenSlackToken": "the same, where the secret has a key of its own",
}


def pipeline(name: str, job: dict[str, Any], **parts: Any) -> dict[str, Any]:
    """Opened by a sensor, with a poll far off: what is heard of its end is heard by an event."""
    return {
        "pipeline": {"id": name},
        "schedule": {
            "trigger": {"key": "ready", "check": "exists"},
            "evaluation": {"window": "30m", "interval": "5m"},
        },
        "validation": {"rules": [{"key": "ready", "check": "exists"}]},
        "job": {"pollInterval": "10m", **job},
        **parts,
    }


def scenario(*pipelines: dict[str, Any], until: str = "00:50") -> Scenario:
    return inline_scenario(
        name="rights",
        start="2026-03-05T00:00:00Z",
        until=f"2026-03-05T{until}:00Z",
        pipelines=list(pipelines),
        jobs={},
        steps=[
            {"at": f"+{number}m", "sensor": f"{one['pipeline']['id']}/ready", "data": {"date": "2026-03-05"}}
            for number, one in enumerate(pipelines, 1)
        ],
    )


def account(world: TargetWorld) -> None:
    """What the plan's ARNs name."""
    aws = world.aws
    aws.glue_job("gold-revenue")
    aws.rename_cluster(aws.emr_cluster(), CLUSTER)
    aws.rename_application(aws.emr_application(), APPLICATION)
    aws.state_machine("gold-revenue")
    aws.function("gold-revenue", lambda event: {"rows": 5})
    aws.client("s3").create_bucket(Bucket="landing")
    aws.client("s3").put_object(Bucket="landing", Key="orders/1.csv", Body=b"1")
    aws.client("secretsmanager").create_secret(Name="warehouse", SecretString="s3cr3t-token", KmsKeyId=SECRET_KEY)
    secretsmanager_backends[ACCOUNT][REGION].secrets["warehouse"].arn = SECRET
    aws.client("ssm").put_parameter(Name=PARAMETER, Value="p4ssw0rd", Type="SecureString", KeyId=SECRET_KEY)

    for name in ("etl-orders", "etl-theirs"):
        aws.glue_job(name)
    glue_backends["210987654321"][REGION].jobs["etl-theirs"] = glue_backends[ACCOUNT][REGION].jobs.pop("etl-theirs")


def run_of(world: TargetWorld, name: str) -> Any:
    found = world.run_of(RunKey(name, "stream", "2026-03-05"))
    assert found is not None, name
    return found


class Warehouse:
    """A service on loopback that knows who calls."""

    def __init__(self) -> None:
        self.seen: list[dict[str, str]] = []
        self.status = 200
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(200, b'{"state": "running"}')

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                outer.seen.append({name.lower(): value for name, value in self.headers.items()})
                said = {"id": "7", "hello": self.headers.get("Authorization")}
                self._answer(outer.status, json.dumps(said).encode())

            def _answer(self, status: int, said: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/load"

    @property
    def job(self) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer ${{secretsmanager:{SECRET}}}", "X-Password": f"${{ssm:{PARAMETER}}}"}
        return {
            "type": "http",
            "config": {"url": self.url, "headers": headers},
        }


@pytest.fixture
def warehouse() -> Iterator[Warehouse]:
    found = Warehouse()
    yield found
    found.server.shutdown()
    found.server.server_close()


def loopback() -> Plan:
    """The plan in which jobs may call addresses of this machine."""
    plan = everything()

    def allowed(environment: dict[str, str]) -> dict[str, str]:
        given = {"ALLOW_PRIVATE_ADDRESSES": '["127.0.0.0/8"]'} if "ALLOW_PRIVATE_ADDRESSES" in environment else {}
        return {**environment, **given}

    return replace(
        plan, functions=tuple(replace(one, environment=allowed(dict(one.environment))) for one in plan.functions)
    )


@contextmanager
def losing_the_first_answer(world: TargetWorld) -> Iterator[None]:
    """The function dies after the first start of each kind of job, before it has heard of it."""
    lost: set[str] = set()

    def strike(call: Call, answer: Any) -> None:
        del answer
        ours = call.arguments.get("stateMachineArn") == world.cloud.plan.machine.arn
        starts = call.operation in ("StartJobRun", "AddJobFlowSteps", "StartExecution") and not ours
        if starts and call.principal.endswith("-orchestrator") and call.service not in lost:
            lost.add(call.service)
            raise FunctionKilled

    world.cloud.calls.after.append(strike)
    yield
    assert lost == {"glue", "emr", "emr-serverless", "stepfunctions"}


def ended_lost_and_stopped(warehouse: Warehouse) -> TargetWorld:
    """A job of each kind ends by itself, one is searched for after its start got lost, one is stopped."""
    jobs = {
        **{f"{name}-lost": job for name, job in TARGETS.items()},
        **{f"{name}-ends": job for name, job in TARGETS.items()},
        **{
            f"{name}-stopped": {**job, "jobPollWindowSeconds": 60, "pollInterval": "30s", "onPollExhausted": "stop"}
            for name, job in TARGETS.items()
        },
        "etl": {"type": "glue", "config": {"jobName": "etl-orders"}},
        "function": {"type": "lambda", "config": {"functionName": "gold-revenue"}},
        "function-version": {"type": "lambda", "config": {"functionName": "gold-revenue", "qualifier": "1"}},
        "warehouse": warehouse.job,
        "another-account": {"type": "glue", "config": {"jobName": "etl-theirs", "roleArn": THEIRS}},
    }
    probed = {
        "probes": [{"type": "s3", "key": "orders", "config": {"bucket": "landing", "prefix": "orders/"}}],
        "validation": {"rules": [{"key": "orders", "check": "gte", "field": "count", "value": 1}]},
    }
    pipelines = [pipeline(name, job, **(probed if name == "function" else {})) for name, job in jobs.items()]
    with with_targets(scenario(*pipelines), loopback()) as world:
        account(world)
        with losing_the_first_answer(world):
            world.play()

        assert world.cloud.rights.denied == []
        assert world.dead_letters() == 0
        ended = {name: run_of(world, name) for name in jobs}
        done = {name for name, run in ended.items() if run.status is RunStatus.COMPLETED}
        assert done == {name for name in jobs if not name.endswith("-stopped")}
        assert all(run_of(world, f"{name}-stopped").final_reason is FinalReason.POLL_EXHAUSTED for name in TARGETS)
        assert all(run_of(world, f"{name}-lost").attempt == 1 for name in TARGETS)
        assert len(world.aws.glue_runs("gold-revenue")) == 3
        assert len(world.aws.emr_steps(CLUSTER)) == 3
        return world


def asked_before_a_rerun(warehouse: Warehouse) -> TargetWorld:
    """Jobs that nobody knows the fate of, and somebody who wants them again: the stream-router asks their targets."""
    unsure = {"maxManualReruns": 3, "jobPollWindowSeconds": 60, "pollInterval": "30s"}
    poll = {"url": f"{warehouse.url}/${{JOB_ID}}", "path": "state", "done": "never"}
    jobs = {
        "glue": TARGETS["glue"],
        "emr": TARGETS["emr"],
        "warehouse": {
            "type": "http",
            "config": {**warehouse.job["config"], "jobIdPath": "id", "poll": {**poll, "interval": "30s"}},
            **unsure,
        },
    }
    plays = scenario(*(pipeline(name, job) for name, job in jobs.items()), until="01:20")
    again = [{"at": "+70m", "rerun": name, "date": "2026-03-05", "reason": "again"} for name in jobs]
    with with_targets(replaced_steps(plays, again), loopback()) as world:
        account(world)
        world.takes = timedelta(hours=2)
        refusing_to_search(world)
        world.play()

        assert world.cloud.rights.denied == []
        refused = [one.pipeline_id for one in world.events if one.type is EventType.RERUN_REJECTED]
        assert sorted(refused) == sorted(jobs), "their jobs may still be running"
        assert len(world.aws.glue_runs("gold-revenue")) == 1
        return world


def refusing_to_search(world: TargetWorld) -> None:
    """The answer of each start gets lost, and the orchestrator may not look for it: nobody knows of the job."""

    def strike(call: Call) -> None:
        searched = call.operation in ("GetJobRuns", "ListSteps")
        if searched and call.principal.endswith("-orchestrator"):
            raise call.error("ThrottlingException", "Rate exceeded")

    def lose(call: Call, answer: Any) -> None:
        del answer
        if call.operation in ("StartJobRun", "AddJobFlowSteps"):
            raise FunctionKilled

    world.cloud.calls.before.append(strike)
    world.cloud.calls.after.append(lose)


def replaced_steps(plays: Scenario, more: list[dict[str, Any]]) -> Scenario:
    """The same with more steps."""
    with_more = inline_scenario(
        name="rights",
        start="2026-03-05T00:00:00Z",
        until="2026-03-05T01:20:00Z",
        pipelines=[one.document for one in plays.pipelines],
        jobs={},
        steps=more,
    )
    return structs.replace(plays, steps=(*plays.steps, *with_more.steps))


@pytest.mark.timeout(600)
def test_every_opt_in_right_is_used_and_none_is_missing(warehouse: Warehouse) -> None:
    worlds = [ended_lost_and_stopped(warehouse), asked_before_a_rerun(warehouse)]
    without, plan = shipped(), worlds[0].cloud.plan
    left: dict[str, list[str]] = {}
    for role, policy in plan.policies.items():
        opted_in = tuple(one for one in policy if one not in without.policies[role])
        used = {need for world in worlds for need in world.cloud.rights.used[role]}
        left[role] = [one for one in unused(opted_in, used) if one.split(":")[0] not in BESIDE]
    assert {role: found for role, found in left.items() if found} == {}


@pytest.mark.timeout(600)
def test_a_lost_request_for_a_job_that_the_watchdog_may_not_ask_about_says_so() -> None:
    """The stream-router would have asked Glue. The watchdog, which finds the request, has no right to."""
    given_up = {**TARGETS["glue"], "jobPollWindowSeconds": 60, "pollInterval": "30s"}
    with with_targets(scenario(pipeline("gold", given_up), until="00:20"), loopback()) as world:
        account(world)
        world.takes = timedelta(hours=2)
        world.play()
        assert run_of(world, "gold").final_reason is FinalReason.POLL_EXHAUSTED
        for stream in world.cloud.streams:
            stream.held = True
        reruns.request(world.engine.control, RunKey("gold", "stream", "2026-03-05"))
        world.clock.move_to(world.clock.now() + reruns.LOST_AFTER)
        world.engine.watch()
        for stream in world.cloud.streams:
            stream.held = False
        world._pump()

        (denied,) = world.cloud.rights.denied
        assert "glue:GetJobRun" in str(denied)
        (refused,) = [one for one in world.events if one.type is EventType.RERUN_REJECTED]
        assert refused.detail["code"] == "job-unknown"
        assert "nobody knows whether the job of attempt 1 is over" in refused.message
        assert "AccessDenied" in refused.message
        assert "interlock job report gold --date 2026-03-05 --attempt 1 fail" in refused.message
        assert len(world.aws.glue_runs("gold-revenue")) == 1
