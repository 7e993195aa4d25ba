"""watchdog: a pass over all pipelines, every five minutes; a large one in slices, each an invocation of its own."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from interlock.aws.controller import Controller
from interlock.aws.failures import call
from interlock.aws.invocation import Entry
from interlock.aws.names import Function
from interlock.control.watch import watch_slices, watchdog
from interlock.control.watch.watch_slices import Slice
from interlock.logs import get_logger
from interlock.model.errors import InterlockError

_log = get_logger(__name__)


def handle(controller: Controller, event: Mapping[str, Any]) -> Any:
    """One pass, or the slice that is named; the checks that failed, and of how many slices the pass is made."""
    if "slice" in event or "of" in event:
        mine: Sequence[Slice] = [watch_slices.slice_of(event)]
    else:
        slices = watch_slices.slices_for(len(controller.store.pipelines()))
        mine = [slices[0], *(one for one in slices[1:] if not hand_out(controller, one))]
    failed = [name for one in mine for name in watchdog.run(controller.control, part=one)]
    return {"failed": list(dict.fromkeys(failed)), "slices": mine[0].of}


def hand_out(controller: Controller, part: Slice) -> bool:
    """Have another invocation take a slice; False when that cannot be asked for, and this one takes it, too."""
    name = f"{controller.settings.environment}-interlock-{Function.WATCHDOG}"
    payload = msgspec.json.encode(part.payload)
    try:
        call(
            f"handing out slice {part.number} of {part.of} to {name}",
            lambda: controller.clients("lambda").invoke(FunctionName=name, InvocationType="Event", Payload=payload),
        )
    except InterlockError as error:
        _log.error("slice-not-handed-out", slice=part.number, of=part.of, error=str(error))
        return False
    return True


handler: Final = Entry(Function.WATCHDOG, handle)
