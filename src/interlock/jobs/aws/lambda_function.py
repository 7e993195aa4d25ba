"""AWS Lambda: a function, invoked and waited for (`sync`), or invoked and reporting its own end (`async`).

A synchronous call is the job: it lasts as long as the function, and an answer that got lost is lost. Nobody can
ask Lambda how an invocation ended, so such a run ends as uncertain rather than start twice. An asynchronous event is
put on Lambda's queue, which may itself deliver it twice: a function that takes it has to know the run id again, and
so the event may be repeated.
"""

from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import msgspec

from interlock.decide.templates import CALLBACK_URL
from interlock.jobs.aws.clients import AwsClients
from interlock.jobs.aws.console import console, part
from interlock.jobs.aws.errors import asking, category_of, code_of, starting
from interlock.jobs.aws.logs import NOT_THERE, Match, matching_lines, read_stream
from interlock.jobs.configs import default_payload, json_text, read_config, refused, with_callback
from interlock.model.errors import JobStopError
from interlock.model.job_configs import LambdaConfig
from interlock.model.run import FailureCategory
from interlock.ports.job_targets import JobTarget, TargetSettings
from interlock.ports.jobs import JobOutput, JobRequest, JobStarted, JobState, JobStatus, JobStop, Recovery

LONGEST: Final = timedelta(minutes=15)
"""How long a function may run at most; a synchronous call waits for as long."""
_MARGIN: Final = timedelta(seconds=30)
_PAYLOAD_LIMIT: Final = 1000
_TAIL_LINES: Final = 10
_TIMED_OUT: Final = ("Sandbox.Timedout", "Task timed out after")
_ENDED: Final = ("REPORT RequestId:", "platform.report")


class _Failure(msgspec.Struct, frozen=True, rename="camel"):
    """What a function's error looks like in the runtimes of AWS."""

    error_message: str = ""
    error_type: str = ""


class LambdaRunner:
    """Jobs of type `lambda`. The job id is the id of the request, as in the function's own log.

    `limit`: how long this controller may wait for a synchronous call. `callback_url` as in TargetSettings.
    """

    def __init__(
        self,
        clients: AwsClients,
        *,
        limit: timedelta = LONGEST,
        callback_url: Callable[[JobRequest], str] = lambda _: "",
    ) -> None:
        self._clients = clients
        self._limit = limit
        self._callback_url = callback_url

    def start(self, request: JobRequest) -> JobStarted:
        """Invoke. In `sync` mode this lasts as long as the job."""
        config = _config_of(request)
        waits = config.mode == "sync"
        with starting(f"Lambda function {config.function_name}"):
            client = self._clients.starting("lambda", config, read_timeout=self._limit + _MARGIN if waits else None)
            answer = client.invoke(**_invocation(request, config, self._callback(request, config)))
            payload = answer["Payload"].read() if waits else b""
        job_id = str(answer.get("ResponseMetadata", {}).get("RequestId") or request.run_id)
        return JobStarted(job_id=job_id, status=_outcome(answer, payload) if waits else None)

    def recover(self, request: JobRequest) -> JobStarted | Recovery:
        """A synchronous answer cannot be had again; an event may be sent again."""
        sync = _config_of(request).mode == "sync"
        return Recovery.UNDECIDABLE if sync else Recovery.START_AGAIN

    def check(self, request: JobRequest, job_id: str) -> JobStatus:
        """Running, until the function has reported; the end of a synchronous call was known at its start."""
        return JobStatus(state=JobState.RUNNING)

    def stop(self, request: JobRequest, job_id: str) -> JobStop:
        """Refused: Lambda has no call that ends an invocation."""
        config = _config_of(request)
        if config.mode == "sync":
            return JobStop.ENDED  # the call was the job, and was answered
        raise JobStopError(
            f"an invocation of the Lambda function {config.function_name} cannot be stopped: it ends by itself within"
            f" its timeout; or report its end (interlock job report {request.key.pipeline}"
            f" --date {request.key.date} fail)"
        )

    def output(self, request: JobRequest, job_id: str, *, offset: int = 0) -> JobOutput:
        """What this invocation wrote, from the function's log group in CloudWatch."""
        config = _config_of(request)
        link = self.link(request, job_id)
        with asking(f"logs of the Lambda function {config.function_name}"):
            logs = self._clients.beside("logs", config)
            group = self._log_group(config)
            marks = self._marks(logs, group, request, job_id)
            if not marks:
                return JobOutput(next_offset=offset, complete=config.mode == "sync", link=link)
            over = any(word in marks[-1].message for word in _ENDED)
            until = marks[-1].timestamp if over else None
            # A stream has one invocation after the other: between its first and its last line all are its own.
            piece = read_stream(logs, group, marks[0].log_stream_name, offset or marks[0].timestamp, until=until)
        if piece is None:
            return JobOutput(next_offset=offset, complete=over, link=link)
        complete = over and not piece.more
        return JobOutput(text=piece.text, next_offset=piece.next_offset, complete=complete, link=link)

    def link(self, request: JobRequest, job_id: str) -> str:
        """The function in the console of Lambda."""
        config = _config_of(request)
        place = f"functions/{part(_plain_name(config))}?tab=monitoring"
        return console("lambda", self._clients.region(config), place)

    def close(self) -> None:
        """Close the idle connections."""
        self._clients.close()

    # ---------------------------------------------------------------------------------------------------- inside

    def _callback(self, request: JobRequest, config: LambdaConfig) -> str:
        """Where the function reports its end. It need not be known, unless the config puts it somewhere."""
        address = self._callback_url(request) if config.mode == "async" else ""
        if not address and CALLBACK_URL in str(config.payload):
            problem = "the controller's address is not known: set public_url in interlock.toml"
            raise refused(request, f"{CALLBACK_URL}: {problem if config.mode == 'async' else 'needs mode: async'}")
        return address

    def _log_group(self, config: LambdaConfig) -> str:
        """The function's log group: its own setting, where we may ask for it, else the usual one."""
        given = {"Qualifier": config.qualifier} if config.qualifier else {}
        try:
            client = self._clients.reading("lambda", config)
            answer = client.get_function_configuration(FunctionName=config.function_name, **given)
        except Exception as error:
            if code_of(error) not in ("AccessDeniedException", "ResourceNotFoundException"):
                raise
            answer = {}
        return str(answer.get("LoggingConfig", {}).get("LogGroup") or f"/aws/lambda/{_plain_name(config)}")

    def _marks(self, logs: Any, group: str, request: JobRequest, job_id: str) -> list[Match]:
        """The lines that name the request: the first and the last of an invocation are among them."""
        since = 0
        if request.started_at is not None:
            since = int((request.started_at - self._limit - _MARGIN).timestamp() * 1000)
        try:
            found = list(matching_lines(logs, group, f'"{job_id}"', since=since))
        except Exception as error:
            if code_of(error) in NOT_THERE:
                return []
            raise
        return sorted(found, key=lambda line: line.timestamp)


def _config_of(request: JobRequest) -> LambdaConfig:
    """The config, in the function's own region where its ARN says it."""
    config = read_config(request, LambdaConfig)
    parts = config.function_name.split(":")
    region = parts[3] if parts[0] == "arn" and len(parts) > 3 else None
    return msgspec.structs.replace(config, region=config.region or region)


def _invocation(request: JobRequest, config: LambdaConfig, callback: str) -> dict[str, Any]:
    payload = default_payload(request, callback) if config.payload is None else with_callback(config.payload, callback)
    sync = {"InvocationType": "RequestResponse", "LogType": "Tail"}
    parameters = {
        "FunctionName": config.function_name,
        "Payload": json_text(payload),
        **(sync if config.mode == "sync" else {"InvocationType": "Event"}),
    }
    return {**parameters, "Qualifier": config.qualifier} if config.qualifier else parameters


def _outcome(answer: Any, payload: bytes) -> JobStatus:
    """A response is success; one that is marked as an error of the function is not."""
    if not answer.get("FunctionError"):
        return JobStatus(state=JobState.SUCCEEDED)
    text = payload.decode(errors="replace")
    try:
        failure = msgspec.json.decode(payload, type=_Failure)
    except msgspec.DecodeError:
        failure = _Failure()
    said = ": ".join(filter(None, (failure.error_type, failure.error_message))) or text
    error = f"{said[:_PAYLOAD_LIMIT]}{_tail(answer.get('LogResult'))}"
    if any(word in said for word in _TIMED_OUT):
        return JobStatus(state=JobState.TIMED_OUT, category=FailureCategory.TIMEOUT, error=error)
    return JobStatus(state=JobState.FAILED, category=category_of(said), error=error)


def _tail(log: object) -> str:
    """The last lines of the log that came with the answer."""
    try:
        text = b64decode(log if isinstance(log, str) else "").decode(errors="replace")
    except NotBase64:
        return ""
    lines = text.strip().splitlines()[-_TAIL_LINES:]
    return "\n".join(["; its last output:", *lines]) if lines else ""


def _plain_name(config: LambdaConfig) -> str:
    """`etl` of `etl`, `etl:live`, `123456789012:function:etl` and `arn:aws:lambda:...:function:etl:live`."""
    name = config.function_name
    name = name.split(":function:", 1)[1] if ":function:" in name else name
    return name.split(":", 1)[0]


def _make(settings: TargetSettings) -> LambdaRunner:
    return LambdaRunner(AwsClients(allow_private=settings.allow_private), callback_url=settings.callback_url)


TARGET: Final = JobTarget(make=_make, config=LambdaConfig)
