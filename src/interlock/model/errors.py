"""One error root. A message says what was wrong, where, and what to do."""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final

_LONGEST_NAME: Final = 128
_MOST_NAMES: Final = 1000


class InterlockError(Exception):
    """Root of every error this project raises on purpose."""


class InvalidValueError(InterlockError, ValueError):
    """A value a person wrote cannot be read: a duration, a period, a key, a time."""


class StoreError(InterlockError):
    """The store could not be read or written."""


class StoreUnavailableError(StoreError):
    """The store itself failed (disk full, locked), whatever it was asked: the same may succeed later."""

    error_name = "StoreError"  # to the lifecycle it is one like the others


class StoreReplacedError(StoreUnavailableError):
    """The store's file was deleted or replaced while it was open."""


class StoreBehindError(StoreError):
    """The store lacks what was acknowledged last: its log was deleted, or an older copy put in its place."""


class CommitRefusedError(StoreError):
    """A commit that no backend would take: too many writes, a key twice, an item too large."""


class UnavailableError(InterlockError):
    """A service did not answer; the same call may succeed later."""


class ThrottledError(UnavailableError):
    """A service refuses calls that come too fast. The lifecycle retries it by this name, for more than five minutes."""


class AccessError(InterlockError):
    """A service cannot be asked as things are set up: no credentials, no region, no environment, a missing right."""


class InvalidConfigError(InvalidValueError):
    """A pipeline whose stored config is invalid: nobody can tell what it would do."""


class UnknownPipelineError(InterlockError):
    """No pipeline of that name. The message carries the nearest of `names`, which are only read when it is shown.

    The comparison takes its time, and not everybody may hear the names of other teams: who shows the error decides.
    """

    def __init__(self, message: str, name: str = "", names: Callable[[], Iterable[str]] = tuple) -> None:
        super().__init__(message)
        self.plain = message
        self._name = name
        self._names = names
        self._hint: str | None = None

    def __str__(self) -> str:
        if self._hint is None:
            from difflib import get_close_matches  # rarely needed, and every process imports this file

            near = get_close_matches(self._name[:_LONGEST_NAME], islice(self._names(), _MOST_NAMES), n=3)
            self._hint = f"; did you mean {' or '.join(near)}?" if near else ""
        return f"{self.plain}{self._hint}"


class SensorRefusedError(InvalidValueError):
    """A sensor write that is not stored: reserved key, too large, not an object, NaN."""


class SensorTooLargeError(SensorRefusedError):
    """A sensor write that is not stored because of its size alone."""


class QuotaExceededError(SensorRefusedError):
    """A sensor write that is not stored because its pipeline has as much as it may have."""


class JobStartError(InterlockError):
    """A target refused to start a job.

    `permanent` means that trying again cannot help (access denied, no such job).
    """

    def __init__(self, message: str, *, permanent: bool) -> None:
        super().__init__(message)
        self.permanent = permanent


class AlreadyReportedError(InterlockError):
    """The outcome of an attempt was reported before, or the attempt is not the latest any more."""


class SecretError(JobStartError):
    """A secret that a config names cannot be had. The message never holds a secret."""


class ProbeError(InterlockError):
    """A probe could not observe. The message says why, and never holds a secret."""


class JobStopError(InterlockError):
    """A target cannot stop a job. The message says why, and what to do instead."""


class IllegalTransitionError(InterlockError):
    """A run status change that the table of transitions does not have."""
