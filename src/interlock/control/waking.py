"""Waking an execution that waits for something to change, without losing a wake-up (SPEC 5).

The argument. A waiter reads `wakeSeq` before it reads anything else, and stores its token on the condition that
`wakeSeq` is still what it saw. A waker first increments `wakeSeq`, then answers the token if there is one. Either the
token was stored before the increment, and the waker sees and answers it; or the increment came first, and storing the
token fails, so that the waiter looks again. The token stays in the record: a redelivered change answers it again.

Who waits for a sensor is asked by the versions of the config that are in use, then by the dates that could read it:
neither the number of attempts that wait nor that of the periods matters to a write that is about one of them.
"""

from collections.abc import Collection

from interlock.control import catalog, records
from interlock.control.context import Control
from interlock.decide import readers
from interlock.model import keys
from interlock.model.keys import RunKey
from interlock.model.run import RunStatus
from interlock.model.sensor import Sensor
from interlock.ports.store import Present, Update


def wake(control: Control, key: RunKey) -> bool:
    """Make the run's execution look again; False when no attempt is under way."""
    where = records.run_record(key, keys.ACTIVE)
    if control.store.commit([Update(where, add={"wakeSeq": 1}, when=Present())]) is not None:
        return False
    active = records.get_active(control.store, key)
    if active is not None and active.token is not None:
        control.executions.answer(active.token)
    return True


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
