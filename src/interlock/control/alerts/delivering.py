"""One try to deliver an alert: begun (durable), sent, recorded. What is recorded as sent is never sent again.

A crash between sending and recording leaves a delivery that was begun and not recorded. The next try tells the channel
so (`maybe_sent`): either its receiver knows the alert by its id, or the channel looks before it sends.

How a delivery fares is decided here for every runtime. Where it is kept (rows in SQLite, records in the store) is its
ledger's business; when the next try is made, the queue's.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Protocol

import msgspec

from interlock.control.alerts.alert_dispatcher import Failing, Verdict, judge, pause_after, remember_thread, thread_of
from interlock.logs import get_logger
from interlock.ports.channel import Alert, Channel, DeliveryError
from interlock.ports.clock import Clock
from interlock.ports.store import Store, Update

_log = get_logger(__name__)


class Standing(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """How a delivery has fared. `begun_at`: a try begun then may have succeeded without anybody having recorded it.

    `failing_since`: the first failure, or the day that an earlier alert of the lane was given up on.
    """

    tries: int = 0
    refusals: int = 0
    begun_at: datetime | None = None
    failing_since: datetime | None = None


class Sent(msgspec.Struct, frozen=True):
    """The receiver has it. `writes` keep the thread of its run: they belong into the commit that records this."""

    standing: Standing
    writes: tuple[Update, ...]


class Postponed(msgspec.Struct, frozen=True):
    """It is tried again at `until`. `rest_until`: the receiver wants rest until then, from everything sent to it."""

    standing: Standing
    until: datetime
    error: DeliveryError
    rest_until: datetime | None


class GivenUp(msgspec.Struct, frozen=True):
    """It becomes a dead letter. `lane_since`: nothing has got through since then, so the next alert of the lane, which
    was waiting all that time, does not get a day of its own; None after a refusal, which says nothing of the next.
    """

    standing: Standing
    since: datetime
    error: DeliveryError
    lane_since: datetime | None


Tried = Sent | Postponed | GivenUp


class Ledger(Protocol):
    """Keeps how one delivery stands. Both methods are durable when they return."""

    def begin(self, now: datetime) -> Standing | None:
        """A try is about to be made: how the delivery stood before it; None when it is settled already."""
        ...

    def record(self, tried: Tried, now: datetime) -> None:
        """What became of the try."""
        ...


def deliver(
    ledger: Ledger,
    store: Store,
    channels: Mapping[str, Channel],
    channel: str,
    alert: Callable[[], Alert],
    *,
    clock: Clock,
    jitter: float,
) -> Tried | None:
    """Make one try and record it; None when there is nothing to send any more.

    `alert` raises msgspec.MsgspecError when what was queued holds none: that is a refusal, too.
    """
    standing = ledger.begin(clock.now())
    if standing is None:
        return None
    try:
        tried = _send(store, channels, channel, alert, standing, clock)
    except (Exception, SystemExit) as error:  # noqa: BLE001  whatever a channel raises is a failure of its delivery
        # What a channel did not foresee may have happened at any point.
        known = error if isinstance(error, DeliveryError) else DeliveryError(repr(error), uncertain=True)
        tried = after_failure(standing, known, clock.now(), jitter)
    ledger.record(tried, clock.now())
    return tried


def _send(
    store: Store,
    channels: Mapping[str, Channel],
    name: str,
    alert: Callable[[], Alert],
    standing: Standing,
    clock: Clock,
) -> Tried:
    channel = channels.get(name)
    if channel is None:
        raise DeliveryError(
            f"no channel {name!r} is configured any more: add it to [[alerts]] and redrive, or purge this",
            permanent=True,
        )
    try:
        what = alert()
    except msgspec.MsgspecError as error:
        raise DeliveryError(f"this delivery holds no event: {error}", permanent=True) from error
    thread = channel.send(what, thread=thread_of(store, name, what.event), maybe_sent=standing.begun_at)
    writes = remember_thread(name, what.event, thread, clock.now())
    return Sent(Standing(tries=standing.tries + 1, refusals=standing.refusals), tuple(writes))


def after_failure(standing: Standing, error: DeliveryError, now: datetime, jitter: float) -> Postponed | GivenUp:
    """What follows from a failed try. `jitter` in 0..1 spreads the pauses."""
    # An earlier try whose end nobody knows stays unknown, whatever became of this one.
    begun = standing.begun_at if standing.begun_at is not None else now if error.uncertain else None
    since = standing.failing_since if standing.failing_since is not None else now
    failed = Standing(standing.tries + 1, standing.refusals + int(error.permanent), begun, since)
    if judge(Failing(failed.tries, failed.refusals, since), now) is Verdict.GIVE_UP:
        return GivenUp(failed, since, error, None if error.permanent else since)
    until = now + pause_after(error, failed.tries, jitter)
    return Postponed(failed, until, error, until if error.retry_after is not None else None)


def report(tried: Tried, channel: str, alert: str, now: datetime) -> None:
    """Log what became of a failed try; a success is not logged."""
    match tried:
        case Postponed(standing, until, error):
            _log.warning(
                "an alert was not delivered; trying again",
                channel=channel,
                alert=alert,
                tries=standing.tries,
                pause=round((until - now).total_seconds(), 1),
                error=str(error),
            )
        case GivenUp(standing, _, error):
            _log.error(
                "an alert became a dead letter; `interlock dlq redrive` sends it again",
                channel=channel,
                alert=alert,
                tries=standing.tries,
                error=str(error),
            )
        case Sent():
            pass
