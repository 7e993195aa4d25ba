"""EventBridge Scheduler of the world: moto keeps the schedules, here they fire.

Source: EventBridge Scheduler User Guide, "Schedule types": a one-time schedule fires within the minute of its time
(precision of 60 seconds). Here it fires at the first whole minute that is not before its time.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from moto.scheduler.models import Schedule, scheduler_backends

from interlock.ports.clock import Clock
from tests.aws.world.calls import Call
from tests.aws.world.plan import ACCOUNT, REGION, Plan

_AT: Final = re.compile(r"at\((\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\)")
# API Reference, CreateSchedule.
_NAME: Final = re.compile(r"[0-9a-zA-Z-_.]{1,64}")
_MINUTE: Final = timedelta(minutes=1)

Send = Callable[[str, str], None]
"""Hand an input over to a target, by its ARN."""


def on_the_minute(at: datetime) -> datetime:
    """The first whole minute that is not before."""
    return at if at.second == 0 and at.microsecond == 0 else at.replace(second=0, microsecond=0) + _MINUTE


class Schedules:
    """Answers the calls to Scheduler (moto does, after a check), and fires."""

    def __init__(self, plan: Plan, clock: Clock, send: Send) -> None:
        self._plan = plan
        self._clock = clock
        self._send = send
        self.fires_at: Callable[[datetime], datetime] = on_the_minute

    def install(self, client: Any) -> None:
        """Make the planned groups."""
        for group in self._plan.schedule_groups:
            client.create_schedule_group(Name=group)

    def armed(self) -> list[Schedule]:
        """Every schedule that has not fired, the earliest first."""
        groups = scheduler_backends[ACCOUNT][REGION].schedule_groups
        found = [one for name in self._plan.schedule_groups for one in groups[name].schedules.values()]
        return sorted(found, key=lambda one: (_time_of(one.schedule_expression), one.name))

    def next_at(self) -> datetime | None:
        """When the next one fires."""
        return min((self.fires_at(_time_of(one.schedule_expression)) for one in self.armed()), default=None)

    def pump(self) -> int:
        """Fire what is due; how many."""
        due = [one for one in self.armed() if self.fires_at(_time_of(one.schedule_expression)) <= self._clock.now()]
        for schedule in due:
            self._send(schedule.target["Arn"], schedule.target.get("Input", "{}"))
            if schedule.action_after_completion == "DELETE":
                self.remove(schedule)
        return len(due)

    def remove(self, schedule: Schedule) -> None:
        """Forget a schedule, as if it had never been made."""
        groups = scheduler_backends[ACCOUNT][REGION].schedule_groups
        groups[schedule.group_name].schedules.pop(schedule.name, None)

    def __call__(self, call: Call) -> Any:
        """One call."""
        if call.operation in ("CreateSchedule", "UpdateSchedule"):
            self._check(call)
        return call.forward()

    def _check(self, call: Call) -> None:
        arguments = call.arguments
        if not _NAME.fullmatch(arguments["Name"]):
            raise call.error("ValidationException", f"{arguments['Name']!r} is not a name of a schedule")
        if arguments.get("GroupName", "default") not in self._plan.schedule_groups:
            raise call.error(
                "ResourceNotFoundException", f"Schedule group {arguments.get('GroupName')} does not exist."
            )
        if not _AT.fullmatch(arguments["ScheduleExpression"]):
            raise call.error("ValidationException", f"Invalid Schedule Expression {arguments['ScheduleExpression']}.")
        if arguments.get("ScheduleExpressionTimezone", "UTC") != "UTC":
            raise call.error("ValidationException", "this world knows UTC only")
        if call.operation == "CreateSchedule" and _time_of(arguments["ScheduleExpression"]) < self._clock.now():
            # Not documented what happens: whoever arms a timer for the past must not depend on it.
            raise call.error("ValidationException", "Invalid Schedule Expression: the time is in the past")
        if not any(arguments["Target"]["Arn"] == queue.arn for queue in self._plan.queues):
            raise call.error("ValidationException", f"there is no target {arguments['Target']['Arn']}")


def _time_of(expression: str) -> datetime:
    found = _AT.fullmatch(expression)
    assert found is not None, expression
    return datetime.fromisoformat(found[1]).replace(tzinfo=UTC)
