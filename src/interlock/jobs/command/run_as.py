"""Commands as another user: whom `[jobs] run_as` names, and whether this process may become them.

The wrapper stays the controller's, so that it can end the command whoever it runs as; the command's own process gives
up everything before it becomes the command: groups, user, capabilities. Who may not do that is told at the start of the
controller, not by the first job.
"""

import grp
import os
import pwd
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from interlock.model.errors import InterlockError
from interlock.ports.job_targets import RunAs

_STATUS: Final = Path("/proc/self/status")
# To become another user, and to end what runs as one.
_NEEDED: Final = {5: "CAP_KILL", 6: "CAP_SETGID", 7: "CAP_SETUID"}


def find_user(name: str) -> RunAs:
    """The user of that name, whom this process may become; raises InterlockError with what is missing."""
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        raise InterlockError(f"[jobs] run_as: there is no user {name!r} on this machine") from None
    if found.pw_uid == 0:
        raise InterlockError("[jobs] run_as: as root a command may do everything: name another user")
    missing = _missing()
    if missing:
        raise InterlockError(
            f"[jobs] run_as: this controller may not run commands as {name!r}: it lacks {', '.join(missing)}; start it"
            " as root, or with these as AmbientCapabilities"
        )
    groups = tuple(sorted({one for one in os.getgrouplist(name, found.pw_gid) if _exists(one) or one == found.pw_gid}))
    return RunAs(name=name, uid=found.pw_uid, gid=found.pw_gid, groups=groups, home=found.pw_dir)


def _exists(gid: int) -> bool:
    try:
        grp.getgrgid(gid)
    except KeyError:
        return False
    return True


def _missing() -> list[str]:
    """Of root nothing. Of others what a process that they start does not have: the ambient capabilities count."""
    if os.geteuid() == 0:
        held = _capabilities("CapEff")
        return [] if held is None else [name for bit, name in _NEEDED.items() if not held >> bit & 1]
    held = _capabilities("CapAmb")
    return [name for bit, name in _NEEDED.items() if held is None or not held >> bit & 1]


def _capabilities(which: str) -> int | None:
    """A set of capabilities of this process; None where the system does not say."""
    try:
        lines = _STATUS.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    found = next((line.split()[1] for line in lines if line.startswith(f"{which}:")), None)
    return None if found is None else int(found, 16)


def variables_of(user: RunAs | None) -> Mapping[str, str]:
    """What a login would tell the user's programs."""
    return {} if user is None else {"HOME": user.home, "USER": user.name, "LOGNAME": user.name}


def argument_of(user: RunAs | None) -> str:
    """For the wrapper: `uid:gid:group,group`; "" to stay who it is."""
    return "" if user is None else f"{user.uid}:{user.gid}:{','.join(map(str, user.groups))}"
