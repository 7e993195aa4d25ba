"""`interlock ready`: the gate for a cron job, or any script. The exit code is the answer, the reason is on stderr.

0 ready, 1 not (or not yet), 2 usage, 3 cannot tell. Whatever goes wrong on the way is 3 and never 0: a script that goes
on only at 0 is safe, and one that wants to alarm somebody can tell "not ready" from "nobody answers".
"""

import time
from typing import TYPE_CHECKING, Annotated, Final
from uuid import uuid4

import msgspec
import typer

from interlock.cli.backend import NOT_SERVED, Connected, connected
from interlock.cli.completion import PipelineArgument
from interlock.cli.output import JsonOption, log_to_stderr, one_line, plain_console, print_json
from interlock.cli.store_access import StoreOption, UrlOption
from interlock.cli.wording import ScheduleOption, period_option
from interlock.model.errors import (
    AccessError,
    InterlockError,
    InvalidConfigError,
    InvalidValueError,
    UnknownPipelineError,
)

if TYPE_CHECKING:
    from interlock.client.answers import Readiness

READY: Final = 0
NOT_READY: Final = 1
USAGE: Final = 2
CANNOT_TELL: Final = 3
_INTERRUPTED: Final = 130

_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 5.0
_PROBLEM: Final = "urn:interlock:problem:"
# What a server says when the command was wrong; any other refusal leaves the question open.
_MISTAKES: Final = tuple(_PROBLEM + slug for slug in ("unknown-pipeline", "invalid-value", "invalid-request"))


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked, and where. The first answer decides which run is meant: at midnight "the current" is another.

    `claim_id`: empty when nothing is claimed. One for the whole command: a claim whose answer got lost is asked for
    again, and is not its own competitor.
    """

    pipeline: str
    date: str | None
    schedule: str | None
    claim_id: str
    store: str | None
    url: str | None


class Answer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The answer. `final`: waiting would not change it."""

    pipeline: str
    code: int
    reason: str
    schedule: str | None = None
    date: str | None = None
    claimed: bool = False
    attempt: int | None = None
    run_id: str = ""
    final: bool = False


def ready(
    pipeline: PipelineArgument,
    *,
    date: Annotated[
        str | None,
        typer.Option("--date", metavar="D", help="2026-03-02, 2026-03-02T10; default: the current run's."),
    ] = None,
    schedule: ScheduleOption = None,
    wait: Annotated[
        str | None, typer.Option("--wait", metavar="DURATION", help="How long to wait for it: 1h. Default: not at all.")
    ] = None,
    claim: Annotated[
        bool,
        typer.Option("--claim", help="Take the run: it is opened and started as yours. Only job.type external."),
    ] = False,
    store: StoreOption = None,
    url: UrlOption = None,
    json: JsonOption = False,
) -> None:
    """Ask whether it is safe to run: exits 0 ready, 1 not (yet), 2 usage, 3 cannot tell; the reason is on stderr.

    When it is ready the run's date is printed. With --claim of several callers one gets 0; it reports how the job ended
    with `interlock job report`.

    Example: interlock ready gold-revenue --wait 1h && ./build-gold.sh
    """
    log_to_stderr()
    named = None if date is None else str(period_option(date))
    claim_id = uuid4().hex if claim else ""
    asked = Question(pipeline=pipeline, date=named, schedule=schedule, claim_id=claim_id, store=store, url=url)
    try:
        answer = _ask(asked, _seconds(wait))
    except KeyboardInterrupt:
        raise typer.Exit(_INTERRUPTED) from None
    if json:
        print_json({"ready": answer.code == READY, **msgspec.to_builtins(answer)})
    elif answer.code == READY:
        typer.echo(answer.date)
    plain_console(err=True).print(one_line(answer.reason))
    raise typer.Exit(answer.code)


def _seconds(wait: str | None) -> float:
    from interlock.model.durations import parse_duration

    try:
        return 0.0 if wait is None else parse_duration(wait).total_seconds()
    except InvalidValueError as error:
        raise typer.BadParameter(str(error), param_hint="--wait") from error


def _ask(asked: Question, seconds: float) -> Answer:
    """Ask until the answer is final, or the time is over. A server that does not answer is asked again, too."""
    from interlock.embedded.clock import pause

    ends, step = time.monotonic() + seconds, _FIRST_PAUSE
    while True:
        answer, asked = _once(asked)
        left = ends - time.monotonic()
        if answer.final or left <= 0:
            return answer
        pause(min(step, left))
        step = min(step * 2, _LONGEST_PAUSE)


def _once(asked: Question) -> tuple[Answer, Question]:
    """One answer, and the question with the run that it was about."""
    from interlock.client.errors import NotClaimedError

    try:
        with connected(asked.store, asked.url, writing=bool(asked.claim_id)) as there:
            if not asked.claim_id:
                found = there.backend.readiness(asked.pipeline, asked.date, schedule=asked.schedule)
                return _judged(found), _about(asked, found)
            if asked.date is None or asked.schedule is None:
                asked = _about(asked, there.backend.readiness(asked.pipeline, asked.date, schedule=asked.schedule))
            return _claimed(there, asked), asked
    except NotClaimedError as error:
        return _negative(asked, NOT_READY, str(error), final=not error.later), asked
    except typer.BadParameter:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, the exit code has to say that nobody can tell
        return _unanswered(asked, error), asked


def _about(asked: Question, found: "Readiness") -> Question:
    return msgspec.structs.replace(asked, date=found.date, schedule=found.schedule)


def _judged(found: "Readiness") -> Answer:
    what = f"{found.pipeline} for {found.date}"
    answer = Answer(pipeline=found.pipeline, code=NOT_READY, reason="", schedule=found.schedule, date=found.date)
    if found.excluded:
        return msgspec.structs.replace(answer, reason=f"{what} will not run: {found.excluded}", final=True)
    awaited = "".join(f"; awaits upstream {name}" for name in found.awaited_upstreams)
    if found.ready and not awaited:
        return msgspec.structs.replace(answer, code=READY, reason=f"{what} is ready: {found.summary}", final=True)
    return msgspec.structs.replace(answer, reason=f"{what} is not ready: {found.summary}{awaited}")


def _claimed(there: Connected, asked: Question) -> Answer:
    found = there.backend.claim(asked.pipeline, asked.date, schedule=asked.schedule, claim_id=asked.claim_id)
    note = "" if there.served else f"; {NOT_SERVED}"
    report = f"`interlock job report {found.pipeline} --date {found.date} success` (or fail) ends it"
    return Answer(
        pipeline=found.pipeline,
        code=READY,
        reason=f"{found.pipeline} for {found.date} is yours (attempt {found.attempt}): {report}{note}",
        schedule=found.schedule,
        date=found.date,
        claimed=True,
        attempt=found.attempt,
        run_id=found.run_id,
        final=True,
    )


def _unanswered(asked: Question, error: Exception) -> Answer:
    """A mistake in the command is reported at once. Others may be temporary: the answer is unknown for now."""
    from interlock.client.errors import AnswerError

    wrong = isinstance(error, UnknownPipelineError | InvalidValueError | AccessError)
    mistaken = wrong and not isinstance(error, InvalidConfigError)
    if mistaken or (isinstance(error, AnswerError) and error.problem.type in _MISTAKES):
        return _negative(asked, USAGE, str(error), final=True)
    known = isinstance(error, InterlockError)
    said = str(error) if known else f"{type(error).__name__}: {error}"
    return _negative(asked, CANNOT_TELL, f"cannot tell whether {asked.pipeline} is ready: {said}", final=False)


def _negative(asked: Question, code: int, reason: str, *, final: bool) -> Answer:
    return Answer(
        pipeline=asked.pipeline, code=code, reason=reason, schedule=asked.schedule, date=asked.date, final=final
    )
