"""Serving a console: the API and the page over an environment on AWS, until a signal."""

from contextlib import suppress
from dataclasses import dataclass, field

from interlock.api import stream_shares
from interlock.api.connections import ConnectionLimits
from interlock.api.console import Console
from interlock.api.ending import GRACE_SECONDS, Ending
from interlock.api.oidc_settings import Oidc
from interlock.api.server import (
    InterlockServer,
    access_of,
    bind,
    certificates_of,
    check_exposure,
    followed,
    server_config,
    sign_on_of,
    url_of,
    warn_of_plain_http,
)
from interlock.api.stream_shares import StreamLimits
from interlock.api.transport import Transport, Ways
from interlock.logs import get_logger

_log = get_logger("interlock.console")


@dataclass(frozen=True, slots=True)
class ConsoleServer:
    """Where to listen."""

    host: str = "127.0.0.1"
    port: int = 8765
    public_url: str = ""
    transport: Transport = field(default_factory=Transport)
    oidc: Oidc | None = None
    limits: ConnectionLimits = field(default_factory=ConnectionLimits.of_this_process)
    streams: StreamLimits = stream_shares.DEFAULT


def serve_console(settings: ConsoleServer, console: Console) -> None:
    """Run until a signal; returns after a clean end. The console is stopped, whatever happens."""
    ending = Ending(GRACE_SECONDS, loops=console.database.loops)
    try:
        listener = bind(settings.host, settings.port)
    except BaseException:
        console.stop()
        raise
    try:
        sign_on = sign_on_of(settings.oidc, console)
        check_exposure(settings.host, console)
        certificates = certificates_of(settings.transport, console.clock)
        warn_of_plain_http(settings.host, settings.transport)
        url = url_of(settings.host, listener.getsockname()[1], tls=certificates is not None)
        config = server_config(
            console,
            settings.limits,
            public_url=settings.public_url,
            streams=settings.streams,
            ways=Ways(settings.transport.trusted_proxies),
        )
        if certificates is not None:
            console.degradation_checks.add(certificates.problems)
        server = InterlockServer(config, console, ending, certificates)
        loops = console.database.loops
        with server.capture_signals(), followed(certificates, loops), followed(sign_on, loops):
            console.start()
            environment = str(console.environment.address)
            _log.info("serving", url=url, environment=environment, access=access_of(console))
            server.run(sockets=[listener])
    finally:
        ending.begin()
        with suppress(Exception):
            console.stop()
        listener.close()
        ending.done()
    _log.info("stopped")
