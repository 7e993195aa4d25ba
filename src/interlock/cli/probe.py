"""`interlock probe run`: try a probe by hand, and see what it would write."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from interlock.cli.completion import PipelineArgument
from interlock.cli.output import JsonOption, one_line, plain_console, print_json
from interlock.cli.store_access import StoreOption, Target, UrlOption, find_target, through_server

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from interlock.cli.control_backend import ControlBackend
    from interlock.client.answers import ProbeTrial

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Try probes.")


@app.callback()
def probe() -> None:
    """Try probes."""


@app.command("run")
def run(
    pipeline: PipelineArgument,
    key: Annotated[str, typer.Argument(metavar="KEY", help="The probe's key.", show_default=False)],
    *,
    date: Annotated[
        str | None,
        typer.Option("--date", metavar="D", help="The period to look for, where the probe's config names ${DATE}."),
    ] = None,
    store: StoreOption = None,
    url: UrlOption = None,
    json: JsonOption = False,
) -> None:
    """Look once, now, and show the observation, or why there is none. Exits 1 if the look failed.

    It is the config in force that is tried. The running controller looks, with its secrets and its network; without
    one, and for an environment on AWS, this command does. Nothing is written, and the probe's own interval goes on.

    Example: interlock probe run gold-revenue row-count
    """
    target = through_server(find_target(store, url))
    trial = _by_server(target, pipeline, key, date) if target.url is not None else _by_us(target, pipeline, key, date)
    if json:
        print_json(trial)
    else:
        console = plain_console()
        name = f"{trial.pipeline}/{trial.key}{f' for {trial.date}' if trial.date else ''}"
        if trial.ok:
            console.print(f"{name}: {msgspec.json.encode(trial.data).decode()}", style="green")
        else:
            console.print(f"{name} failed: {one_line(trial.error)}", style="red")
    if not trial.ok:
        raise typer.Exit(1)


def _by_server(target: Target, pipeline: str, key: str, date: str | None) -> "ProbeTrial":
    from interlock.client import Client, RetryPolicy

    # A look takes as long as its timeout, which is at most ten minutes.
    with Client(target.url, retry=RetryPolicy(retries=0), timeout=630.0) as client:
        return client.run_probe(pipeline, key, date=date)


def _by_us(target: Target, pipeline: str, key: str, date: str | None) -> "ProbeTrial":
    """With the config in the store, the settings of this folder and the environment of this command."""
    from interlock.api.settings import load_project
    from interlock.cli.trusting import find_toml
    from interlock.client.answers import ProbeTrial
    from interlock.control import probing
    from interlock.embedded.timing.probe_threads import look_once
    from interlock.jobs.command.run_as import find_user
    from interlock.jobs.secrets import SecretStore
    from interlock.model.errors import InterlockError, ProbeError
    from interlock.probes.registry import Probes, ProbeSettings

    if not target.stored:
        raise InterlockError("there is no store to read the config from: give --store or --url")
    project = load_project(find_toml(Path.cwd()), Path.cwd())
    with _store(target) as backend:
        request = probing.try_out(backend.control_with(os.environ), pipeline, key, date)
    settings = ProbeSettings(
        environment=os.environ,
        allow_private=project.allow_private_addresses,
        working_folder=project.folder,
        # Whoever is not root is nobody else's user, and runs it as their own.
        run_as=find_user(project.run_as) if project.run_as and os.geteuid() == 0 else None,
    )
    probes = Probes(settings, SecretStore(os.environ, project.secrets))
    try:
        return ProbeTrial(pipeline=pipeline, key=key, ok=True, date=request.date, data=look_once(probes, request))
    except ProbeError as error:
        return ProbeTrial(pipeline=pipeline, key=key, ok=False, date=request.date, error=str(error))
    finally:
        probes.close()


def _store(target: Target) -> "AbstractContextManager[ControlBackend]":
    if target.aws is not None:
        from interlock.cli import aws_backend

        return aws_backend.opened(target.aws)
    from interlock.cli import store_backend

    assert target.path is not None
    return store_backend.opened(target.path, writing=False)
