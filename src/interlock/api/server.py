"""Serving: the controller and its API in one process, from the first line of the log to a clean end.

The order of the end: new requests are refused; streams are told and closed; requests under way are answered; the
runtime finishes what is in hand; the store is closed. When that takes longer than the grace, or at a second signal, the
process ends at once, which is safe too: whatever was acknowledged is on the disk.
"""

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import Final, cast

import uvicorn

from interlock.api import stream_shares
from interlock.api.app import create_app
from interlock.api.connections import ConnectionLimits, limited, limits_of
from interlock.api.ending import GRACE_SECONDS, REQUEST_SECONDS, Ending
from interlock.api.hosts import is_loopback_name
from interlock.api.oidc_settings import Oidc
from interlock.api.served import Served
from interlock.api.stream_shares import StreamLimits
from interlock.api.tls import Certificates
from interlock.api.tls_listener import TlsListener
from interlock.api.transport import Transport, Ways
from interlock.embedded.access import owner_token
from interlock.embedded.access.oidc_keys import OidcKeys
from interlock.embedded.access.tokens import EXPIRES_SOON
from interlock.embedded.clock import SystemClock
from interlock.embedded.process.announcement import Announcement
from interlock.embedded.process.process_end import FAILED, end_process
from interlock.embedded.service import Service, ServiceSettings
from interlock.logs import get_logger
from interlock.loops import Loops
from interlock.model.errors import InterlockError
from interlock.ports.clock import Clock

_FORCED: Final = 130
_BACKLOG: Final = 1024
# What the system holds of an answer that is not read, and of requests that are sent before the first is answered; by
# itself it would take megabytes for each connection.
_SEND_BYTES: Final = 256 * 1024
_RECEIVE_BYTES: Final = 64 * 1024

_log = get_logger("interlock.serve")


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """Where to listen, and what to run."""

    service: ServiceSettings
    host: str = "127.0.0.1"
    port: int = 8765
    public_url: str = ""
    transport: Transport = field(default_factory=Transport)
    oidc: Oidc | None = None
    limits: ConnectionLimits = field(default_factory=ConnectionLimits.of_this_process)
    streams: StreamLimits = field(default_factory=StreamLimits)
    writes_per_second: int = 0
    grace: float = GRACE_SECONDS


class BindError(InterlockError):
    """The address cannot or must not be listened on."""


# What goes on beside a server for as long as it serves: entered when it is about to answer, left before it stops.
Beside = Callable[[Service, str], AbstractContextManager[object]]


def serve(
    settings: ServeSettings, *, clock: Clock | None = None, beside: Beside = lambda _service, _url: nullcontext()
) -> None:
    """Run until a signal. Returns after a clean end."""
    listener = bind(settings.host, settings.port)
    try:
        certificates = certificates_of(settings.transport, clock or SystemClock())
        service = Service(settings.service, clock=clock)
    except BaseException:
        listener.close()
        raise
    service.database.on_death = _writer_died
    ending = Ending(settings.grace, loops=service.database.loops)
    try:
        sign_on = sign_on_of(settings.oidc, service)
        check_exposure(settings.host, service)
        warn_of_plain_http(settings.host, settings.transport)
        loops = service.database.loops
        with followed(certificates, loops), followed(sign_on, loops):
            _run(settings, service, _Listening(listener, certificates), beside, ending)
    except BaseException:
        # What failed on its way up may fail on its way down, and is not to hide the reason.
        ending.begin()
        with suppress(Exception):
            service.stop()
        raise
    else:
        service.stop()
        _log.info("stopped")
    finally:
        listener.close()
        ending.done()


@dataclass(frozen=True, slots=True)
class _Listening:
    """Where it listens, and with which certificate."""

    socket: socket.socket
    certificates: Certificates | None


def _run(settings: ServeSettings, service: Service, listening: _Listening, beside: Beside, ending: Ending) -> None:
    certificates = listening.certificates
    url = url_of(settings.host, listening.socket.getsockname()[1], tls=certificates is not None)
    service.callbacks.base_url = settings.public_url or url
    server = InterlockServer(_config(settings, service), service, ending, certificates)
    if certificates is not None:
        service.degradation_checks.add(certificates.problems)
    # From before it can be found: a signal on the way up ends in order as well.
    with server.capture_signals():
        applied = service.start()
        with (
            _announced(settings, url, service, certificates),
            _owner_token(settings, url, service, certificates),
        ):
            _log.info(
                "serving",
                url=url,
                store=str(settings.service.store or "in memory"),
                pipelines=len(service.store.pipelines()),
                problems=len(applied.problems),
                access=access_of(service),
            )
            _warn_of_tokens(service)
            with beside(service, url):
                server.run(sockets=[listening.socket])


def _warn_of_tokens(service: Service) -> None:
    now = service.clock.now()
    for one in service.tokens.list():
        if one.in_force(now) and one.expires_at is not None and one.expires_at - now <= EXPIRES_SOON:
            _log.warning(
                "a token expires soon: `interlock token rotate` makes it new", token=one.name, at=one.expires_at
            )


def access_of(service: Served) -> str:
    if service.tokens.required():
        return "tokens required"
    return "everybody on this machine" if service.settings.insecure_no_auth else "this user, on this machine"


def _config(settings: ServeSettings, service: Service) -> uvicorn.Config:
    return server_config(
        service,
        settings.limits,
        public_url=settings.public_url,
        streams=settings.streams,
        writes_per_second=settings.writes_per_second,
        ways=Ways(settings.transport.trusted_proxies),
    )


def server_config(
    service: Served,
    limits: ConnectionLimits,
    *,
    public_url: str = "",
    streams: StreamLimits = stream_shares.DEFAULT,
    writes_per_second: int = 0,
    ways: Ways | None = None,
) -> uvicorn.Config:
    """uvicorn as we run it."""
    ways = ways or Ways()
    return uvicorn.Config(
        create_app(
            service,
            public_url=public_url,
            streams=streams.within(limits.connections),
            writes_per_second=writes_per_second,
            ways=ways,
        ),
        proxy_headers=False,  # the application has them read, where they matter
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=REQUEST_SECONDS,
        limit_concurrency=limits.most + 1,  # of requests under way: clients may be gone before their answers are ready
        http=limited(limits, ways),
        ws="none",
        lifespan="on",
    )


class InterlockServer(uvicorn.Server):
    """uvicorn, with our own idea of signals: it would die of the first one again once it has stopped."""

    def __init__(
        self, config: uvicorn.Config, service: Served, ending: Ending, certificates: Certificates | None = None
    ) -> None:
        super().__init__(config)
        self._service = service
        self._ending = ending
        self._certificates = certificates

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """With TLS, connections are accepted by `tls_listener`."""
        if self._certificates is None:
            await super().startup(sockets)
            return
        await super().startup([])
        for one in sockets or []:
            listener = TlsListener(one, self._connection, self._certificates, limits_of(self.config))
            listener.start()
            self.servers.append(cast(asyncio.Server, listener))

    def _connection(self) -> asyncio.Protocol:
        make = cast(Callable[..., asyncio.Protocol], self.config.http_protocol_class)
        return make(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The first signal ends in order, the second at once."""
        handled = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self.handle_exit) for number in handled}
        try:
            yield
        finally:
            # Until the process is gone, a further signal still ends it at once.
            for number in handled:
                signal.signal(number, _end_now if self.should_exit else before[number])

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal came."""
        if self.should_exit:
            _end_now(sig, frame)
        self.should_exit = True
        self._ending.begin()
        self._service.refuse_new_work()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Streams never end by themselves: they are closed before requests are waited for."""
        _log.info("stopping", hint="a second signal ends at once")
        await asyncio.to_thread(self._service.feed.stop)
        await super().shutdown(sockets)


def _end_now(sig: int, _: FrameType | None) -> None:
    _log.warning("ended at once", signal=signal.Signals(sig).name)
    end_process(_FORCED)


def _writer_died(error: BaseException) -> None:
    """Nothing can be written any more: the supervisor of this process is to start it again."""
    end_process(FAILED, f"the writer thread died of {error!r}; nothing acknowledged is lost: start it again")


@contextmanager
def _announced(
    settings: ServeSettings, url: str, service: Service, certificates: Certificates | None
) -> Iterator[None]:
    store = settings.service.store
    if store is None:
        yield
        return
    announcement = Announcement(store, url, service.clock.now(), service.database.loops)
    if certificates is not None:
        announcement.public_url = settings.public_url
        announcement.certificate = certificates.text
        certificates.changed.append(announcement.show)
    service.degradation_checks.add(announcement.problems)
    announcement.start()
    try:
        yield
    finally:
        announcement.stop()


def _owner_token(
    settings: ServeSettings, url: str, service: Service, certificates: Certificates | None
) -> AbstractContextManager[None]:
    store = settings.service.store
    if store is None or settings.service.insecure_no_auth or not is_loopback_name(settings.host):
        return nullcontext()
    offer = owner_token.Offer(store, service.tokens, url)
    if certificates is not None:
        offer.certificate = certificates.text
        certificates.changed.append(offer.show)
    return offer.made()


# ------------------------------------------------------------------------------------------------------ listening


def bind(host: str, port: int) -> socket.socket:
    """Listen, before anything is started: an address that is taken is known at once."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind)
    except OSError as error:
        raise BindError(f"cannot listen on {host}:{port}: {error.strerror or error}: name another --host") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Of the connections that are accepted, too.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BYTES)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BYTES)
        listener.bind(address)
        # From here on callers wait in line, also while the controller is still starting.
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise BindError(
            f"cannot listen on {host}:{port}: {error.strerror}: stop what listens there, or name another --port"
        ) from error
    return listener


def check_exposure(host: str, service: Served) -> None:
    """Beyond this machine, only with tokens."""
    if service.settings.insecure_no_auth:
        _check_insecure(host, service)
        return
    if is_loopback_name(host) or service.tokens.usable():
        return
    raise BindError(
        f"refusing to listen on {host} without a token: anybody who reaches it could start jobs. Make one first "
        "(`interlock token create --scope admin --name me`), or listen on 127.0.0.1"
    )


def _check_insecure(host: str, service: Served) -> None:
    if not is_loopback_name(host):
        raise BindError(f"--insecure-no-auth is for loopback only: refusing to listen on {host} with it")
    if service.tokens.required():
        raise BindError("--insecure-no-auth has no effect on a store with tokens: leave it out")
    _log.warning(
        "EVERY USER OF THIS MACHINE MAY RUN JOBS AS THIS CONTROLLER",
        because="it was started with --insecure-no-auth",
        instead="leave it out: your own commands, curl and the SDK work without it; others need a token",
    )


def certificates_of(transport: Transport, clock: Clock) -> Certificates | None:
    """The certificate of the settings, tried; None for plain HTTP."""
    return Certificates(transport.tls, clock) if transport.tls is not None else None


def sign_on_of(oidc: Oidc | None, service: Served) -> OidcKeys | None:
    """Have a controller take the tokens of an issuer; the keys that are to be followed."""
    if oidc is None:
        return None
    if service.settings.insecure_no_auth:
        raise BindError("--insecure-no-auth and [oidc] contradict each other: leave one out")
    service.sign_on = oidc.made()
    service.tokens.demand()
    keys = service.sign_on.keys
    service.degradation_checks.add(keys.problems)
    return keys


@contextmanager
def followed(what: Certificates | OidcKeys | None, loops: Loops) -> Iterator[None]:
    """Follow the files of a certificate, or the keys of an issuer."""
    if what is None:
        yield
        return
    what.start(loops)
    try:
        yield
    finally:
        what.stop()


def warn_of_plain_http(host: str, transport: Transport) -> None:
    """Who listens for others without TLS ought to have a proxy in front."""
    if transport.tls is None and not transport.trusted_proxies and not is_loopback_name(host):
        _log.warning(
            "plain HTTP: tokens are taken from this machine alone",
            instead="give --tls-cert and --tls-key, or name the proxy in trusted_proxies of interlock.toml",
        )


def url_of(host: str, port: int, *, tls: bool = False) -> str:
    """The address for people and for other commands on this machine."""
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"{'https' if tls else 'http'}://{shown}:{port}"
