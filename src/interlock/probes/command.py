"""Probe `command`: a process that is given JSON on stdin and answers with JSON on stdout.

It observes, so it does not outlive its look: when the time is over, or the controller stops, its whole process group is
killed.
"""

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final

import msgspec

from interlock.jobs.command.run_as import variables_of
from interlock.jobs.command.wrapper import ambient_dropper
from interlock.model.durations import Duration, format_duration
from interlock.model.errors import ProbeError
from interlock.model.job_configs import Value
from interlock.model.probe_configs import CommandProbeConfig
from interlock.model.sensor import MAX_SENSOR_BYTES
from interlock.ports.job_targets import RunAs
from interlock.ports.probes import ProbeRequest
from interlock.probes.configs import default_payload, observation_of, quoted, read_config

# The rest of the controller's environment is no business of a probe's: there are tokens in it.
_INHERITED: Final = ("PATH", "HOME", "LANG", "TZ")


class CommandProbe:
    """Runs commands; relative paths begin at `folder`. `run_as`: as this user."""

    def __init__(self, environment: Mapping[str, str], folder: Path | None = None, run_as: RunAs | None = None) -> None:
        self._run_as = run_as
        self._environment = environment
        self._folder = folder or Path.cwd()
        self._lock = threading.Lock()
        self._running: set[int] = set()

    def close(self) -> None:
        """End what still runs."""
        with self._lock:
            running = list(self._running)
        for pid in running:
            _kill(pid)

    def look(self, request: ProbeRequest) -> dict[str, Any]:
        """The JSON object that the command wrote, if it ended well and in time."""
        config = read_config(request, CommandProbeConfig)
        argv, cwd, variables = _argv(config), self._folder / config.cwd, self._variables(config)
        if any("\0" in text for text in (*argv, *variables, *variables.values())):
            raise ProbeError("command or env: there is a NUL character, which no program can be given")
        if not cwd.is_dir():
            raise ProbeError(f"cwd: there is no folder {cwd}")
        program = shutil.which(argv[0], path=variables["PATH"]) if "/" not in argv[0] else str(cwd / argv[0])
        if program is None:
            raise ProbeError(f"command: there is no program {argv[0]!r} on the PATH")
        # Files, not pipes: a process that its child left behind must not keep anybody reading.
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            given.write(msgspec.json.encode(default_payload(request)))
            given.seek(0)
            code = self._run([program, *argv[1:]], cwd, variables, (given, out, err), request)
            if code != 0:
                how = f"exited with {code}" if code > 0 else f"was killed by signal {-code}"
                said = quoted(_end_of(err) or _end_of(out))
                raise ProbeError(f"{argv[0]} {how}{f': {said}' if said else ''}")
            out.seek(0)
            return observation_of(out.read(MAX_SENSOR_BYTES + 1), f"what {argv[0]} wrote")

    def _variables(self, config: CommandProbeConfig) -> dict[str, str]:
        for name in config.env:
            if not name or "=" in name:
                raise ProbeError(f"env: {name!r} cannot be the name of a variable")
        own = {name: self._environment[name] for name in _INHERITED if name in self._environment}
        given = {
            name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in config.env.items()
        }
        return {"PATH": os.defpath, **own, **variables_of(self._run_as), **given}

    def _identity(self) -> dict[str, Any]:
        user = self._run_as
        if user is None:
            return {}
        return {
            "user": user.uid,
            "group": user.gid,
            "extra_groups": list(user.groups),
            "umask": 0o022,
            # Of a controller that is not root: what it may do goes with it, unless it is given up.
            "preexec_fn": ambient_dropper() if os.geteuid() != 0 else None,
        }

    def _run(
        self,
        argv: list[str],
        cwd: Path,
        variables: dict[str, str],
        files: tuple[IO[bytes], IO[bytes], IO[bytes]],
        request: ProbeRequest,
    ) -> int:
        try:
            process = subprocess.Popen(
                argv,
                cwd=cwd,
                env=variables,
                stdin=files[0],
                stdout=files[1],
                stderr=files[2],
                start_new_session=True,
                **self._identity(),
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise ProbeError(f"command: {argv[0]} cannot be started: {getattr(error, 'strerror', error)}") from error
        with self._lock:
            self._running.add(process.pid)
        try:
            return process.wait(request.timeout.total_seconds())
        except subprocess.TimeoutExpired:
            _kill(process.pid)
            process.wait()
            took = format_duration(Duration(seconds=request.timeout.total_seconds()))
            raise ProbeError(f"{argv[0]} had not ended after {took}, and was killed") from None
        finally:
            with self._lock:
                self._running.discard(process.pid)


def _argv(config: CommandProbeConfig) -> list[str]:
    try:
        argv = shlex.split(config.command) if isinstance(config.command, str) else list(config.command)
    except ValueError as error:
        raise ProbeError(f"command: cannot be split into words: {error}") from error
    if not argv or not argv[0]:
        raise ProbeError("command: is empty: name a program and its arguments")
    return argv


def _text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _kill(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _end_of(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 300))
    return file.read().decode(errors="replace")
