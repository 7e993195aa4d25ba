"""AWS as moto 5.2.5 plays it, and what moto leaves out: calls that end jobs, functions that run, faults on demand.

The points reached into are insides of moto, which is why it is pinned.
"""

import io
import json
import zipfile
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from typing import Any, Final
from unittest import mock

import boto3
from botocore.awsrequest import AWSResponse
from moto import mock_aws
from moto.awslambda_simple.models import LambdaSimpleBackend
from moto.core.responses import ActionResult
from moto.emr.models import emr_backends
from moto.emr.responses import ElasticMapReduceResponse
from moto.emrserverless.models import EMRServerlessBackend, emrserverless_backends
from moto.glue.models import glue_backends
from moto.glue.responses import GlueResponse
from moto.logs.models import LogEvent, logs_backends
from moto.moto_api import state_manager
from moto.stepfunctions.models import stepfunctions_backends

REGION: Final = "us-east-1"
ACCOUNT: Final = "123456789012"
ROLE: Final = f"arn:aws:iam::{ACCOUNT}:role/etl"
_CONFIG: Final[Any] = {"lambda": {"use_docker": False}}

Function = Callable[[Any], Any]


class FunctionFailedError(Exception):
    """Raised by a function: what Lambda says of it."""

    def __init__(self, error_type: str, message: str, log: str = "") -> None:
        super().__init__(message)
        self.error_type = error_type
        self.log = log


class Aws:
    """One account, within `moto_aws`."""

    def __init__(self) -> None:
        self.functions: dict[str, Function] = {}
        self.invocations: list[tuple[str, str, Any]] = []

    def client(self, service: str) -> Any:
        return boto3.client(service, region_name=REGION)

    # ------------------------------------------------------------------------------------------------------- Glue

    def glue_job(self, name: str, *, concurrent: int = 5) -> None:
        self.client("glue").create_job(
            Name=name,
            Role=ROLE,
            Command={"Name": "glueetl", "ScriptLocation": "s3://etl/script.py"},
            ExecutionProperty={"MaxConcurrentRuns": concurrent},
        )

    def glue_runs(self, name: str) -> list[Any]:
        return glue_backends[ACCOUNT][REGION].jobs[name].job_runs

    # -------------------------------------------------------------------------------------------------------- EMR

    def emr_cluster(self, *, logs: str = "s3://emr-logs/clusters/") -> str:
        answer = self.client("emr").run_job_flow(
            Name="etl",
            LogUri=logs,
            ReleaseLabel="emr-7.0.0",
            Instances={
                "MasterInstanceType": "m5.xlarge",
                "SlaveInstanceType": "m5.xlarge",
                "InstanceCount": 3,
                "KeepJobFlowAliveWhenNoSteps": True,
            },
            JobFlowRole="EMR_EC2_DefaultRole",
            ServiceRole="EMR_DefaultRole",
        )
        return str(answer["JobFlowId"])

    def rename_cluster(self, old: str, new: str) -> None:
        clusters = emr_backends[ACCOUNT][REGION].clusters
        clusters[new] = clusters.pop(old)
        clusters[new].id = new

    def emr_steps(self, cluster: str) -> list[Any]:
        return emr_backends[ACCOUNT][REGION].clusters[cluster].steps

    # --------------------------------------------------------------------------------------------- EMR Serverless

    def emr_application(self) -> str:
        answer = self.client("emr-serverless").create_application(name="etl", releaseLabel="emr-7.0.0", type="SPARK")
        return str(answer["applicationId"])

    def rename_application(self, old: str, new: str) -> None:
        applications = emrserverless_backends[ACCOUNT][REGION].applications
        applications[new] = applications.pop(old)
        applications[new].id = new

    def emr_job_runs(self, application: str) -> list[Any]:
        return emrserverless_backends[ACCOUNT][REGION].job_runs.get(application, [])

    # --------------------------------------------------------------------------------------------- Step Functions

    def state_machine(self, name: str, type_: str = "STANDARD") -> str:
        definition = {"StartAt": "Work", "States": {"Work": {"Type": "Pass", "End": True}}}
        answer = self.client("stepfunctions").create_state_machine(
            name=name, definition=json.dumps(definition), roleArn=ROLE, type=type_
        )
        return str(answer["stateMachineArn"])

    def executions(self, arn: str) -> list[Any]:
        return stepfunctions_backends[ACCOUNT][REGION].describe_state_machine(arn).executions

    # ----------------------------------------------------------------------------------------------------- Lambda

    def function(self, name: str, work: Function) -> None:
        """A function that is run in this process."""
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("lambda_function.py", "")
        self.client("iam").create_role(RoleName=f"role-{name}", AssumeRolePolicyDocument="{}")
        self.client("lambda").create_function(
            FunctionName=name,
            Runtime="python3.11",
            Role=f"arn:aws:iam::{ACCOUNT}:role/role-{name}",
            Handler="lambda_function.handler",
            Code={"ZipFile": packed.getvalue()},
        )
        self.functions[name] = work

    def invoke(
        self, backend: Any, name: str, qualifier: str | None, body: Any, headers: Any, answer: dict[str, str]
    ) -> bytes:
        function = backend.get_function(name, qualifier)
        kind = headers.get("X-Amz-Invocation-Type", "")
        event = json.loads(body or "null")
        self.invocations.append((function.function_name, kind, event))
        if kind == "Event":
            return b""
        try:
            return json.dumps(self.functions[function.function_name](event)).encode()
        except FunctionFailedError as error:
            answer["x-amz-function-error"] = "Unhandled"
            answer["x-amz-log-result"] = b64encode(error.log.encode()).decode()
            return json.dumps({"errorType": error.error_type, "errorMessage": str(error)}).encode()

    # ------------------------------------------------------------------------------------------------------- logs

    def log_group(self, group: str, *streams: str) -> None:
        """Groups and streams, as far as they are not there yet."""
        backend = logs_backends[ACCOUNT][REGION]
        if group not in backend.groups:
            backend.create_log_group(group, {})
        for stream in streams:
            if stream not in backend.groups[group].streams:
                backend.groups[group].create_log_stream(stream)

    def log(self, group: str, stream: str, at: datetime | int, *messages: str) -> None:
        """Lines of a stream at any time: moto's own call takes those of the last two weeks only."""
        self.log_group(group, stream)
        millis = at if isinstance(at, int) else int(at.timestamp() * 1000)
        events = logs_backends[ACCOUNT][REGION].groups[group].streams[stream].events
        events.extend(LogEvent(millis, {"timestamp": millis, "message": message}) for message in messages)


def refuse(client: Any, operation: str, code: str, message: str = "no", status: int = 400) -> Callable[[], None]:
    """Have every call of an operation answered with an error, as the service would write it; returns how to undo it."""
    body = json.dumps({"__type": code, "message": message, "Message": message, "code": code}).encode()

    def answer(request: Any, **_: Any) -> AWSResponse:
        headers = {"x-amzn-errortype": code, "content-type": "application/x-amz-json-1.1"}
        return AWSResponse(request.url, status, headers, _Raw(body))

    event = f"before-send.{client.meta.service_model.service_id.hyphenize()}.{operation}"
    client.meta.events.register_first(event, answer)
    return lambda: client.meta.events.unregister(event, answer)


def respond(client: Any, operation: str, answer: dict[str, Any]) -> None:
    """Have an operation that moto does not know answered."""
    body = json.dumps(answer).encode()
    event = f"before-send.{client.meta.service_model.service_id.hyphenize()}.{operation}"
    client.meta.events.register_first(
        event, lambda request, **_: AWSResponse(request.url, 200, {"content-type": "application/json"}, _Raw(body))
    )


class _Raw(io.BytesIO):
    def stream(self, **_: Any) -> Iterator[bytes]:
        while chunk := self.read(4096):
            yield chunk


def _stop_job_runs(response: GlueResponse) -> ActionResult:
    name, ids = response._get_param("JobName"), response._get_param("JobRunIds")
    stopped, errors = [], []
    for run in response.glue_backend.get_job(name).job_runs:
        if run.job_run_id in ids:
            run.status = "STOPPED"
            stopped.append({"JobName": name, "JobRunId": run.job_run_id})
    known = {one["JobRunId"] for one in stopped}
    for missing in set(ids) - known:
        detail = {"ErrorCode": "EntityNotFoundException", "ErrorMessage": "no such run"}
        errors.append({"JobName": name, "JobRunId": missing, "ErrorDetail": detail})
    return ActionResult({"SuccessfulSubmissions": stopped, "Errors": errors})


def _cancel_steps(response: ElasticMapReduceResponse) -> ActionResult:
    cluster, ids = response._get_param("ClusterId"), response._get_param("StepIds", [])
    for step in response.backend.clusters[cluster].steps:
        if step.id in ids:
            step.state = "CANCELLED"
    infos = [{"StepId": one, "Status": "SUBMITTED", "Reason": ""} for one in ids]
    return ActionResult({"CancelStepsInfoList": infos})


def _known_by_token(start: Callable[..., Any]) -> Callable[..., Any]:
    """StartJobRun with a client token that was seen before answers with the job run of then; moto starts another."""

    def start_job_run(backend: Any, application_id: str, client_token: str, *rest: Any, **named: Any) -> Any:
        known = backend.job_runs.get(application_id, [])
        found = next((run for run in known if run.client_token == client_token), None)
        return found or start(backend, application_id, client_token, *rest, **named)

    return start_job_run


@contextmanager
def moto_aws() -> Iterator[Aws]:
    """An empty account. Glue runs stay as they are until a test sets their state."""
    with played_jobs() as aws, mock_aws(config=_CONFIG):
        yield aws


@contextmanager
def played_jobs() -> Iterator[Aws]:
    """What moto leaves out, for a `mock_aws` that somebody else enters."""
    aws = Aws()
    state_manager.set_transition("glue::job_run", {"progression": "manual", "times": 10**9})
    with ExitStack() as stack:
        stack.callback(state_manager.unset_transition, "glue::job_run")
        stack.enter_context(mock.patch.object(GlueResponse, "batch_stop_job_run", _stop_job_runs, create=True))
        stack.enter_context(mock.patch.object(ElasticMapReduceResponse, "cancel_steps", _cancel_steps, create=True))
        start = _known_by_token(EMRServerlessBackend.start_job_run)
        stack.enter_context(mock.patch.object(EMRServerlessBackend, "start_job_run", start))

        def invoke(backend: Any, *arguments: Any) -> bytes:
            return aws.invoke(backend, *arguments)

        stack.enter_context(mock.patch.object(LambdaSimpleBackend, "invoke", invoke))
        yield aws
