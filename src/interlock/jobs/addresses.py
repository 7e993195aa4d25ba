"""Which addresses an HTTP target may be reached at, and a client that connects to no other.

A job's URL is config, and config is written by many: without a guard it could make the controller call services that
trust it merely for where it stands, above all the cloud's metadata service and what listens on loopback.

The guard sits where the connection is made. The name is resolved once, *every* address it has is checked, and the
socket is connected to one of those very addresses: a name that resolves differently a moment later (DNS rebinding)
changes nothing, and a redirect or a strange spelling of an address (`0x7f.1`) comes through the same door. The URL
itself is left alone, so that the Host header, TLS server name and certificate are those of the name.
"""

import contextlib
import http.cookiejar
import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import httpcore
import httpx

from interlock.model.errors import InvalidValueError, JobStartError

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network
Resolve = Callable[[str, int], Sequence[str]]

# Metadata services outside of link-local: AWS over IPv6, Alibaba, Oracle, Azure's host (a public address).
_METADATA: Final[frozenset[IPAddress]] = frozenset(
    ipaddress.ip_address(text) for text in ("fd00:ec2::254", "100.100.100.200", "192.0.0.192", "168.63.129.16")
)
_METADATA_KIND: Final = "link-local or metadata"
_LOCAL_NAT64: Final = ipaddress.IPv6Network("64:ff9b:1::/48")
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")


class AddressRefusedError(JobStartError):
    """A target at an address that this installation does not allow."""

    def __init__(self, message: str) -> None:
        super().__init__(message, permanent=True)


class AddressPolicy:
    """What may be connected to: public addresses, and what the setting `allow_private` adds.

    True adds private and loopback addresses; a list adds the hosts (`etl.corp`, `*.corp`) and networks (`10.0.0.0/8`)
    it names. Link-local and metadata addresses hand out credentials: only a network with them in it opens them.
    """

    def __init__(self, allow_private: bool | Sequence[str] = False) -> None:
        entries = () if isinstance(allow_private, bool) else tuple(allow_private)
        self._all_private = allow_private is True
        self._networks: list[IPNetwork] = []
        self._hosts: list[str] = []
        for entry in entries:
            self._add(entry)

    def _add(self, entry: str) -> None:
        try:
            self._networks.append(ipaddress.ip_network(entry.strip("[]"), strict=False))
        except ValueError:
            if not entry or "/" in entry or ":" in entry:
                raise InvalidValueError(
                    f"allow_private: {entry!r} is neither a host (etl.corp, *.corp) nor a network (10.0.0.0/8)"
                ) from None
            self._hosts.append(entry.lower().rstrip("."))

    def check(self, host: str, addresses: Iterable[str]) -> None:
        """Refuse a host unless every one of its addresses is allowed."""
        named = self._host_named(host)
        for text in addresses:
            kind = self._refused_as(ipaddress.ip_address(text))
            # The owner of a name can point it at an address that hands out credentials.
            if kind and (not named or kind == _METADATA_KIND):
                raise AddressRefusedError(
                    f"{host} has the {kind} address {text}, which jobs and probes may not call:"
                    f" to allow it, name {_openers(host, text, kind)} in the setting allow_private"
                )

    def _host_named(self, host: str) -> bool:
        name = host.lower().rstrip(".")
        return any(name.endswith(entry[1:]) if entry.startswith("*.") else name == entry for entry in self._hosts)

    def _refused_as(self, address: IPAddress) -> str:
        """What kind of address it is, when it is refused; "" when it is allowed."""
        kinds = [(one, _kind(one)) for one in _meanings(address)]
        for one, kind in kinds:
            named = any(one in network for network in self._networks)
            if not kind or named or (self._all_private and kind in ("private", "loopback")):
                continue
            return kind
        return ""


def _openers(host: str, address: str, kind: str) -> str:
    network = f"a network with {address}"
    return network if kind == _METADATA_KIND else f"{host!r} or {network}"


def _meanings(address: IPAddress) -> Iterator[IPAddress]:
    """The address, or rather the IPv4 addresses it stands for: there are many ways to write one into IPv6."""
    if not isinstance(address, ipaddress.IPv6Address):
        yield address
    elif address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    elif address.sixtofour is not None:
        yield address.sixtofour
    elif address.teredo is not None:
        yield from address.teredo
    elif address in _NAT64:
        yield ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    else:
        yield address


def _kind(address: IPAddress) -> str:
    """Why an address is not simply a public one; "" when it is."""
    if address.is_link_local or address in _METADATA:
        return _METADATA_KIND
    if address.is_loopback:
        return "loopback"
    if address.is_unspecified or address.is_multicast:
        return "unspecified or multicast"
    if isinstance(address, ipaddress.IPv6Address) and (address.is_site_local or address in _LOCAL_NAT64):
        return "private"  # older Pythons take these two for public
    if address.is_reserved:
        return "reserved"
    # Not `is_private`: what is neither public nor private (carrier-grade NAT) is not public either.
    return "" if address.is_global else "private"


def resolve_host(host: str, port: int) -> list[str]:
    """Every address of a name, in the system's order of preference."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


# ------------------------------------------------------------------------------------------------------ the client


def guarded_client(policy: AddressPolicy, resolve: Resolve = resolve_host) -> httpx.Client:
    """An HTTP client for many threads: guarded, without proxies, without memory of cookies, following no redirect.

    A request with the extension `deadline` (of `time.monotonic`) is over by then, however slowly the answer drips.
    """
    client = httpx.Client(transport=_GuardedTransport(policy, resolve), trust_env=False, follow_redirects=False)
    # One client serves many jobs: what one target sets must not be sent on behalf of another job.
    client.cookies.jar.set_policy(http.cookiejar.DefaultCookiePolicy(allowed_domains=[]))
    return client


class _Deadlines(threading.local):
    """The deadline of the request that a thread is busy with."""

    at: float | None = None

    def left(self, timeout: float | None, expired: type[Exception]) -> float | None:
        """The time an operation may take; raises when there is none left."""
        if self.at is None:
            return timeout
        left = self.at - time.monotonic()
        if left <= 0:
            raise expired("the time for the whole request is over")
        return left if timeout is None else min(timeout, left)


class _BoundedStream(httpcore.NetworkStream):
    """A connection whose every operation ends by the deadline of the request it is for."""

    def __init__(self, stream: httpcore.NetworkStream, deadlines: _Deadlines) -> None:
        self._stream = stream
        self._deadlines = deadlines

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._deadlines.left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._deadlines.left(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left = self._deadlines.left(timeout, httpcore.ConnectTimeout)
        return _BoundedStream(self._stream.start_tls(ssl_context, server_hostname, left), self._deadlines)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _GuardedBackend(httpcore.NetworkBackend):
    """Makes connections, to checked addresses only."""

    def __init__(self, policy: AddressPolicy, resolve: Resolve, deadlines: _Deadlines) -> None:
        self._policy = policy
        self._resolve = resolve
        self._deadlines = deadlines
        self._sockets = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        try:
            addresses = self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"the name {host} cannot be resolved: {error}") from error
        self._policy.check(host, addresses)
        failure: Exception = httpcore.ConnectError(f"the name {host} has no address")
        for address in addresses:
            left = self._deadlines.left(timeout, httpcore.ConnectTimeout)
            try:
                stream = self._sockets.connect_tcp(address, port, left, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
            else:
                return _BoundedStream(stream, self._deadlines)
        raise failure


class _GuardedTransport(httpx.BaseTransport):
    """httpx's own transport takes no network backend; this is the same pool with ours."""

    def __init__(self, policy: AddressPolicy, resolve: Resolve) -> None:
        self._deadlines = _Deadlines()
        self._pool = httpcore.ConnectionPool(
            ssl_context=httpx.create_ssl_context(),
            max_connections=100,
            max_keepalive_connections=20,
            keepalive_expiry=5.0,
            network_backend=_GuardedBackend(policy, resolve, self._deadlines),
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self._deadlines.at = request.extensions.get("deadline")
        url = request.url
        asked = httpcore.Request(
            method=request.method,
            url=httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _translated():
            answer = self._pool.handle_request(asked)
        return httpx.Response(
            status_code=answer.status,
            headers=answer.headers,
            stream=_AnswerStream(answer, self._deadlines, self._deadlines.at),
            extensions=answer.extensions,
        )

    def close(self) -> None:
        self._pool.close()


class _AnswerStream(httpx.SyncByteStream):
    def __init__(self, answer: httpcore.Response, deadlines: _Deadlines, deadline: float | None) -> None:
        self._answer = answer
        self._deadlines = deadlines
        self._deadline = deadline

    def __iter__(self) -> Iterator[bytes]:
        self._deadlines.at = self._deadline
        with _translated():
            yield from self._answer.iter_stream()

    def close(self) -> None:
        self._answer.close()


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    """httpcore's errors as those of httpx, which have the same names."""
    try:
        yield
    except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError) as error:
        raise _TRANSLATIONS.get(type(error), httpx.TransportError)(str(error)) from error
    except httpcore.UnsupportedProtocol as error:
        raise httpx.UnsupportedProtocol(str(error)) from error


_TRANSLATIONS: Final[dict[type[Exception], type[httpx.TransportError]]] = {
    httpcore.ConnectTimeout: httpx.ConnectTimeout,
    httpcore.ReadTimeout: httpx.ReadTimeout,
    httpcore.WriteTimeout: httpx.WriteTimeout,
    httpcore.PoolTimeout: httpx.PoolTimeout,
    httpcore.ConnectError: httpx.ConnectError,
    httpcore.ReadError: httpx.ReadError,
    httpcore.WriteError: httpx.WriteError,
    httpcore.LocalProtocolError: httpx.LocalProtocolError,
    httpcore.RemoteProtocolError: httpx.RemoteProtocolError,
}
