"""`interlock sensor set | get | list | delete`: write an observation and see what follows; look at what there is."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from interlock.cli.backend import NOT_SERVED, connected
from interlock.cli.completion import PipelineArgument
from interlock.cli.output import JsonOption, columns, log_to_stderr, one_line, plain_console, print_json
from interlock.cli.store_access import StoreOption, UrlOption
from interlock.cli.wording import away, moment, now, period_option
from interlock.model.errors import InterlockError, InvalidValueError
from interlock.model.keys import split_sensor_key
from interlock.model.periods import Granularity, Period
from interlock.model.times import zone

if TYPE_CHECKING:
    from interlock.cli.backend import Backend

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Write sensors, and look at them.")

KeyArgument = Annotated[
    str, typer.Argument(metavar="KEY", help="The sensor's key; KEY#2026-03-02 is of that period.", show_default=False)
]


@app.command("set")
def set_(  # noqa: PLR0913 - an argument per option
    pipeline: PipelineArgument,
    key: KeyArgument,
    fields: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FIELD=VALUE]...", help="count=5, ready=true, 'id=\"5\"'.", show_default=False),
    ] = None,
    *,
    data: Annotated[str | None, typer.Option("--data", metavar="JSON", help="The fields as a JSON object.")] = None,
    date: Annotated[
        str | None, typer.Option("--date", metavar="D", help="What it is about: 2026-03-02 or 2026-03-02T10.")
    ] = None,
    ttl: Annotated[
        str | None, typer.Option("--ttl", metavar="DURATION", help="How long it counts: 2h. Default: forever.")
    ] = None,
    store: StoreOption = None,
    url: UrlOption = None,
    json: JsonOption = False,
) -> None:
    """Write an observation, and say what followed: the period, a run that was opened, rules, what is awaited.

    A value that reads as JSON is JSON (5, true, "5"), anything else is text. An observation of another period than the
    current one is written to KEY#D: the value of KEY, which is today's, stays.

    Example: interlock sensor set gold-revenue row-count count=15432 --date 2026-03-02
    """
    from interlock.cli.aftermath import print_aftermath, watch

    log_to_stderr()
    given = observation(fields or [], data)
    period = None if date is None else _period(date, key, given)
    expires = None if ttl is None else _expiry(ttl, now())
    with connected(store, url, writing=True) as there:
        named, observed = (key, given) if period is None else _about(there.backend, pipeline, key, given, period)
        written = there.backend.write_sensor(pipeline, named, observed, ttl=expires)
        found = watch(there.backend, written, served=there.served)
    if json:
        print_json({"written": written, "served": there.served, "followed": found})
        return
    console = plain_console()
    about = f" for {written.period}" if written.period else ""
    console.print(one_line(f"stored {pipeline}/{named}{about}: {_text(observed)}"), style="green")
    for warning in written.warnings:
        console.print(f"warning: {one_line(warning)}", style="yellow")
    print_aftermath(console, written, found)
    if not there.served:
        console.print(NOT_SERVED, style="yellow")


@app.command("get")
def get(
    pipeline: PipelineArgument,
    key: KeyArgument,
    *,
    store: StoreOption = None,
    url: UrlOption = None,
    json: JsonOption = False,
) -> None:
    """Show the latest observation of a sensor; exits 1 when there is none.

    Example: interlock sensor get gold-revenue row-count
    """
    with connected(store, url) as there:
        found = there.backend.read_sensor(pipeline, key)
    if json:
        print_json(found)
        return
    console = plain_console()
    console.print(one_line(f"{found.pipeline}/{found.key}{f' for {found.period}' if found.period else ''}"))
    console.print(f"received {moment(found.received_at)} ({away(found.received_at, now())})")
    if found.ttl is not None:
        console.print(f"expires {moment(datetime.fromtimestamp(found.ttl, found.received_at.tzinfo))}")
    if not found.read:
        console.print("no rule reads it", style="yellow")
    for name, value in found.data.items():
        console.print(f"  {one_line(name)} = {one_line(_text(value))}")


@app.command("delete")
def delete(
    pipeline: PipelineArgument,
    key: KeyArgument,
    *,
    store: StoreOption = None,
    url: UrlOption = None,
    json: JsonOption = False,
) -> None:
    """Forget the observation of a sensor; exits 1 when there is none. Rules that read it find none, or KEY for KEY#D.

    Example: interlock sensor delete gold-revenue row-count#2026-03-02
    """
    log_to_stderr()
    with connected(store, url, writing=True) as there:
        there.backend.delete_sensor(pipeline, key)
    if json:
        print_json({"deleted": {"pipeline": pipeline, "key": key}, "served": there.served})
        return
    console = plain_console()
    console.print(one_line(f"deleted {pipeline}/{key}"), style="green")
    if not there.served:
        console.print(NOT_SERVED, style="yellow")


@app.command("list")
def list_(
    pipeline: PipelineArgument, *, store: StoreOption = None, url: UrlOption = None, json: JsonOption = False
) -> None:
    """List the sensors of a pipeline, with when each was received and what it says.

    Example: interlock sensor list gold-revenue
    """
    with connected(store, url) as there:
        found = there.backend.read_sensors(pipeline)
    if json:
        print_json({"sensors": found})
        return
    console, reference = plain_console(), now()
    if not found:
        console.print(f"{pipeline} has no sensors yet: `interlock sensor set {pipeline} KEY field=value` writes one")
        return
    rows = [["key", "received", "period", "data"]]
    rows += [[one.key, away(one.received_at, reference), one.period or "-", _short(one.data)] for one in found]
    styles = ["bold", *("" if one.read else "dim" for one in found)]
    for line in columns(rows, styles):
        console.print(line)


# --------------------------------------------------------------------------------------------- what was written


def observation(fields: list[str], data: str | None) -> dict[str, Any]:
    """The object that `field=value` arguments and `--data` describe together; without any it would wipe the value."""
    if not fields and data is None:
        raise typer.BadParameter(
            "say what was observed: count=5, or --data '{...}'; `interlock sensor delete` forgets a value",
            param_hint="FIELD=VALUE",
        )
    found: dict[str, Any] = {} if data is None else _object(data)
    for field in fields:
        name, mark, text = field.partition("=")
        if not mark or not name:
            raise typer.BadParameter(f"{field!r} is not FIELD=VALUE: write count=5", param_hint="FIELD=VALUE")
        if name in found:
            raise typer.BadParameter(f"{name} is given twice", param_hint="FIELD=VALUE")
        found[name] = _value(text)
    return found


def _object(text: str) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise typer.BadParameter(f"this is not JSON: {error}", param_hint="--data") from error
    if not isinstance(found, dict):
        raise typer.BadParameter("a sensor's data is a JSON object: write '{\"count\": 5}'", param_hint="--data")
    return found


def _value(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def _period(date: str, key: str, data: dict[str, Any]) -> Period:
    clash = [f"the field {name}" for name in ("date", "hour") if name in data]
    if split_sensor_key(key)[1] is not None:
        clash.append(f"the key {key}")
    if clash:
        raise typer.BadParameter(f"{clash[0]} says it already", param_hint="--date")
    return period_option(date)


def _about(
    backend: "Backend", pipeline: str, key: str, data: dict[str, Any], period: Period
) -> tuple[str, dict[str, Any]]:
    """Under which key `--date` is written: the current period as fields of the plain key, any other as `key#D`.

    What is written to the plain key replaces its value, and that is the current period's.
    """
    if not _is_current(backend, pipeline, period) or period.granularity is Granularity.MINUTE:
        return f"{key}#{period}", data
    hour = {} if period.hour is None else {"hour": period.hour}
    return key, {**data, "date": period.day.isoformat(), **hour}


def _is_current(backend: "Backend", pipeline: str, period: Period) -> bool:
    """Is it that period now, in the zone of every schedule? No, where the pipeline cannot be read."""
    try:
        document = backend.pipeline(pipeline).document
        several = document.get("schedules") or [document.get("schedule") or {}]
        zones = {zone(str(one.get("timezone") or "UTC")) for one in several if isinstance(one, dict)}
    except InterlockError:
        return False
    reference = now()
    return all(period.start(tz) <= reference < period.end(tz) for tz in zones)


def _expiry(text: str, reference: datetime) -> int:
    from interlock.model.durations import parse_duration

    try:
        return int((reference + parse_duration(text)).timestamp())
    except InvalidValueError as error:
        raise typer.BadParameter(str(error), param_hint="--ttl") from error


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _short(data: dict[str, Any], most: int = 80) -> str:
    text = _text(data)
    return text if len(text) <= most else f"{text[: most - 1]}…"
