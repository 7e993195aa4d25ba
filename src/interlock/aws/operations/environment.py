"""An environment that was asked for by name and found: its names, and clients of the services.

Opening it asks who calls and whether the control table is there, so that a mistake in the address, the credentials or
the region is reported before anything else, in one line. Nothing is created.
"""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from interlock.aws.names import Names
from interlock.aws.operations.address import AwsAddress
from interlock.model.errors import AccessError, InterlockError, UnavailableError
from interlock.model.keys import Table

if TYPE_CHECKING:
    import boto3

T = TypeVar("T")

_CONNECT_SECONDS: Final = 5
_READ_SECONDS: Final = 30
_ATTEMPTS: Final = 3
_CONNECTIONS: Final = 32
_EXPIRED: Final = frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired"})
_UNKNOWN: Final = frozenset(
    {"InvalidClientTokenId", "UnrecognizedClientException", "SignatureDoesNotMatch", "InvalidSignatureException"}
)
_DENIED: Final = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "AuthorizationError",
        "UnauthorizedOperation",
        "AuthorizationErrorException",
    }
)
_NO_RIGHTS: Final = "ask for that right for the role or user you call as"


class Environment:
    """An environment of an account, and those who can be asked about it."""

    def __init__(self, address: AwsAddress, session: "boto3.Session", names: Names) -> None:
        self.address = address
        self.names = names
        self._session = session
        self._lock = threading.Lock()
        self._clients: dict[str, Any] = {}

    def client(self, service: str) -> Any:
        """A client of a service, made when it is first asked for. Clients may be shared by threads."""
        with self._lock:
            if service not in self._clients:
                self._clients[service] = _client(self._session, service)
            return self._clients[service]

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            for client in self._clients.values():
                client.close()
            self._clients.clear()

    def ask(self, doing: str, act: Callable[[], T]) -> T:
        """Make a call; a failure becomes an error whose one line says what is missing and what to do."""
        return asked(doing, act, str(self.address), self.names.region)


def open_environment(address: AwsAddress) -> Environment:
    """The environment of an address; an error says what is wrong: boto3, profile, region, credentials, the name."""
    try:
        import boto3
    except ImportError as error:
        raise AccessError(f"{address} needs boto3, which is not installed: pip install 'interlock[aws]'") from error
    where = str(address)

    def begin() -> boto3.Session:
        return boto3.Session(profile_name=address.profile, region_name=address.region)

    session = asked("reading the AWS configuration", begin, where, address.region)
    region = session.region_name
    if not region:
        raise AccessError(f"{where}: no region is set: add ?region=eu-west-1 to the address, or set AWS_REGION")
    who = asked(
        "asking who calls (sts:GetCallerIdentity)",
        lambda: _client(session, "sts").get_caller_identity(),
        where,
        region,
    )
    found = Environment(address, session, Names(address.environment, region, str(who["Account"])))
    _check_there(found)
    return found


def _check_there(environment: Environment) -> None:
    names = environment.names
    table = names.tables[Table.CONTROL]
    client = environment.client("dynamodb")
    try:
        environment.ask(f"looking for table {table}", lambda: client.describe_table(TableName=table))
    except _NotThereError as error:
        raise AccessError(
            f"{environment.address}: there is no environment {names.environment!r} in account {names.account}, region"
            f" {names.region} (no table {table}): mend the name or the region, or deploy it with the Terraform module"
        ) from error


# ------------------------------------------------------------------------------------------------------- the calls


class _NotThereError(AccessError):
    """What was asked for does not exist."""


def asked(doing: str, act: Callable[[], T], where: str, region: str | None) -> T:
    """Make a call to AWS; see `Environment.ask`."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        return act()
    except ClientError as error:
        raise _refused(error, doing, where) from error
    except (BotoCoreError, ValueError) as error:  # ValueError: a region that is no host name
        raise _unreachable(error, doing, where, region) from error


def _refused(error: Any, doing: str, where: str) -> InterlockError:
    code = str(error.response.get("Error", {}).get("Code", ""))
    said = " ".join(str(error.response.get("Error", {}).get("Message", "")).split()) or code
    if code in _EXPIRED:
        return AccessError(f"{where}: the AWS credentials have expired ({doing}): log in again")
    if code in _UNKNOWN:
        return AccessError(f"{where}: AWS does not know these credentials ({doing}: {said}): mend them or the profile")
    if code in _DENIED:
        return AccessError(f"{where}: not allowed ({doing}): {said}: {_NO_RIGHTS}")
    if "NotFound" in code or "DoesNotExist" in code or "NonExistentQueue" in code:
        return _NotThereError(f"{where}: {doing}: there is no such resource in this account and region: {said}")
    return UnavailableError(f"{where}: {doing}: {code}: {said}")


def _unreachable(error: Exception, doing: str, where: str, region: str | None) -> InterlockError:
    said, name = " ".join(str(error).split()), type(error).__name__
    match name:
        case "NoCredentialsError" | "PartialCredentialsError" | "CredentialRetrievalError":
            advice = "set AWS_PROFILE or the AWS_* variables, log in, or add ?profile=NAME to the address"
            return AccessError(f"{where}: no AWS credentials ({said}): {advice}")
        case "ProfileNotFound":
            return AccessError(f"{where}: {said}: `aws configure list-profiles` shows those there are")
        case "TokenRetrievalError" | "SSOTokenLoadError" | "UnauthorizedSSOTokenError":
            return AccessError(f"{where}: the AWS login has expired ({said}): log in again")
        case "EndpointConnectionError" | "InvalidRegionError" | "ValueError":
            advice = f"is {region} the name of a region, and is there a network?"
            return AccessError(f"{where}: {doing}: {said}: {advice}")
    return UnavailableError(f"{where}: {doing}: {said}")


def is_missing(error: InterlockError) -> bool:
    """Does an error of `Environment.ask` say that what was asked for does not exist?"""
    return isinstance(error, _NotThereError)


def _client(session: "boto3.Session", service: str) -> Any:
    from botocore.config import Config

    return session.client(
        service,
        config=Config(
            connect_timeout=_CONNECT_SECONDS,
            read_timeout=_READ_SECONDS,
            retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
            max_pool_connections=_CONNECTIONS,
            user_agent_extra="interlock",
        ),
    )
