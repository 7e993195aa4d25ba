"""What AWS answers when it does not do what it was asked, as errors of this project."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
    ProfileNotFound,
)

from interlock.model.errors import (
    AccessError,
    CommitRefusedError,
    InterlockError,
    StoreError,
    ThrottledError,
    UnavailableError,
)

T = TypeVar("T")

THROTTLED: Final = frozenset(
    {
        "ExecutionLimitExceeded",
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ServiceQuotaExceededException",
        "ThrottledException",
        "Throttling",
        "ThrottlingError",
        "ThrottlingException",
        "TooManyRequestsException",
        "TransactionConflict",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)
_FAILING: Final = frozenset({"InternalServerError", "InternalServerException", "ServiceUnavailable", "InternalFailure"})
_DENIED: Final = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidClientTokenId",
        "UnauthorizedOperation",
        "UnrecognizedClientException",
    }
)
_NOWHERE: Final = frozenset(
    {
        "AWS.SimpleQueueService.NonExistentQueue",
        "QueueDoesNotExist",
        "ResourceNotFoundException",
        "StateMachineDoesNotExist",
    }
)
_SETUP: Final = (NoCredentialsError, NoRegionError, PartialCredentialsError, ProfileNotFound)


def code_of(error: ClientError) -> str:
    """The name AWS gives to a failure."""
    return str(error.response.get("Error", {}).get("Code", ""))


def may_pass(error: Exception) -> bool:
    """Could the same call succeed later: throttling, a service in trouble, a lost connection?"""
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return code_of(error) in THROTTLED or code_of(error) in _FAILING or int(status) >= 500
    return isinstance(error, BotoCoreError) and not isinstance(error, _SETUP)


def throttled(error: Exception) -> bool:
    """Was the call refused because it came too fast, or collided with another one?"""
    if not isinstance(error, ClientError):
        return False
    return any(code in THROTTLED for code in (code_of(error), *(one.get("Code") for one in reasons(error))))


def passing(error: Exception, doing: str) -> UnavailableError:
    """The error to raise for a failed call that may succeed later; throttling passes later than the rest."""
    return (ThrottledError if throttled(error) else UnavailableError)(f"{doing}: {error}")


def translated(error: Exception, doing: str) -> InterlockError:
    """The error to raise for a failed call. `doing`: what was asked, and of what."""
    if may_pass(error):
        return passing(error, doing)
    if isinstance(error, ClientError):
        if code_of(error) in _DENIED:
            return AccessError(f"{doing}: not allowed: {error}")
        if code_of(error) in _NOWHERE:
            return AccessError(f"{doing}: there is no such resource in this account and region: {error}")
        if code_of(error) in ("ValidationException", "ValidationError"):
            return CommitRefusedError(f"{doing}: {error}")
    if isinstance(error, _SETUP):
        return AccessError(f"{doing}: {error}")
    return StoreError(f"{doing}: {error}")


def call(doing: str, act: Callable[[], T]) -> T:
    """Make a call, its failure as an error of this project."""
    try:
        return act()
    except (ClientError, BotoCoreError) as error:
        raise translated(error, doing) from error


def reasons(error: ClientError) -> list[dict[str, Any]]:
    """Why each write of a cancelled transaction failed, in their order."""
    return list(error.response.get("CancellationReasons", []))
