"""Secrets of jobs: looked up for each call of a target, in memory alone, and hidden in whatever the target says.

`SecretRunner` stands between the controller and a target. Nothing on the controller's side of it ever holds a secret:
not the request, not a log, not an error, not what a job wrote.
"""

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from interlock.decide.literal_secrets import echoes
from interlock.decide.masking import Masks
from interlock.decide.templates import SECRET_PREFIX, resolve
from interlock.jobs.registry import close_runner
from interlock.model.errors import JobStartError, JobStopError, SecretError, UnavailableError
from interlock.ports.jobs import JobOutput, JobRequest, JobRunner, JobStarted, JobStatus, JobStop, Recovery
from interlock.ports.secrets import Secrets

_LARGEST: Final = 64 * 1024
_INSTALL: Final = "pip install 'interlock[aws]'"
_T = TypeVar("_T")


class SecretStore:
    """Secrets of the controller's environment, of files below a folder, and of AWS (with boto3)."""

    def __init__(self, environment: Mapping[str, str], folder: Path | None = None) -> None:
        self._environment = environment
        self._folder = folder
        self._schemes: Final[Mapping[str, Callable[[str], str]]] = {
            "file": self._of_file,
            "secretsmanager": _of_secrets_manager,
            "ssm": _of_parameter_store,
        }

    def get(self, name: str) -> str:
        """The value now; an empty one is an error, as a job with half a password is."""
        scheme, _, rest = name.partition(":")
        value = self._of_environment(name) if name.startswith(SECRET_PREFIX) else self._schemes[scheme](rest)
        if not value:
            raise SecretError(f"the secret ${{{name}}} is empty", permanent=True)
        return value

    def _of_environment(self, name: str) -> str:
        if name not in self._environment:
            raise SecretError(f"the secret ${{{name}}} is not set where the controller runs", permanent=True)
        return self._environment[name]

    def _of_file(self, name: str) -> str:
        """Without the newline that editors put at the end."""
        if self._folder is None:
            raise SecretError(
                f"${{file:{name}}}: no folder of secrets is set: name it as `secrets` under [jobs] in interlock.toml",
                permanent=True,
            )
        path = (self._folder / name).resolve()
        if not path.is_relative_to(self._folder.resolve()):
            raise SecretError(f"${{file:{name}}} is not below the folder of secrets {self._folder}", permanent=True)
        try:
            with path.open("rb") as file:
                data = file.read(_LARGEST + 1)
        except OSError as error:
            gone = isinstance(error, FileNotFoundError | IsADirectoryError | NotADirectoryError | PermissionError)
            raise SecretError(f"${{file:{name}}}: cannot be read: {error.strerror}", permanent=gone) from error
        if len(data) > _LARGEST:
            raise SecretError(f"${{file:{name}}} is larger than {_LARGEST} bytes", permanent=True)
        try:
            return data.decode().removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError:
            raise SecretError(f"${{file:{name}}} is not text in UTF-8", permanent=True) from None


def missing_secrets() -> dict[str, str]:
    """The kinds of secrets that this installation cannot look up, and what to install."""
    if find_spec("boto3") is not None:
        return {}
    return {kind: f"secrets of {kind} need the package boto3: {_INSTALL}" for kind in ("secretsmanager", "ssm")}


def _of_secrets_manager(arn: str) -> str:
    # arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME; a bare name is looked up in the controller's own region.
    parts = arn.split(":")
    region = parts[3] if len(parts) > 5 and parts[0] == "arn" else None
    name = f"secretsmanager:{arn}"
    answer = _ask_aws("secretsmanager", region, name, lambda client: client.get_secret_value(SecretId=arn))
    if "SecretString" not in answer:
        raise SecretError(f"${{{name}}} is binary, not text", permanent=True)
    return str(answer["SecretString"])


def _of_parameter_store(name: str) -> str:
    answer = _ask_aws("ssm", None, f"ssm:{name}", lambda client: client.get_parameter(Name=name, WithDecryption=True))
    return str(answer["Parameter"]["Value"])


_ACTIONS: Final = {"secretsmanager": "secretsmanager:GetSecretValue", "ssm": "ssm:GetParameter"}
_HINTS: Final = {
    "AccessDeniedException": ": whoever runs the controller needs {action} on it, and kms:Decrypt on a key of its own",
    "ParameterNotFound": ": there is no such parameter in the controller's region",
    "ResourceNotFoundException": ": there is no such secret",
}
# What AWS says when asking again cannot help.
_REFUSED_BY_AWS: Final = frozenset(
    {
        "AccessDeniedException",
        "DecryptionFailure",
        "InvalidKeyId",
        "InvalidParameterException",
        "InvalidRequestException",
        "ParameterNotFound",
        "ResourceNotFoundException",
        "UnrecognizedClientException",
        "ValidationException",
    }
)


def _ask_aws(service: str, region: str | None, name: str, ask: Callable[[Any], Mapping[str, Any]]) -> Mapping[str, Any]:
    try:
        import boto3
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError:
        message = f"${{{name}}} needs the package boto3, which is not installed: {_INSTALL}"
        raise SecretError(message, permanent=True) from None
    try:
        return ask(boto3.client(service, region_name=region))
    except ClientError as error:
        code = error.response["Error"]["Code"]
        hint = _HINTS.get(code, "").format(action=_ACTIONS[service])
        raise SecretError(f"${{{name}}}: AWS answered {code}{hint}", permanent=code in _REFUSED_BY_AWS) from error
    except BotoCoreError as error:
        raise SecretError(f"${{{name}}}: {error}", permanent=False) from error


class SecretRunner:
    """A target whose requests get their secrets here, and whose words lose them."""

    def __init__(self, runner: JobRunner, secrets: Secrets) -> None:
        self._runner = runner
        self._secrets = secrets

    def start(self, request: JobRequest) -> JobStarted:
        """As the target does it."""
        return self._call(request, self._runner.start, _hide_started)

    def recover(self, request: JobRequest) -> JobStarted | Recovery:
        """As the target does it."""
        return self._call(request, self._runner.recover, _hide_recovered)

    def check(self, request: JobRequest, job_id: str) -> JobStatus:
        """As the target does it."""
        return self._call(request, lambda resolved: self._runner.check(resolved, job_id), _hide_status)

    def stop(self, request: JobRequest, job_id: str) -> JobStop:
        """As the target does it."""
        return self._call(request, lambda resolved: self._runner.stop(resolved, job_id), _hide_nothing)

    def output(self, request: JobRequest, job_id: str, *, offset: int = 0) -> JobOutput:
        """As the target does it; the beginning of a secret at the end of a piece is left for the next piece."""
        return self._call(request, lambda resolved: self._runner.output(resolved, job_id, offset=offset), _hide_output)

    def link(self, request: JobRequest, job_id: str) -> str:
        """As the target does it; a link with a secret in it is none."""
        return self._call(request, lambda resolved: self._runner.link(resolved, job_id), _hide_link)

    def close(self) -> None:
        """Close the target."""
        close_runner(self._runner)

    def _call(self, request: JobRequest, work: Callable[[JobRequest], _T], hide: Callable[[_T, Masks], _T]) -> _T:
        values: dict[str, str] = {}

        def value(name: str) -> str:
            if name not in values:
                values[name] = self._secrets.get(name)
            return values[name]

        resolved = replace(request, config=resolve(request.config, value))
        masks = Masks({*values.values(), *echoes(request.config, _known_of(request))})
        try:
            return hide(work(resolved), masks)
        except Exception as error:
            if not masks.found_in(str(error)):
                raise
            # Without the original error, whose text is the very thing to hide.
            raise _without_secrets(error, masks) from None


def _known_of(request: JobRequest) -> list[str]:
    """What of a config is the run's own, filled into its templates."""
    key = request.key
    return [key.pipeline, key.schedule, key.date, request.run_id]


def _without_secrets(error: Exception, masks: Masks) -> Exception:
    message = masks.hide(str(error))
    if isinstance(error, JobStartError):
        return JobStartError(message, permanent=error.permanent)
    if isinstance(error, JobStopError):
        return JobStopError(message)
    return UnavailableError(f"{type(error).__name__}: {message}")


def _hide_nothing(stop: JobStop, _masks: Masks) -> JobStop:
    return stop


def _hide_link(link: str, masks: Masks) -> str:
    return "" if masks.found_in(link) else link


def _hide_status(status: JobStatus, masks: Masks) -> JobStatus:
    hidden = {name: masks.hide(getattr(status, name)) for name in ("error", "warning", "answer")}
    return replace(status, **hidden)


def _hide_started(started: JobStarted, masks: Masks) -> JobStarted:
    status = None if started.status is None else _hide_status(started.status, masks)
    return replace(started, status=status, answer=masks.hide(started.answer))


def _hide_recovered(found: JobStarted | Recovery, masks: Masks) -> JobStarted | Recovery:
    return _hide_started(found, masks) if isinstance(found, JobStarted) else found


def _hide_output(output: JobOutput, masks: Masks) -> JobOutput:
    held = 0 if output.complete else masks.unfinished(output.text)
    # The text is nothing but the beginning of a secret: it is shown once it is sure to be none, or there is more.
    kept, later = output.text[: len(output.text) - held], output.text[len(output.text) - held :]
    return replace(
        output,
        text=masks.hide(kept),
        next_offset=output.next_offset - len(later.encode()),
        link=_hide_link(output.link, masks),
    )
