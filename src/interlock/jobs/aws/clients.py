"""boto3 for the targets on AWS: who calls (profile, role), from where (region), and at which address.

Credentials come from boto3's own chain and nowhere else; a role is assumed on top of it and renewed before it expires.
boto3 is an extra (`interlock[aws]`) and is loaded with the first job that needs it.
"""

import threading
from collections import OrderedDict
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import msgspec

from interlock.jobs.addresses import AddressPolicy, Resolve, resolve_host
from interlock.model.errors import JobStartError
from interlock.model.job_configs import AwsConfig

if TYPE_CHECKING:
    import boto3

_KEPT: Final = 64
_CONNECT_SECONDS: Final = 10
_READ_SECONDS: Final = 60
_CONNECTIONS: Final = 32
_READING_ATTEMPTS: Final = 3
# VPC endpoints have private addresses and names that AWS alone can give.
_OWN_NAMES: Final = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")


class _Caller(msgspec.Struct, frozen=True):
    """Who calls, and from where."""

    region: str | None
    profile: str | None
    role_arn: str | None

    @classmethod
    def of(cls, config: AwsConfig) -> "_Caller":
        return cls(config.region, config.profile, config.role_arn)


class _Way(msgspec.Struct, frozen=True):
    """One client: what decides which requests it makes, and how."""

    caller: _Caller
    service: str
    endpoint_url: str | None
    repeats: bool
    read_seconds: float


class AwsClients:
    """The clients of all targets on AWS: each is made when first needed, and kept for those with the same config.

    `allow_private` as in AddressPolicy, for `endpointUrl`.
    """

    def __init__(
        self, *, allow_private: bool | tuple[str, ...] | list[str] = False, resolve: Resolve = resolve_host
    ) -> None:
        self._policy = AddressPolicy(allow_private)
        self._resolve = resolve
        self._lock = threading.Lock()
        self._sessions: OrderedDict[_Caller, boto3.Session] = OrderedDict()
        self._clients: OrderedDict[_Way, Any] = OrderedDict()

    def starting(self, service: str, config: AwsConfig, *, read_timeout: timedelta | None = None) -> Any:
        """A client for calls that must not be made twice: boto3 repeats none of them, whatever happens."""
        seconds = read_timeout.total_seconds() if read_timeout is not None else _READ_SECONDS
        return self._client(_Way(_Caller.of(config), service, config.endpoint_url, False, seconds))

    def reading(self, service: str, config: AwsConfig) -> Any:
        """A client for calls that may be repeated, of the target's own service."""
        return self._client(_Way(_Caller.of(config), service, config.endpoint_url, True, _READ_SECONDS))

    def beside(self, service: str, config: AwsConfig) -> Any:
        """A client of another service than the target's (logs, S3), to which `endpointUrl` does not apply."""
        return self._client(_Way(_Caller.of(config), service, None, True, _READ_SECONDS))

    def region(self, config: AwsConfig) -> str:
        """Where the config's calls go; "" when nothing says so. Calls nobody."""
        if config.region:
            return config.region
        try:
            with self._lock:
                return str(self._session(_Caller.of(config)).region_name or "")
        except Exception:  # noqa: BLE001 - a profile that does not exist, boto3 not there: then nobody knows
            return ""

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            for client in self._clients.values():
                client.close()
            self._clients.clear()
            self._sessions.clear()

    def _client(self, way: _Way) -> Any:
        # boto3 does not promise that a session makes clients for several threads at once; the clients themselves may
        # be shared. Nothing here calls AWS: credentials are fetched with the first request.
        with self._lock:
            found = self._clients.get(way)
            if found is None:
                found = self._make(way)
                self._clients[way] = found
                if len(self._clients) > _KEPT:
                    self._clients.popitem(last=False)
            self._clients.move_to_end(way)
            return found

    def _make(self, way: _Way) -> Any:
        session = self._session(way.caller)
        from botocore.config import Config

        attempts = _READING_ATTEMPTS if way.repeats else 1
        client = session.client(
            way.service,
            endpoint_url=way.endpoint_url,
            config=Config(
                connect_timeout=_CONNECT_SECONDS,
                read_timeout=way.read_seconds,
                retries={"mode": "standard", "total_max_attempts": attempts},
                max_pool_connections=_CONNECTIONS,
                tcp_keepalive=True,
                user_agent_extra="interlock",
            ),
        )
        if way.endpoint_url is not None:
            client.meta.events.register("before-send", self._check_address)
        return client

    def _check_address(self, request: Any, **_: Any) -> None:
        """Refuse an `endpointUrl` at an address that jobs may not call. Looked at before each request: names change."""
        parts = urlsplit(request.url)
        host = parts.hostname or ""
        if host.endswith(_OWN_NAMES):
            return
        try:
            addresses = self._resolve(host, parts.port or (80 if parts.scheme == "http" else 443))
        except OSError:
            return  # the request itself will say so
        self._policy.check(host, addresses)

    def _session(self, caller: _Caller) -> "boto3.Session":
        found = self._sessions.get(caller)
        if found is None:
            found = _session_of(caller)
            self._sessions[caller] = found
            if len(self._sessions) > _KEPT:
                self._sessions.popitem(last=False)
        return found


def _session_of(caller: _Caller) -> "boto3.Session":
    try:
        import boto3
    except ImportError as error:
        raise JobStartError(
            "jobs on AWS need boto3, which is not installed: pip install 'interlock[aws]'", permanent=True
        ) from error
    own = boto3.Session(profile_name=caller.profile, region_name=caller.region)
    return own if caller.role_arn is None else _assumed(own, caller.role_arn)


def _assumed(own: "boto3.Session", role_arn: str) -> "boto3.Session":
    """A session in a role: assumed with the first request, and again before it expires."""
    import boto3
    from botocore.credentials import AssumeRoleCredentialFetcher, CredentialResolver, DeferredRefreshableCredentials
    from botocore.exceptions import NoCredentialsError
    from botocore.session import get_session

    class _Role:
        METHOD = "assume-role"
        CANONICAL_NAME = None

        def load(self) -> Any:
            return DeferredRefreshableCredentials(method=self.METHOD, refresh_using=self._fetch)

        def _fetch(self) -> Any:
            source = own.get_credentials()
            if source is None:
                raise NoCredentialsError
            fetcher = AssumeRoleCredentialFetcher(
                client_creator=own.client,
                source_credentials=source,
                role_arn=role_arn,
                extra_args={"RoleSessionName": "interlock"},
            )
            return fetcher.fetch_credentials()

    inner = get_session()
    inner.register_component("credential_provider", CredentialResolver(providers=[_Role()]))
    return boto3.Session(botocore_session=inner, region_name=own.region_name)
