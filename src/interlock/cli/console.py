"""`interlock console`: the API and the page over an environment on AWS, from wherever there are credentials."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from interlock.cli import trusting
from interlock.cli.serve import LogFormat, LogLevel
from interlock.cli.store_access import StoreOption, find_target
from interlock.cli.trusting import ConfigOption, TlsCertOption, TlsClientOption, TlsKeyOption, TrustOption

if TYPE_CHECKING:
    from interlock.aws.operations.address import AwsAddress


def console(  # noqa: PLR0913  each is an option
    *,
    store: StoreOption = None,
    host: Annotated[
        str | None, typer.Option("--host", help="Where to listen; other than 127.0.0.1 only with tokens.")
    ] = None,
    port: Annotated[int | None, typer.Option("--port", min=0, max=65535, help="0 is any free one.")] = None,
    state: Annotated[
        Path | None,
        typer.Option("--state", metavar="FILE", help="Tokens and sessions; default: in ~/.local/state/interlock/."),
    ] = None,
    insecure_no_auth: Annotated[
        bool, typer.Option("--insecure-no-auth", help="Let every user of this machine in; on loopback only.")
    ] = False,
    tls_cert: TlsCertOption = None,
    tls_key: TlsKeyOption = None,
    tls_client_ca: TlsClientOption = None,
    config: ConfigOption = None,
    trust_dir: TrustOption = None,
    log_level: Annotated[LogLevel, typer.Option("--log-level")] = LogLevel.INFO,
    log_format: Annotated[LogFormat, typer.Option("--log-format")] = LogFormat.AUTO,
) -> None:
    """Serve API and page over an environment on AWS. It runs no pipeline: the functions in the account do.

    Example: interlock console --store aws://prod
    """
    from interlock.api.console import Console, ConsoleSettings
    from interlock.api.console_server import ConsoleServer, serve_console
    from interlock.api.settings import load_project
    from interlock.aws.operations.environment import open_environment
    from interlock.embedded.process.hardening import hide_memory
    from interlock.embedded.process.logging import configure_logging

    hide_memory()
    trusting.add(config, trust_dir)
    configure_logging(level=log_level, json=None if log_format is LogFormat.AUTO else log_format is LogFormat.JSON)
    target = find_target(store)
    if target.aws is None:
        message = f"{target} ({target.origin}) is not on AWS: give --store aws://<environment>, or use `serve`"
        raise typer.BadParameter(message, param_hint="--store")
    project = load_project(trusting.find_toml(Path.cwd()), Path.cwd())
    environment = open_environment(target.aws)
    file = state or state_file(target.aws)
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    found = Console(environment, ConsoleSettings(file, insecure_no_auth))
    listening = ConsoleServer(
        host=host or project.host,
        port=project.port if port is None else port,
        public_url=project.public_url,
        transport=project.transport.with_files(tls_cert, tls_key, tls_client_ca),
        oidc=project.oidc,
    )
    if sys.stderr.isatty() and not found.tokens.required():
        typer.echo(f"Tokens and sessions: {file}", err=True)
    serve_console(listening, found)


def state_file(address: "AwsAddress") -> Path:
    """Where the tokens and sessions of an environment's console lie, unless --state names another file."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "interlock" / f"console-{address.environment}.db"
