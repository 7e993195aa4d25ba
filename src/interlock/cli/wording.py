"""How runs, rules and times are put into words: the same in every command."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Final

import typer

from interlock.model.errors import InvalidValueError

if TYPE_CHECKING:
    from rich.console import Console

    from interlock.client.answers import Event, Readiness, RuleResult
    from interlock.model.periods import Period

WORD_STYLES: Final = {"done": "green", "running": "cyan", "waiting": "yellow", "failed": "red", "held": "magenta"}
SEVERITY_STYLES: Final = {"warning": "yellow", "error": "red", "critical": "bold red"}
_UNITS: Final = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))

DateOption = Annotated[
    str, typer.Option("--date", metavar="D", help="2026-03-02, 2026-03-02T10 or 2026-03-02T1015.", show_default=False)
]
ScheduleOption = Annotated[
    str | None, typer.Option("--schedule", metavar="S", help="For pipelines with several schedules.")
]


def now() -> datetime:
    """The current instant."""
    from interlock.embedded.clock import SystemClock

    return SystemClock().now()


def moment(at: datetime | None) -> str:
    """To the second: `2026-03-02 08:30:00Z`; a dash for none."""
    return "-" if at is None else f"{at:%Y-%m-%d %H:%M:%S}Z"


def length(duration: timedelta | float | None) -> str:
    """Its two largest units: `3h12m`, `45s`; a dash for none."""
    if duration is None:
        return "-"
    seconds = int(duration.total_seconds() if isinstance(duration, timedelta) else duration)
    if seconds < 1:
        return "0s"
    parts = []
    for unit, size in _UNITS:
        count, seconds = divmod(seconds, size)
        parts.append(f"{count}{unit}" if count else "")
    first = next(index for index, part in enumerate(parts) if part)
    return "".join(parts[first : first + 2])


def away(at: datetime | None, reference: datetime) -> str:
    """`5m ago`, `in 3h12m`; a dash for none."""
    if at is None:
        return "-"
    return f"{length(reference - at)} ago" if at <= reference else f"in {length(at - reference)}"


def period_option(text: str) -> "Period":
    """The period a person named; a malformed one is a mistake in the command."""
    from interlock.model.periods import parse_period

    try:
        return parse_period(text)
    except InvalidValueError as error:
        raise typer.BadParameter(str(error), param_hint="--date") from error


def since_option(text: str | None, reference: datetime) -> datetime | None:
    """An instant, or how long ago: `2026-03-02T08:00:00Z`, `2026-03-02`, `90m`, `2d`."""
    from interlock.model.durations import parse_duration
    from interlock.model.times import parse_instant

    if text is None:
        return None
    found = parse_instant(text) or parse_instant(f"{text}T00:00:00Z")
    if found is not None:
        return found
    try:
        return reference - parse_duration(text)
    except InvalidValueError as error:
        message = f"{text!r} is neither a time nor a duration: write 2026-03-02T08:00:00Z, 2026-03-02, 90m or 2d"
        raise typer.BadParameter(message, param_hint="--since") from error


def rule_line(result: "RuleResult", signs: tuple[str, str]) -> str:
    """`✗ row-count: count is 5, needs >= 1000`."""
    return f"{signs[0] if result.passed else signs[1]} {result.key}: {result.reason}"


def print_rules(console: "Console", found: "Readiness") -> None:
    """The rules of a run as they stand, each with its reason."""
    from interlock.cli.output import marks, one_line

    good = sum(one.passed for one in found.results)
    older = "; the config has changed since this attempt was opened" if found.config_changed else ""
    console.print(f"rules ({found.mode}) for {found.date}: {good} of {len(found.results)} pass{older}")
    for result in found.results:
        console.print(f"  {one_line(rule_line(result, marks(console)))}", style="green" if result.passed else "red")


def print_events(console: "Console", events: "Iterable[Event]") -> None:
    """Events as an aligned table."""
    from interlock.cli.output import columns

    shown = list(events)
    if shown:
        rows = [[moment(one.timestamp), one.pipeline_id, one.date, one.type, one.message] for one in shown]
        for line in columns(rows, [SEVERITY_STYLES.get(one.severity, "") for one in shown]):
            console.print(line)
