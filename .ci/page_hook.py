"""A build hook: whoever installs a wheel has no Node.js, so a wheel or sdist without the built page is no release."""

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGE = Path("src/interlock/web/dist/index.html")
LICENCES = PAGE.with_name("licences.txt")


class PageHook(BuildHookInterface):  # type: ignore[type-arg]
    """Refuses to build without the page; an editable install, as a checkout has, needs none."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Before anything is packed."""
        if version == "editable" or os.environ.get("INTERLOCK_WITHOUT_PAGE"):
            return
        missing = [name for name in (PAGE, LICENCES) if not (Path(self.root) / name).is_file()]
        if missing:
            raise FileNotFoundError(
                f"{missing[0]} is not there: build the page with `make ui` (Node.js 20 or newer), "
                "or set INTERLOCK_WITHOUT_PAGE=1 to build without it"
            )
