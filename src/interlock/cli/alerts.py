"""`interlock alerts list | test`: which alerts reached people, which did not and why; and trying the channels."""

import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from interlock.cli.backend import connected
from interlock.cli.output import JsonOption, columns, one_line, plain_console, print_json
from interlock.cli.store_access import StoreOption, Target, UrlOption, find_target, through_server
from interlock.cli.wording import moment

if TYPE_CHECKING:
    from interlock.aws.operations.address import AwsAddress
    from interlock.client.answers import ChannelTest, Delivery

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Look at alerts on their way, and try the channels."
)

_STATES = ("waiting", "sent", "dead")


@app.command("list")
def list_(
    *,
    state: Annotated[str | None, typer.Option("--state", help="Only waiting, sent or dead (given up) ones.")] = None,
    channel: Annotated[str | None, typer.Option("--channel", help="Only those to this channel.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="How many.")] = 50,
    store: StoreOption = None,
    url: UrlOption = None,
    json: JsonOption = False,
) -> None:
    """List alerts, the latest first: on which channel, whether sent, how often they were tried, why they failed.

    Example: interlock alerts list --state waiting
    """
    if state is not None and state not in _STATES:
        raise typer.BadParameter(f"{state!r} is not one of {', '.join(_STATES)}", param_hint="--state")
    with connected(store, url) as there:
        found = there.backend.alerts(state=state, channel=channel, limit=limit)
    if json:
        print_json({"alerts": found})
        return
    console = plain_console()
    if not found:
        console.print("no alerts", style="green")
        return
    rows = [["id", "channel", "state", "tries", "pipeline", "queued", "next try", "error"]]
    rows += [_row(one) for one in found]
    for line in columns(rows, ["bold", *("red" if one.state == "dead" or one.error else "" for one in found)]):
        console.print(line)


@app.command("test")
def try_channels_now(
    channel: Annotated[
        str | None, typer.Argument(metavar="[CHANNEL]", help="As `alerts list` names it; default: all.")
    ] = None,
    *,
    store: StoreOption = None,
    url: UrlOption = None,
    json: JsonOption = False,
) -> None:
    """Send a test alert on a channel, or on all, now; says what became of it. Exits 1 if one was not taken.

    The running controller sends it, with its settings and environment; without one, this command does. For an
    environment on AWS this command does, with the settings of the alert-dispatcher.

    Example: interlock alerts test
    """
    target = through_server(find_target(store, url))
    if target.aws is not None:
        found = _for_aws(target.aws, channel)
    else:
        found = _by_server(target, channel) if target.url is not None else _by_ourselves(target, channel)
    if json:
        print_json({"channels": found})
    else:
        console = plain_console()
        for one in found:
            line = f"{one.channel}: sent" if one.ok else f"{one.channel}: not sent: {one_line(one.error)}"
            console.print(line, style="green" if one.ok else "red")
    if not all(one.ok for one in found):
        raise typer.Exit(1)


def _by_server(target: Target, channel: str | None) -> "list[ChannelTest]":
    from interlock.client import Client, RetryPolicy

    with Client(target.url, retry=RetryPolicy(retries=0), timeout=120.0) as client:
        return client.test_alerts(channel)


def _by_ourselves(target: Target, channel: str | None) -> "list[ChannelTest]":
    """With the settings of this folder and the environment of this command."""
    import os

    from interlock.api.settings import load_project
    from interlock.cli.trusting import find_toml
    from interlock.client import answers
    from interlock.control.alerts.alert_channels import build_alerting
    from interlock.control.alerts.alert_tests import test_alert, try_channels
    from interlock.embedded.audit.actors import this_user
    from interlock.embedded.audit.trail import record_in
    from interlock.embedded.clock import SystemClock
    from interlock.jobs.addresses import AddressPolicy, guarded_client, resolve_host
    from interlock.model.audit import AuditAction, AuditNote

    project = load_project(find_toml(Path.cwd()), Path.cwd())
    clock, allowed = SystemClock(), AddressPolicy(project.allow_private_addresses)
    alerting = build_alerting(
        project.alerts, os.environ, clock=clock, client=lambda: guarded_client(allowed, resolve_host)
    )
    tried = try_channels(alerting.channels, channel, test_alert(clock.now(), getpass.getuser()))
    if target.path is not None and target.path.exists():
        sent = {one.channel: "sent" if one.ok else "failed" for one in tried}
        action = AuditAction.ALERTS_TESTED
        note = AuditNote(action=action, actor=this_user(), subject=channel or "all", after=sent)
        record_in(target.path, note, clock)
    return [answers.ChannelTest(channel=one.channel, ok=one.ok, error=one.error) for one in tried]


def _for_aws(address: "AwsAddress", channel: str | None) -> "list[ChannelTest]":
    """With the channels of the deployed alert-dispatcher, and the rights of whoever calls."""
    from interlock.aws import controller as wiring
    from interlock.aws.channels import Channels
    from interlock.aws.names import Function
    from interlock.aws.operations.deployed import deployed_settings
    from interlock.cli.aws_backend import opened
    from interlock.client import answers
    from interlock.control.alerts.alert_tests import test_alert, try_channels

    with opened(address) as backend:
        settings = deployed_settings(backend.environment, Function.ALERT_DISPATCHER)
        channels = Channels(settings, wiring.secrets(settings), backend.clock)()
        tried = try_channels(channels, channel, test_alert(backend.clock.now(), getpass.getuser()))
    return [answers.ChannelTest(channel=one.channel, ok=one.ok, error=one.error) for one in tried]


def _row(delivery: "Delivery") -> list[str]:
    due = moment(delivery.due_at) if delivery.state == "waiting" else "-"
    return [
        str(delivery.id),
        delivery.channel,
        delivery.state,
        str(delivery.tries),
        delivery.pipeline,
        moment(delivery.queued_at),
        due,
        one_line(delivery.error)[:200] or "-",
    ]
