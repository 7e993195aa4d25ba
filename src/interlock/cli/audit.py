"""`interlock audit`: who changed what; `audit verify`: whether the trail is whole."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from interlock.cli.backend import connected
from interlock.cli.completion import complete_pipeline
from interlock.cli.output import JsonOption, columns, counted, one_line, plain_console, print_json
from interlock.cli.store_access import StoreOption, Target, UrlOption, find_target
from interlock.cli.wording import moment, now, since_option
from interlock.model.audit import AuditAction

if TYPE_CHECKING:
    from interlock.client.answers import AuditRecord
    from interlock.embedded.audit.verify import AuditVerdict

app = typer.Typer(rich_markup_mode=None, help="Show who changed what, and check that nothing of it was altered.")


def _complete_action(incomplete: str) -> list[str]:
    return [one.value for one in AuditAction if one.value.startswith(incomplete.lower())]


@app.callback(invoke_without_command=True)
def audit(  # noqa: PLR0913 - an argument per option
    context: typer.Context,
    *,
    pipeline: Annotated[
        str | None,
        typer.Option("--pipeline", metavar="P", help="Only of this pipeline.", autocompletion=complete_pipeline),
    ] = None,
    actor: Annotated[
        str | None, typer.Option("--actor", metavar="NAME", help="Only of this token, or user of the machine.")
    ] = None,
    action: Annotated[
        list[str] | None,
        typer.Option("--action", metavar="A", help="Only this; may be repeated.", autocompletion=_complete_action),
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="WHEN", help="2026-03-02T08:00:00Z, 2026-03-02, 90m, 2d.")
    ] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="WHEN", help="Before then, as --since.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1_000_000, help="How many, the latest.")] = 50,
    store: StoreOption = None,
    url: UrlOption = None,
    json: JsonOption = False,
) -> None:
    """Show who changed what, when, from where and why, the latest last. Over a server this needs a token for admin.

    Example: interlock audit --pipeline gold-revenue --since 7d
    """
    if context.invoked_subcommand is not None:
        return
    actions = [_known(name) for name in action or []]
    _check_place(find_target(store, url))
    begin, end = since_option(since, now()), _until(until)
    with connected(store, url) as there:
        found = there.backend.audit(pipeline=pipeline, actor=actor, action=actions, since=begin, until=end, limit=limit)
    if json:
        print_json({"records": found})
        return
    console = plain_console()
    if not found:
        console.print("no such records")
        return
    rows = [["record", "at", "who", "from", "did", "what", "before -> after", "reason"]]
    rows += [_row(one) for one in reversed(found)]
    for line in columns(rows, ["bold"]):
        console.print(line)


@app.command()
def verify(
    *,
    head: Annotated[
        str,
        typer.Option("--head", metavar="SEQ:HASH", help="A head that was printed before, and kept elsewhere."),
    ] = "",
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Check that no record of the audit trail was altered, moved or removed; prints its head. Exits 1 if one was.

    Whoever can write to the store can make the whole trail anew. Keep the head where they cannot, and give it with
    --head later: then that is found, too.

    Example: interlock audit verify --head 345:9f2c...
    """
    target = find_target(store)
    _check_place(target)
    if target.path is None:
        raise typer.BadParameter(
            f"{target} ({target.origin}) is a server: run this where its store is, and name that with --store"
        )
    from interlock.embedded.audit import verify as verification

    with verification.snapshot(target.path) as connection:
        verdict = verification.verify(connection, anchor=head)
    _print_verdict(verdict, json=json)
    if verdict.problems:
        raise typer.Exit(1)


def _print_verdict(verdict: "AuditVerdict", *, json: bool) -> None:
    if json:
        found = str(verdict.head) if verdict.head is not None else None
        print_json({"ok": not verdict.problems, "anchor": found, **_plain(verdict)})
        return
    console = plain_console()
    for problem in verdict.problems:
        console.print(one_line(str(problem)), style="red")
    looked = f"{counted(verdict.records, 'record')} of {counted(verdict.days, 'day')}"
    if verdict.problems:
        console.print(f"the audit trail was changed: {looked} looked at", style="red")
    else:
        console.print(f"the audit trail is whole: {looked}", style="green")
    if verdict.head is not None:
        console.print(f"head: {verdict.head}")


def _plain(verdict: "AuditVerdict") -> dict[str, object]:
    return {
        "days": verdict.days,
        "records": verdict.records,
        "head": verdict.head,
        "problems": verdict.problems,
    }


def _check_place(target: Target) -> None:
    if target.aws is not None:
        raise typer.BadParameter(
            f"{target}: no audit trail is kept on AWS: CloudTrail says who called what, DynamoDB's data events included"
        )


def _known(name: str) -> str:
    from interlock.config.suggestions import did_you_mean

    names = [one.value for one in AuditAction]
    if name.lower() not in names:
        raise typer.BadParameter(f"{name!r} is not an action{did_you_mean(name, names)}", param_hint="--action")
    return name.lower()


def _until(text: str | None) -> datetime | None:
    try:
        return since_option(text, now())
    except typer.BadParameter as error:
        raise typer.BadParameter(error.message, param_hint="--until") from error


def _row(one: "AuditRecord") -> list[str]:
    slot = "/".join(part for part in (one.pipeline, one.schedule, one.date) if part)
    what = " ".join(part for part in (slot, one.subject) if part)
    who = one.actor.name
    if one.actor.os_user and one.actor.os_user != who:
        who = f"{who} ({one.actor.os_user})"
    shown = f"{_values(one.before)} -> {_values(one.after)}" if one.before or one.after else "-"
    return [
        str(one.seq),
        moment(one.at),
        one_line(who),
        one_line(one.actor.address) or "-",
        one.action,
        one_line(what) or "-",
        one_line(shown)[:200],
        one_line(one.reason)[:200] or "-",
    ]


def _values(given: dict[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in given.items() if value is not None) or "-"
