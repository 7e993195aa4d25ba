"""Where the example is, and how a copy of it is laid out to be played with.

In a checkout it lies in `examples/medallion`; an installed package carries the same files beside this one.
"""

import shutil
from pathlib import Path
from typing import Final

from interlock.model.errors import InterlockError

NAME: Final = "medallion"
_COPIED: Final = ("pipelines", "calendars", "feeds", "jobs")


class DemoError(InterlockError):
    """The demo cannot be played, or did not come out as it should."""


def example_folder() -> Path:
    """The example's files."""
    here = Path(__file__).resolve()
    places = [here.parent / NAME, *(parent / "examples" / NAME for parent in here.parents[3:4])]
    for place in places:
        if (place / "pipelines").is_dir():
            return place
    looked = " nor ".join(str(place) for place in places)
    raise DemoError(f"the medallion example is not in {looked}: install the package again, or run from a checkout")


def lay_out(folder: Path) -> None:
    """Copy what runs into a folder of its own, so that it may be changed there and nothing is left behind elsewhere."""
    example = example_folder()
    for name in _COPIED:
        shutil.copytree(example / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
