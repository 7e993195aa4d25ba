"""What is wrong with a controller, in words: what stops its work, and what it can work in spite of.

Parts of the controller register what they know; `/readyz` and `doctor` ask. Anybody may ask `/readyz`, so an answer
names no path, address or secret. A question that fails is an answer, too.
"""

from collections.abc import Callable, Iterable

from interlock.logs import get_logger
from interlock.model.errors import InterlockError

# Answers with one sentence for each thing that is wrong. Called often, on the threads of requests: it must be cheap.
HealthCheck = Callable[[], Iterable[str]]

_log = get_logger(__name__)


class HealthChecks:
    """A list of questions."""

    def __init__(self) -> None:
        self._checks: list[HealthCheck] = []

    def add(self, check: HealthCheck) -> None:
        """Ask this, too, from now on."""
        self._checks.append(check)

    def answers(self) -> list[str]:
        """What is wrong now; nothing when all is well."""
        found: list[str] = []
        for check in self._checks:
            try:
                found += check()
            except (InterlockError, OSError) as error:
                _log.error("a health check failed", error=str(error))
                found.append("a health check failed: the log says why")
        return found
