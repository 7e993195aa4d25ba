"""What followed from a sensor write: watched for a moment, and printed.

The controller acts on a write within milliseconds, but not within the write. So the events of the pipeline are looked
at until they fall silent, two seconds at most; a write that leads to nothing is recognised sooner.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from interlock.cli.output import one_line
from interlock.cli.wording import print_events, print_rules
from interlock.client.answers import Event, Readiness, Written
from interlock.model.errors import InterlockError

if TYPE_CHECKING:
    from rich.console import Console

    from interlock.cli.backend import Backend

_LONGEST: Final = 2.0
_NOTHING_AFTER: Final = 1.0
_SILENT_AFTER: Final = 0.3
_EVERY: Final = 0.05


class Aftermath(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The events that followed, and the rules of each run that is concerned. `unseen` says why they are not known."""

    events: list[Event] = []
    readiness: list[Readiness] = []
    unseen: str = ""


def watch(backend: "Backend", written: Written, *, served: bool) -> Aftermath:
    """What the controller makes of a write. Where none runs, nobody acts on it; the rules are looked at all the same.

    The write is done, whatever comes of looking: a token may be allowed to write and nothing else.
    """
    try:
        events = _settled(backend, written) if served else []
        return Aftermath(events=events, readiness=list(_concerned(backend, written, events)))
    except InterlockError as error:
        return Aftermath(unseen=str(error))


def _settled(backend: "Backend", written: Written) -> list[Event]:
    from interlock.embedded.clock import pause

    found: list[Event] = []
    waited = silent = 0.0
    while waited < _LONGEST and silent < (_SILENT_AFTER if found else _NOTHING_AFTER):
        pause(_EVERY)
        waited += _EVERY
        silent += _EVERY
        latest = list(backend.events(pipeline=written.pipeline, since=written.received_at, limit=50))
        if len(latest) > len(found):
            found, silent = latest, 0.0
    return found


def _concerned(backend: "Backend", written: Written, events: list[Event]) -> Iterator[Readiness]:
    """The rules of the runs that the events tell of; without any, of the period of the write, or the current one."""
    runs = dict.fromkeys((one.schedule_id, one.date) for one in events if one.schedule_id and one.date)
    wanted: list[tuple[str, str | None]] = list(runs)
    if not wanted:
        wanted = [(name, written.period or None) for name in backend.pipeline(written.pipeline).schedules]
    for schedule, date in wanted:
        try:
            yield backend.readiness(written.pipeline, date, schedule=schedule)
        except InterlockError:
            # An event may tell of a schedule that the config has no more.
            continue


# ------------------------------------------------------------------------------------------------------ printing


def print_aftermath(console: "Console", written: Written, found: Aftermath) -> None:
    """What followed, which rules pass, what is awaited."""
    if found.unseen:
        console.print(f"what followed cannot be seen: {one_line(found.unseen)}", style="yellow")
    print_events(console, found.events)
    for readiness in found.readiness:
        print_rules(console, readiness)
        console.print(f"  {one_line(_state(readiness, found))}")


def _state(readiness: Readiness, found: Aftermath) -> str:
    run = readiness.run
    if run is None:
        return f"no run of {readiness.date} is open: {_unopened(readiness)}"
    opened = any(one.type == "TRIGGER_STARTED" and one.date == readiness.date for one in found.events)
    said = f"run of {readiness.date}{', opened by this write,' if opened else ''} is {run.word}"
    if run.word == "waiting":
        missing = [one.key for one in readiness.results if not one.passed]
        awaited = [*([] if readiness.ready else missing), *(f"upstream {one}" for one in readiness.awaited_upstreams)]
        return f"{said}: awaits {', '.join(awaited)}" if awaited else said
    return f"{said} (attempt {run.attempt})"


def _unopened(readiness: Readiness) -> str:
    if readiness.excluded:
        return readiness.excluded
    if readiness.awaited_upstreams:
        return f"awaits upstream {', '.join(readiness.awaited_upstreams)}"
    return f"`interlock why {readiness.pipeline} --date {readiness.date}` says what would open it"
