"""Waking an execution that waits for something to change, without losing a wake-up (SPEC 5).

The argument. A waiter reads `wakeSeq` before it reads anything else, and stores its token on the condition that
`wakeSeq` is still what it saw. A waker first increments `wakeSeq`, then answers the token if there is one. Either the
token was stored before the increment, and the waker sees and answers it; or the increment came first, and storing the
token fails, so that the waiter looks again. The token stays in the record: a redelivered change answers it again.

Writes may come faster than evaluations. Those that queued behind an evaluation are joined by the above: they only
increment. Where every wake-up costs (`Settings.wake_every`: on AWS one a second per run), the first is answered at once
and those that follow too soon are joined: the first of them arms a timer, the others find it armed, and the timer
answers for all. The last is not lost, since it either finds the timer armed for later or arms one.

Who waits for a sensor is asked by the versions of the config that are in use, then by the dates that could read it:
neither the number of attempts that wait nor that of the periods matters to a write that is about one of them.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Final

from interlock.control import catalog, records
from interlock.control.context import Control
from interlock.decide import readers
from interlock.model import keys
from interlock.model.errors import StoreError
from interlock.model.keys import RunKey
from interlock.model.run import RunStatus
from interlock.model.sensor import Sensor
from interlock.model.times import format_instant
from interlock.ports.store import Matches, Present, Update
from interlock.ports.timers import Timer, TimerKind

_TRIES: Final = 20


def wake(control: Control, key: RunKey) -> bool:
    """Make the run's execution look again; False when no attempt is under way."""
    if control.settings.wake_every:
        return _wake_joined(control, key)
    where = records.run_record(key, keys.ACTIVE)
    if control.store.commit([Update(where, add={"wakeSeq": 1}, when=Present())]) is not None:
        return False
    active = records.get_active(control.store, key)
    if active is not None and active.token is not None:
        control.executions.answer(active.token)
    return True


def _wake_joined(control: Control, key: RunKey) -> bool:
    """As `wake`, at most one answer in `wake_every`.

    The increment holds only if the token is the one that was read: so it still comes before the answer is decided on.
    """
    where = records.run_record(key, keys.ACTIVE)
    for _ in range(_TRIES):
        active, now = records.get_active(control.store, key), control.now()
        if active is None:
            return False
        due = now if active.woken_at is None else active.woken_at + control.settings.wake_every
        change: dict[str, str] = {}
        if active.token is not None and now >= due:
            change = {"wokenAt": format_instant(now)}
        elif active.token is not None and (active.wake_due is None or active.wake_due <= now):
            # Armed before it is recorded: what is recorded is on its way.
            control.timers.arm(_wake_timer(key, due))
            change = {"wakeDue": format_instant(due)}
        same = Matches({"token": active.token}, present=True)
        if control.store.commit([Update(where, set=change, add={"wakeSeq": 1}, when=same)]) is None:
            if "wokenAt" in change and active.token is not None:
                control.executions.answer(active.token)
            return True
    raise StoreError(f"{key}: it cannot be woken: its {where.sk} keeps changing")


def wake_due(control: Control, key: RunKey) -> None:
    """The timer of joined wake-ups has come: answer for all of them. What was written since the token was stored has
    incremented already.
    """
    active = records.get_active(control.store, key)
    if active is None or active.token is None:
        return
    if active.woken_at is not None and active.wake_due is not None and active.woken_at >= active.wake_due:
        return  # late: a write that came meanwhile was answered at once, and with it those before it
    where = records.run_record(key, keys.ACTIVE)
    change = {"wokenAt": format_instant(control.now())}
    # If another token was stored meanwhile, its execution has looked since.
    if control.store.commit([Update(where, set=change, when=Matches({"token": active.token}, present=True))]) is None:
        control.executions.answer(active.token)


def _wake_timer(key: RunKey, at: datetime) -> Timer:
    payload = {"pipeline": key.pipeline, "schedule": key.schedule, "date": key.date}
    return Timer(f"wake-{keys.execution_name(key, 1)[-50:]}", at, TimerKind.WAKE, payload)


def wake_readers(
    control: Control, pipeline: str, sensor: Sensor, current: catalog.InForce | None, opened: Collection[RunKey]
) -> None:
    """Wake the attempts that wait for this sensor, by the config that each was opened with.

    Those that the write opened just now look for themselves when they start.
    """
    versions = catalog.in_use(control.store, pipeline, current)
    reaches = {version: readers.reach(config, sensor) for version, config in versions.items()}
    found: dict[RunKey, None] = {}
    for version, config in versions.items():
        found |= dict.fromkeys(records.reached(control.store, config, keys.ACTIVE, reaches[version]))
    for key in found:
        run = None if key in opened else records.get_run(control.store, key)
        if run is None or run.status is not RunStatus.PENDING or run.passed_at is not None:
            continue
        reach = reaches.get(run.config_version)
        if reach is not None and reach.covers(key.period):
            wake(control, key)
