"""What a process can do so that others of the same user do not look into it."""

import ctypes
import sys
from typing import Final

from interlock.logs import get_logger

_PR_SET_DUMPABLE: Final = 4

_log = get_logger(__name__)


def hide_memory() -> None:
    """Let no other process of this user read the memory and environment of this one, nor trace it; no core dumps.

    There are secrets in both, and jobs run as the same user. Linux alone knows this; a job's own process is not hidden.
    """
    if not sys.platform.startswith("linux"):
        return
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        _log.warning("other processes of this user can read the memory of this one", error=ctypes.get_errno())
