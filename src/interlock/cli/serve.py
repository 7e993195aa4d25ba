"""`interlock serve`: the embedded controller and its HTTP API in one process."""

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from interlock.cli import trusting
from interlock.cli.trusting import ConfigOption, TlsCertOption, TlsClientOption, TlsKeyOption, TrustOption

if TYPE_CHECKING:
    from interlock.api.settings import Project
    from interlock.embedded.service import Service


class LogLevel(StrEnum):
    """How much is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    """For whom: `auto` is `human` on a terminal."""

    AUTO = "auto"
    HUMAN = "human"
    JSON = "json"


def serve(  # noqa: PLR0913  each is an option
    *,
    host: Annotated[
        str | None, typer.Option("--host", help="Where to listen; other than 127.0.0.1 only with tokens.")
    ] = None,
    port: Annotated[int | None, typer.Option("--port", min=0, max=65535, help="0 is any free one.")] = None,
    pipelines: Annotated[
        Path | None, typer.Option("--pipelines", metavar="DIR", help="What to follow; default: pipelines/.")
    ] = None,
    store: Annotated[str | None, typer.Option("--store", metavar="ADDRESS", help="sqlite:///interlock.db")] = None,
    watchdog_interval: Annotated[
        str | None, typer.Option("--watchdog-interval", metavar="DURATION", help="Default: 5m.")
    ] = None,
    allow_private_addresses: Annotated[
        bool | None,
        typer.Option("--allow-private-addresses/--refuse-private-addresses", help="May HTTP jobs call them?"),
    ] = None,
    insecure_no_auth: Annotated[
        bool, typer.Option("--insecure-no-auth", help="Let every user of this machine in; on loopback only.")
    ] = False,
    accept_lost_wal: Annotated[
        bool, typer.Option("--accept-lost-wal", help="Go on with a store whose latest writes are lost.")
    ] = False,
    tls_cert: TlsCertOption = None,
    tls_key: TlsKeyOption = None,
    tls_client_ca: TlsClientOption = None,
    config: ConfigOption = None,
    trust_dir: TrustOption = None,
    log_level: Annotated[LogLevel, typer.Option("--log-level")] = LogLevel.INFO,
    log_format: Annotated[LogFormat, typer.Option("--log-format")] = LogFormat.AUTO,
) -> None:
    """Run the controller: follows a folder of pipelines, takes sensors, starts jobs when it is safe."""
    gc.disable()  # until it serves: what a start makes stays
    from msgspec.structs import replace

    from interlock.api import server
    from interlock.api import settings as project_settings
    from interlock.embedded.process.hardening import hide_memory
    from interlock.embedded.process.logging import configure_logging
    from interlock.embedded.service import ServiceSettings
    from interlock.jobs.command.run_as import find_user

    hide_memory()
    trusting.add(config, trust_dir)
    wanted = None if log_format is LogFormat.AUTO else log_format is LogFormat.JSON
    json_logs = configure_logging(level=log_level, json=wanted)
    project = project_settings.load_project(trusting.find_toml(Path.cwd()), Path.cwd())
    project_settings.check_packages(project)
    if watchdog_interval is not None:
        project = replace(project, watchdog_interval=project_settings.watchdog_interval(watchdog_interval))
    if allow_private_addresses is not None:
        project = replace(project, allow_private_addresses=allow_private_addresses)
    store_file = _store(project, store)
    followed = _pipelines(project, pipelines, store_file)
    named = pipelines is not None or project.pipelines is not None
    service = ServiceSettings(
        store=store_file,
        pipelines=followed,
        trust=trusting.check_pipelines(followed, trusting.trust(), named=named),
        watchdog_every=project.watchdog_interval,
        allow_private_addresses=project.allow_private_addresses,
        working_folder=project.folder,
        secrets=project.secrets,
        run_as=find_user(project.run_as) if project.run_as else None,
        output=project.output,
        pools=project.pools,
        quota=project.limits.of_sensors(),
        alerts=project.alerts,
        json_logs=json_logs,
        insecure_no_auth=insecure_no_auth,
        accept_lost=accept_lost_wal,
        audit=project.audit,
    )
    chosen_port = project.port if port is None else port
    settings = server.ServeSettings(
        service=service,
        host=host or project.host,
        port=chosen_port,
        public_url=project.public_url,
        transport=project.transport.with_files(tls_cert, tls_key, tls_client_ca),
        oidc=project.oidc,
        limits=project.limits.of_connections(),
        streams=project.limits.of_streams(),
        writes_per_second=project.limits.writes_per_second_per_token,
    )
    try:
        server.serve(settings, beside=_announced)
    finally:
        gc.enable()


@contextmanager
def _announced(service: "Service", url: str) -> Iterator[None]:
    """Tell a person at a terminal where the page is; never a log, since the address may log its opener in."""
    from interlock.cli.open import code_for, page_address

    # The configs of thousands of pipelines are no garbage: they are not looked through in every full collection.
    gc.freeze()
    # An answer about thousands of lanes is hundreds of thousands of objects, none of them garbage before it is sent:
    # by the default of 700 a third of its time goes into looking for some.
    gc.set_threshold(20_000)
    gc.enable()
    if sys.stderr.isatty():
        code = code_for(service)
        note = "" if code is None else "  (works once, for five minutes; then: interlock open)"
        typer.echo(f"The page: {page_address(url, code)}{note}", err=True)
    yield


def _store(project: "Project", given: str | None) -> Path:
    """The command line, then the environment, both relative to this folder; then the file, relative to itself."""
    from interlock.api.settings import DEFAULT_STORE, store_path

    named = given or os.environ.get("INTERLOCK_STORE")
    if named:
        path = store_path(named, Path.cwd())
    else:
        path = store_path(project.store or DEFAULT_STORE, project.folder)
    trusting.check_store(path, named=bool(named or project.store))
    return path


def _pipelines(project: "Project", given: Path | None, store: Path) -> Path:
    """A folder that is not there is followed all the same: it may be a mount that failed, or be made later."""
    if given is None:
        return project.pipelines or project.folder / "pipelines"
    if not given.exists() and not _was_followed(store, given):
        raise typer.BadParameter(f"{given} does not exist", param_hint="--pipelines")
    return given.absolute()


def _was_followed(store: Path, folder: Path) -> bool:
    """Did pipelines of this store come from the folder before? Then it is lost, and not misspelled."""
    from interlock.cli.store_backend import opened
    from interlock.control.config_files import folder_key
    from interlock.model.errors import InterlockError

    try:
        with opened(store, writing=False) as backend:
            return backend.store.get(folder_key(str(folder.resolve()))) is not None
    except InterlockError:
        return False
