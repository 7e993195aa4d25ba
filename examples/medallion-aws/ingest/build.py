"""Writes ingest.zip, the package of both functions: `python ingest/build.py`. The same bytes every time."""

import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).parent


def build(target: Path) -> None:
    """The package at `target`."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as package:
        for name in ("crypto.py", "earthquake.py", "landing.py"):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            package.writestr(entry, (HERE / name).read_bytes())


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parent / "ingest.zip")
