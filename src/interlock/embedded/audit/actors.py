"""Who acts on this machine, as the system says it: never by a variable that anybody can set."""

import getpass
import os
from functools import cache, lru_cache
from pathlib import Path

from interlock.model.audit import Actor, ActorKind


@cache
def user_name() -> str:
    """The user of this process."""
    # Elsewhere than on Unix there is only the environment to ask.
    return _name_of(os.getuid()) if hasattr(os, "getuid") else getpass.getuser()


@lru_cache(maxsize=256)
def _name_of(uid: int) -> str:
    """The name of a user; one of a container may have none."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def owner_of(file: Path) -> str:
    """Whom a file or folder belongs to; "" when that is unknown."""
    try:
        return _name_of(file.stat().st_uid)
    except (OSError, ImportError):
        return ""


def this_user() -> Actor:
    """The user of this process, who works on the store directly."""
    name = user_name()
    return Actor(ActorKind.OS_USER, name, os_user=name)


def folder_of(os_user: str) -> Actor:
    """Whoever edits the folder of pipelines; the owner of a file is all that the system tells."""
    return Actor(ActorKind.FOLDER, "folder", os_user=os_user)


def of_token(name: str, *, local: bool, address: str = "") -> Actor:
    """The holder of a token; the owner's token stands for the user who runs the controller."""
    if local:
        return Actor(ActorKind.OWNER, name, address, user_name())
    return Actor(ActorKind.TOKEN, name, address)
