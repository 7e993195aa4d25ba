"""One-time timers on SQS and EventBridge Scheduler.

Within 15 minutes a timer is a delayed message in the queue of its kind; further ahead it is an entry of Scheduler that
puts the same message there, up to 60 s late; one already past is sent at once.

A message cannot be withdrawn, and may come twice. So the truth is a small record in the control table (`TIMER#{name}`),
written before the message: it says when the timer fires and which arming of its name it is. A message of another arming
(moved, cancelled, fired already) does nothing. A crash between the record and the message leaves a record that was
never sent; it is sent when the timer is armed again (by the redelivered change, by the watchdog).
"""

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
from botocore.exceptions import BotoCoreError, ClientError

from interlock.aws.clients import Clients
from interlock.aws.failures import call, code_of, translated
from interlock.aws.settings import AwsSettings, SettingsError
from interlock.logs import get_logger
from interlock.model.errors import InvalidValueError
from interlock.model.keys import Table
from interlock.ports.clock import Clock
from interlock.ports.store import Delete, Key, Matches, Put, Store, Update
from interlock.ports.timers import Timer, TimerKind

RECORD: Final = "TIMER#"
_SK: Final = "TIMER"
_LONGEST_SECONDS: Final = 900
LONGEST_DELAY: Final = timedelta(seconds=_LONGEST_SECONDS)
"""SQS delays a message by at most 15 minutes."""
_NAME: Final = re.compile(r"[0-9a-zA-Z_.-]{1,64}")
# A timer whose message should long have come may be sent again: its message is a dead letter, or was lost.
_OVERDUE: Final = timedelta(minutes=15)
# As long as a queue may keep a message (14 days), and a day.
_REMEMBERED: Final = timedelta(days=15)
_SCHEDULER_AGE: Final = 86_400
_log = get_logger(__name__)


class Armed(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The record of a timer: what fires, and whether it is on its way."""

    arming: str
    at: datetime
    kind: TimerKind
    payload: dict[str, Any]
    scheduled: bool = False
    sent_at: datetime | None = None


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """What a queue brings: the timer, which arming of it, and whose."""

    environment: str
    arming: str
    name: str
    at: datetime
    kind: TimerKind
    payload: dict[str, Any]

    @property
    def timer(self) -> Timer:
        """The timer that fires."""
        return Timer(self.name, self.at, self.kind, self.payload)


class SchedulerTimers:
    """`ports.timers.Timers`, and the side that receives their messages."""

    def __init__(
        self, settings: AwsSettings, clients: Clients, store: Store, clock: Clock, new_id: Callable[[], str]
    ) -> None:
        self._settings = settings
        self._clients = clients
        self._store = store
        self._clock = clock
        self._new_id = new_id

    # ------------------------------------------------------------------------------------------------- arming

    def arm(self, timer: Timer) -> None:
        """Arm it, or move the one of the same name. An instant already past fires at once."""
        payload = _check(timer)
        now, before = self._clock.now(), self._record(timer.name)
        same = before is not None and (before.at, before.kind, before.payload) == (timer.at, timer.kind, payload)
        if same and before is not None and _on_its_way(before, now):
            return
        armed = Armed(
            arming=self._new_id(),
            at=timer.at,
            kind=timer.kind,
            payload=payload,
            scheduled=timer.at - now > LONGEST_DELAY,
        )
        self._store.commit([Put(_key(timer.name), _item(armed, now))])
        message = Message(
            environment=self._settings.environment,
            arming=armed.arming,
            name=timer.name,
            at=timer.at,
            kind=timer.kind,
            payload=payload,
        )
        if armed.scheduled:
            self._schedule(message)
        else:
            self._send(message, now)
            if before is not None and before.scheduled:
                self._unschedule(timer.name)
        sent = {"sentAt": msgspec.to_builtins(self._clock.now())}
        self._store.commit([Update(_key(timer.name), set=sent, when=_same_arming(armed.arming))])

    def cancel(self, name: str) -> None:
        """Forget it; an unknown name is no error. Its message may already be on its way, and will do nothing."""
        found = self._record(name)
        if found is None:
            return
        self._store.commit([Delete(_key(name), Matches({"arming": found.arming}))])
        if found.scheduled:
            self._unschedule(name)

    def get(self, name: str) -> Timer | None:
        """The armed timer of that name."""
        found = self._record(name)
        return None if found is None else Timer(name, found.at, found.kind, found.payload)

    def _record(self, name: str) -> Armed | None:
        item = self._store.get(_key(name))
        return None if item is None else msgspec.convert(item, Armed)

    # ------------------------------------------------------------------------------------------------ sending

    def _send(self, message: Message, now: datetime) -> None:
        # Rounded up: one that came too early would be sent again.
        delay = min(max(0, math.ceil((message.at - now).total_seconds())), _LONGEST_SECONDS)
        url, _ = self._queue(message.kind)
        call(
            f"sending the timer {message.name}",
            lambda: self._clients("sqs").send_message(QueueUrl=url, MessageBody=_text(message), DelaySeconds=delay),
        )

    def _schedule(self, message: Message) -> None:
        _, arn = self._queue(message.kind)
        scheduler = self._clients("scheduler")
        entry = {
            "Name": message.name,
            "GroupName": self._needed("scheduler_group"),
            "ScheduleExpression": f"at({_whole_second(message.at):%Y-%m-%dT%H:%M:%S})",
            "ScheduleExpressionTimezone": "UTC",
            "FlexibleTimeWindow": {"Mode": "OFF"},
            "ActionAfterCompletion": "DELETE",
            "Target": {
                "Arn": arn,
                "RoleArn": self._needed("scheduler_role_arn"),
                "Input": _text(message),
                "DeadLetterConfig": {"Arn": self._needed("scheduler_dlq_arn")},
                "RetryPolicy": {"MaximumEventAgeInSeconds": _SCHEDULER_AGE, "MaximumRetryAttempts": 185},
            },
        }
        doing = f"scheduling the timer {message.name}"
        try:
            scheduler.create_schedule(**entry)
        except (ClientError, BotoCoreError) as error:
            if not isinstance(error, ClientError) or code_of(error) != "ConflictException":
                raise translated(error, doing) from error
            call(doing, lambda: scheduler.update_schedule(**entry))

    def _unschedule(self, name: str) -> None:
        group = self._needed("scheduler_group")
        try:
            self._clients("scheduler").delete_schedule(Name=name, GroupName=group)
        except (ClientError, BotoCoreError) as error:
            if isinstance(error, ClientError) and code_of(error) == "ResourceNotFoundException":
                return  # it has fired, and gone
            raise translated(error, f"removing the timer {name}") from error

    def _queue(self, kind: TimerKind) -> tuple[str, str]:
        """Address and ARN of the queue that a kind goes to."""
        prefix = "sla_timer_queue" if kind is TimerKind.SLA else "timer_queue"
        return self._needed(f"{prefix}_url"), self._needed(f"{prefix}_arn")

    def _needed(self, name: str) -> str:
        value: str = getattr(self._settings, name)
        if not value:
            raise SettingsError(f"timers cannot be armed here: environment variable {name.upper()} is missing")
        return value

    # ---------------------------------------------------------------------------------------------- receiving

    def receive(self, body: str, fire: Callable[[Timer], object]) -> bool:
        """Fire the timer of a message, if that is still armed; False when it is not, or its time has not come."""
        message = read_message(body, self._settings.environment)
        found = self._record(message.name)
        if found is None or found.arming != message.arming:
            _log.info("timer-not-armed", timer=message.name, kind=message.kind)
            return False
        now = self._clock.now()
        if now < message.at:
            # A clock that is ahead of ours, or Scheduler within its minute.
            self._send(message, now)
            return False
        fire(message.timer)
        # Only if it is still the one that fired: its receiver may have armed it again.
        self._store.commit([Delete(_key(message.name), Matches({"arming": message.arming}))])
        return True


def read_message(body: str, environment: str) -> Message:
    """The message of a queue; one that is none of ours, or of another environment, is refused."""
    try:
        message = msgspec.json.decode(body, type=Message)
    except msgspec.MsgspecError as error:
        raise InvalidValueError(f"a message of the timer queue is no timer: {error}") from error
    if message.environment != environment:
        raise InvalidValueError(
            f"the timer {message.name} belongs to the environment {message.environment!r}, not to {environment!r}"
        )
    return message


def _check(timer: Timer) -> dict[str, Any]:
    """The payload as it is read back; a timer that cannot be kept is refused."""
    if not _NAME.fullmatch(timer.name):
        raise InvalidValueError(f"{timer.name!r} is not a timer name: 1 to 64 of letters, digits, '-', '_', '.'")
    if timer.at.tzinfo is None:
        raise InvalidValueError(f"{timer.at} has no time zone: a timer needs an instant")
    try:
        plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(timer.payload), type=dict[str, Any])
    except (TypeError, ValueError) as error:
        raise InvalidValueError(f"timer {timer.name}: the payload is not JSON: {error}") from error
    return plain


def _on_its_way(armed: Armed, now: datetime) -> bool:
    return armed.sent_at is not None and now < max(armed.at, armed.sent_at) + _OVERDUE


def _whole_second(at: datetime) -> datetime:
    """The second at which Scheduler is to fire: never before the instant."""
    utc = at.astimezone(UTC)
    return utc if utc.microsecond == 0 else utc.replace(microsecond=0) + timedelta(seconds=1)


def _key(name: str) -> Key:
    return Key(Table.CONTROL, RECORD + name, _SK)


def _item(armed: Armed, now: datetime) -> dict[str, Any]:
    item: dict[str, Any] = msgspec.to_builtins(armed)
    return {**item, "ttl": int((max(armed.at, now) + _REMEMBERED).timestamp())}


def _same_arming(arming: str) -> Matches:
    return Matches({"arming": arming}, present=True)


def _text(message: Message) -> str:
    return msgspec.json.encode(message).decode()
