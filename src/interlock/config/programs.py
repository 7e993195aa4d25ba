"""Is the program of a command on this machine? Only a warning: the controller may run on another."""

import os
import shlex
import shutil
from pathlib import Path as FilePath

from interlock.model.config import Job, JobType


def missing_program(job: Job, folder: FilePath) -> str | None:
    """What is not there of a command, in words; None if all is well, or nobody can tell. Paths begin at `folder`."""
    program = next(iter(command_words(job)), None)
    cwd, env = job.config.get("cwd") or "", job.config.get("env") or {}
    path = env.get("PATH") if isinstance(env, dict) else None
    if not program or any("${" in str(text) for text in (program, cwd, path)):
        return None
    if "/" not in program:
        found = shutil.which(program, path=str(path or os.environ.get("PATH") or os.defpath))
        return None if found else f"there is no program {program!r} on the PATH of this machine"
    place = folder / str(cwd) / program
    if not place.is_file():
        return f"there is no program {str(place)!r} on this machine"
    return None if os.access(place, os.X_OK) else f"{str(place)!r} is not executable: chmod +x it"


def command_words(job: Job) -> list[str]:
    """The words of a command, as its target reads them; none for other jobs, or where they cannot be read."""
    command = job.config.get("command") if job.type == JobType.COMMAND else None
    if isinstance(command, list):
        return [word for word in command if isinstance(word, str)]
    try:
        return shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        return []
