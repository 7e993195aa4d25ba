"""Named calendars: the days that schedules exclude or include."""

from http import HTTPStatus
from typing import Annotated, Any, Final

import msgspec

from interlock.api.auth import CallerArg, ServiceArg, needs
from interlock.api.http import Body, Example, PathParameter, get, put
from interlock.api.parameters import ReasonArg
from interlock.api.problems import ProblemError, RequestError, documented
from interlock.config.aliases import normalise_calendar
from interlock.config.decode import decode
from interlock.config.problems import Severity, format_path
from interlock.config.semantics import check_calendar
from interlock.control import catalog
from interlock.embedded.access.tokens import Scope
from interlock.logs import get_logger
from interlock.model.config import Calendar

_log = get_logger(__name__)

_EXAMPLE: Final = Example(summary="month ends", value={"name": "month-end", "dates": ["2026-03-31", "2026-04-30"]})
NameArg = Annotated[str, PathParameter(description="The calendar's name.", min_length=1, max_length=128)]


class CalendarPage(msgspec.Struct, frozen=True):
    """Every named calendar; there are never many."""

    items: list[Calendar]


@get(
    "/calendars",
    opt=needs(Scope.READ),
    sync_to_thread=True,
    responses=documented(422),
    operation_id="listCalendars",
    summary="All calendars",
    tags=["calendars"],
)
def list_calendars(service: ServiceArg) -> CalendarPage:
    """By name."""
    return CalendarPage(list(catalog.calendars(service.store).values()))


@put(
    "/calendars/{name:str}",
    opt=needs(Scope.ADMIN),
    sync_to_thread=True,
    status_code=200,
    responses=documented(408, 413, 422),
    operation_id="applyCalendar",
    summary="Apply a calendar",
    tags=["calendars"],
)
def apply_calendar(
    name: NameArg,
    data: Annotated[dict[str, Any], Body(description="The calendar, as in a file, in JSON.", examples=[_EXAMPLE])],
    service: ServiceArg,
    caller: CallerArg,
    reason: ReasonArg = "",
) -> Calendar:
    """Store a calendar, checked as a file would be. Runs that are open are not checked against it again."""
    calendar = _checked(name, {"name": name, **data})
    catalog.apply_calendar(caller.acting(service), calendar, reason=reason)
    _log.info("calendar applied", calendar=name, by=caller.name)
    return calendar


def _checked(name: str, data: dict[str, Any]) -> Calendar:
    found = decode(normalise_calendar(data), Calendar)
    findings = found if isinstance(found, tuple) else tuple(check_calendar(found))
    wrong = [one for one in findings if one.severity is Severity.ERROR]
    errors = [ProblemError(path=format_path(one.path), message=one.message) for one in wrong]
    if isinstance(found, Calendar) and found.name != name:
        errors.append(ProblemError(path="name", message=f"is {found.name!r}, but the address names {name!r}"))
    if errors or not isinstance(found, Calendar):
        detail = "; ".join(f"{one.path}: {one.message}" for one in errors)
        raise RequestError(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-calendar", detail, errors=errors)
    return found


ROUTES: Final = (list_calendars, apply_calendar)
