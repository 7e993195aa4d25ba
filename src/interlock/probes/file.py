"""Probe `file`: are there files that match a glob, how many, how large, and how old."""

import glob
import os
import stat
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from interlock.model.durations import Duration, format_duration
from interlock.model.errors import ProbeError
from interlock.model.probe_configs import FileProbeConfig
from interlock.ports.probes import ProbeRequest
from interlock.probes.configs import read_config
from interlock.probes.found import Found


class FileProbe:
    """Looks at the controller's machine; relative paths begin at `folder`."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or Path.cwd()

    def look(self, request: ProbeRequest) -> dict[str, Any]:
        """What matches; folders do not count. Nothing is an observation as well."""
        config = read_config(request, FileProbeConfig)
        if "\0" in config.path:
            raise ProbeError("path: there is a NUL character in it")
        deadline = time.monotonic() + request.timeout.total_seconds()
        found = Found()
        for entry in _files(str(self._folder / config.path)):
            found.add(entry.st_size, datetime.fromtimestamp(entry.st_mtime, UTC))
            if time.monotonic() > deadline:
                took = format_duration(Duration(seconds=request.timeout.total_seconds()))
                raise ProbeError(f"path: {found.count} files were counted in {took}, and there are more")
        return found.observation()


def _files(pattern: str) -> Iterator[os.stat_result]:
    for name in glob.iglob(pattern, recursive=True, include_hidden=False):
        try:
            found = os.stat(name)
        except FileNotFoundError:
            continue  # gone since, or a link that leads nowhere
        except OSError as error:
            raise ProbeError(f"path: {name} cannot be looked at: {error.strerror}") from error
        if stat.S_ISREG(found.st_mode):
            yield found
