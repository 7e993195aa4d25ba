"""What AWS's refusals mean for a start: one table for all its services.

Three things can be said of a call that failed. It will never be taken (no such job, not allowed). It was not taken now
(throttled, too many runs). Or nobody knows: the service broke while it had the request, or the answer got lost; then
the target is asked for our run id before anything is started again.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any, Final

from interlock.model.errors import InterlockError, JobStartError, UnavailableError
from interlock.model.run import FailureCategory

_QUOTED: Final = 1000


class Refusal(StrEnum):
    """What a failed start says."""

    PERMANENT = "permanent"
    TRANSIENT = "transient"
    UNKNOWN = "unknown"


_P, _T, _U = Refusal.PERMANENT, Refusal.TRANSIENT, Refusal.UNKNOWN

# A code alone does not say it.
_BY_MESSAGE: Final = (
    # EMR: at most 256 steps may be active or waiting.
    (re.compile("maximum number of (active )?steps", re.IGNORECASE), _T),
    (re.compile("rate exceeded|too many requests", re.IGNORECASE), _T),
)
_BY_CODE: Final = {
    # Not allowed
    "AccessDenied": _P,
    "AccessDeniedException": _P,
    "EC2AccessDeniedException": _P,
    "KMSAccessDeniedException": _P,
    "KmsAccessDeniedException": _P,
    "InvalidClientTokenId": _P,
    "InvalidSignatureException": _P,
    "OptInRequired": _P,
    "SignatureDoesNotMatch": _P,
    "UnauthorizedOperation": _P,
    "UnrecognizedClientException": _P,
    # Not there
    "EntityNotFoundException": _P,
    "KMSNotFoundException": _P,
    "ResourceNotFoundException": _P,
    "StateMachineDeleting": _P,
    "StateMachineDoesNotExist": _P,
    # Not valid; some of these have a 5xx status
    "InvalidArn": _P,
    "InvalidExecutionInput": _P,
    "InvalidInputException": _P,
    "InvalidName": _P,
    "InvalidParameterValueException": _P,
    "InvalidRequestContentException": _P,
    "InvalidRequestException": _P,
    "InvalidRuntimeException": _P,
    "InvalidSecurityGroupIDException": _P,
    "InvalidSubnetIDException": _P,
    "InvalidZipFileException": _P,
    "KMSDisabledException": _P,
    "KMSInvalidStateException": _P,
    "RecursiveInvocationException": _P,
    "RequestTooLargeException": _P,
    "ValidationException": _P,
    # Not now: too much, too many, not ready
    "ConcurrentModificationException": _T,
    "ConcurrentRunsExceededException": _T,
    "ConflictException": _T,
    "EC2ThrottledException": _T,
    "EC2UnexpectedException": _T,
    "EFSIOException": _T,
    "EFSMountConnectivityException": _T,
    "EFSMountFailureException": _T,
    "EFSMountTimeoutException": _T,
    "ENILimitReachedException": _T,
    "ENINotReadyException": _T,
    "ExecutionLimitExceeded": _T,
    "ExpiredToken": _T,  # boto3 fetches another
    "ExpiredTokenException": _T,
    "KmsThrottlingException": _T,
    "LimitExceededException": _T,
    "RequestExpired": _T,
    "RequestLimitExceeded": _T,
    "RequestThrottled": _T,
    "RequestThrottledException": _T,
    "ResourceConflictException": _T,
    "ResourceNotReadyException": _T,
    "ResourceNumberLimitExceededException": _T,
    "ServiceQuotaExceededException": _T,
    "ServiceUnavailable": _T,
    "ServiceUnavailableException": _T,
    "SlowDown": _T,
    "SnapStartException": _T,
    "SnapStartNotReadyException": _T,
    "SnapStartTimeoutException": _T,
    "SubnetIPAddressLimitReachedException": _T,
    "Throttling": _T,
    "ThrottledException": _T,
    "ThrottlingException": _T,
    "TooManyRequestsException": _T,
    # The service had the request when it broke
    "InternalError": _U,
    "InternalFailure": _U,
    "InternalServerError": _U,
    "InternalServerException": _U,
    "InternalServiceException": _U,
    "OperationTimeoutException": _U,
    "ServiceException": _U,
}
# Errors of boto3 itself, by the name of their class. The request was not sent, or nobody knows.
_BY_CLASS: Final = {
    "ConnectTimeoutError": _T,
    "CredentialRetrievalError": _T,
    "EndpointConnectionError": _T,
    "NoCredentialsError": _T,  # the metadata service may have been slow
    "ProxyConnectionError": _T,
    "SSLError": _T,
    "SSOTokenLoadError": _T,
    "TokenRetrievalError": _T,
    "UnauthorizedSSOTokenError": _T,
    "ConnectionClosedError": _U,
    "HTTPClientError": _U,
    "ReadTimeoutError": _U,
    "ResponseParserError": _U,
}
_HINTS: Final = {
    "NoCredentialsError": "give the controller a role, a profile, or the AWS_* environment variables",
    "NoRegionError": "write `region` into job.config, or set AWS_REGION where the controller runs",
    "ProfileNotFound": "it must be in the AWS configuration of the user that the controller runs as",
}


def code_of(error: BaseException) -> str:
    """The code that AWS gave an error; "" when the error is boto3's own."""
    return str(_answer(error).get("Error", {}).get("Code", ""))


def refusal_of(error: Exception) -> Refusal:
    """What a failed call of AWS says of its request."""
    answer = _answer(error)
    if not answer:
        # What is left are mistakes that no repetition mends: bad parameters, no region, no such profile.
        return next((_BY_CLASS[cls.__name__] for cls in type(error).__mro__ if cls.__name__ in _BY_CLASS), _P)
    message = str(answer.get("Error", {}).get("Message", ""))
    for pattern, meaning in _BY_MESSAGE:
        if pattern.search(message):
            return meaning
    return _BY_CODE.get(code_of(error)) or _by_status(answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _by_status(status: int) -> Refusal:
    if status in (429, 503):
        return _T
    return _P if 400 <= status < 500 else _U


def _answer(error: BaseException) -> dict[str, Any]:
    answer = getattr(error, "response", None)
    return answer if isinstance(answer, dict) else {}


@contextmanager
def starting(what: str) -> Iterator[None]:
    """Translate what a start raises: JobStartError, or UnavailableError when nobody knows whether it started."""
    with _translated(what, starts=True):
        yield


@contextmanager
def asking(what: str) -> Iterator[None]:
    """Translate what any other call raises: UnavailableError, for it may be made again."""
    with _translated(what, starts=False):
        yield


@contextmanager
def _translated(what: str, *, starts: bool) -> Iterator[None]:
    try:
        yield
    except InterlockError:
        raise
    except Exception as error:
        if not _of_aws(error):
            raise
        message = f"{what}: {describe(error)}"
        refusal = refusal_of(error)
        if not starts or refusal is Refusal.UNKNOWN:
            raise UnavailableError(message) from error
        raise JobStartError(message, permanent=refusal is Refusal.PERMANENT) from error


def _of_aws(error: Exception) -> bool:
    return type(error).__module__.partition(".")[0] in ("boto3", "botocore", "s3transfer") or bool(_answer(error))


def describe(error: Exception) -> str:
    """An error of AWS or boto3 in one line, with what to do where we know."""
    code = code_of(error)
    text = str(_answer(error).get("Error", {}).get("Message", "")) if code else str(error)
    hint = _HINTS.get(type(error).__name__)
    line = " ".join(f"{code}: {text}".split() if code else text.split())[:_QUOTED]
    return f"{line}: {hint}" if hint else line


# ---------------------------------------------------------------------------------------------- failures of jobs

# Words in the error of a Spark or Hive job that say: the world's fault, not the code's.
_PASSING: Final = re.compile(
    r"throttl|rate exceeded|slow ?down|too many requests|service unavailable"
    r"|internal (service|server) (error|exception)"
    r"|executorlostfailure|lost executor|executor lost|decommission|spot (instance|interruption)"
    r"|insufficient.{0,20}capacity|resource ?unavailable|resources? (are )?not available"
    r"|connection (reset|refused|timed out)|sockettimeout|unknownhost"
    r"|concurrentrunsexceeded|concurrent(append|modification)exception",
    re.IGNORECASE,
)


def category_of(error: str) -> FailureCategory:
    """Whose fault a failed job is, by its own words: the code's, unless they name something that passes."""
    return FailureCategory.TRANSIENT if _PASSING.search(error) else FailureCategory.PERMANENT
