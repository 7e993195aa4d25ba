"""Probes on AWS: the orchestrator looks before it evaluates, at all that the run waits for, at once.

There is no clock that would look between evaluations. A look that does not end in time has failed, whatever its thread
does; what it was to write stays as it was.
"""

import threading
from typing import Any, Final

from interlock.control import probing
from interlock.control.context import Control
from interlock.control.probing import Claim
from interlock.logs import get_logger
from interlock.model.durations import Duration, format_duration
from interlock.model.errors import ProbeError
from interlock.model.run import Run
from interlock.ports.probes import Prober

# A kind of probe that keeps its timeout says so better than we can.
_LENIENCE: Final = 0.5
_log = get_logger(__name__)


class _Look:
    """A look on a thread of its own."""

    def __init__(self, prober: Prober, claim: Claim) -> None:
        self.claim = claim
        self._prober = prober
        self._result: dict[str, Any] | ProbeError | None = None
        self._thread = threading.Thread(target=self._look, name=f"probe-{claim.request.key}", daemon=True)
        self._thread.start()

    def _look(self) -> None:
        try:
            self._result = self._prober.look(self.claim.request)
        except ProbeError as error:
            self._result = error
        except Exception as error:  # noqa: BLE001 - whatever it raises, it has failed
            self._result = ProbeError(f"{type(error).__name__}: {error}")

    def result(self) -> dict[str, Any] | ProbeError:
        """What it saw, or why it did not; waits until its time is over."""
        timeout = self.claim.request.timeout
        self._thread.join(timeout.total_seconds() + _LENIENCE)
        if self._result is None:
            return ProbeError(f"it had not ended after {format_duration(Duration(seconds=timeout.total_seconds()))}")
        return self._result


def look_first(control: Control, run: Run) -> int:
    """Take the looks that an evaluation of this run would wait for; how many."""
    if control.probes is None:
        return 0
    looks = [_Look(control.probes, claim) for claim in probing.claim_awaited(control, run)]
    for look in looks:
        result = look.result()
        if isinstance(result, ProbeError):
            _log.warning("probe-failed", probe=look.claim.state.key, error=str(result))
            probing.failed(control, look.claim, str(result))
        else:
            probing.succeeded(control, look.claim, result)
    return len(looks)
