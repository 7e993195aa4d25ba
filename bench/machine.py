"""What the figures were measured on; a number without its machine says nothing."""

import os
import platform
import sqlite3
import sys
from pathlib import Path

import psutil


def machine() -> dict[str, object]:
    """The machine, and how busy it is with other things: a shared one measures too slow, never too fast."""
    return {
        "python": sys.version.split()[0],
        "sqlite": sqlite3.sqlite_version,
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memoryMegabytes": round(psutil.virtual_memory().total / 1e6),
        "loadAverage": [round(load, 2) for load in os.getloadavg()],
    }


def _processor() -> str:
    table = Path("/proc/cpuinfo")
    if table.exists():
        for line in table.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or "unknown"
