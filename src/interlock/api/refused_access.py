"""Callers who are known, and ask for what they may not do: on the record, once a minute for each.

Not each time: a token that may do nothing must not be able to fill the store. Nobody waits for the record.
"""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from interlock.api.auth import PRINCIPAL, Principal
from interlock.api.problems import RequestError
from interlock.embedded.audit.trail import AuditTrail
from interlock.model.audit import AuditAction, AuditNote
from interlock.model.errors import StoreError

_SECONDS: Final = 60.0
_MOST_REMEMBERED: Final = 10_000
_LONGEST: Final = 200


class RefusedAccess:
    """The refusals of one controller; without a trail there is no record of them."""

    def __init__(self, trail: AuditTrail | None, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._trail = trail
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._recorded: dict[tuple[str, str], float] = {}

    def note(self, scope: Mapping[str, Any], error: RequestError) -> None:
        """A request was refused with 403; on the event loop, so this does not wait."""
        caller = scope.get("state", {}).get(PRINCIPAL)
        if self._trail is None or not isinstance(caller, Principal) or not self._is_due(caller):
            return
        asked = f"{scope['method']} {scope['path']}"
        made = AuditNote(
            action=AuditAction.ACCESS_REFUSED,
            actor=caller.actor,
            subject=asked[:_LONGEST],
            reason=str(error)[:_LONGEST],
        )
        with suppress(StoreError):  # it is closed just now, and the answer is more than its record
            self._trail.submit(made)

    def _is_due(self, caller: Principal) -> bool:
        who = caller.name, caller.address
        with self._lock:
            now = self._monotonic()
            if now - self._recorded.get(who, now - _SECONDS) < _SECONDS:
                return False
            if len(self._recorded) >= _MOST_REMEMBERED:
                self._recorded.clear()
            self._recorded[who] = now
            return True
