"""A pass of the watchdog on request: by the deployed function, slice by slice, so that one hears what failed."""

from interlock.aws.names import Function
from interlock.aws.operations.environment import Environment
from interlock.aws.operations.invoking import call_function
from interlock.control.watch.watch_slices import slices_for
from interlock.ports.store import Store


def run_pass(environment: Environment, store: Store) -> list[str]:
    """One pass, now; the checks that failed."""
    failed: dict[str, None] = {}
    for part in slices_for(len(store.pipelines())):
        said = call_function(environment, Function.WATCHDOG, part.payload)
        found = said.get("failed", []) if isinstance(said, dict) else []
        failed |= dict.fromkeys(str(one) for one in found)
    return list(failed)
