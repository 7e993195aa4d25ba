"""Waking an execution that waits for something to change, without losing a wake-up (SPEC 5).

The argument. A waiter reads `wakeSeq` before it reads anything else, and stores its token on the condition that
`wakeSeq` is still what it saw. A waker first increments `wakeSeq`, then answers the token if there is one. Either the
token was stored before the increment, and the waker sees and answers it; or the increment came first, and storing the
token fails, so that the waiter looks again. The token stays in the record: a redelivered change answers it again.
"""

from interlock.control import records
from interlock.control.context import Control
from interlock.model import keys
from interlock.model.keys import RunKey
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
