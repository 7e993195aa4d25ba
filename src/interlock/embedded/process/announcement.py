"""Saying where a controller listens, for as long as it does, also when the disk has no room for that at the start."""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Final

from interlock.embedded.process import discovery
from interlock.logs import get_logger
from interlock.loops import Loop, Loops

_AGAIN_SECONDS: Final = 2.0

_log = get_logger(__name__)


class Announcement:
    """The discovery file of a running controller. Without it the controller works, and nobody finds it by itself."""

    def __init__(self, store: Path, url: str, started: datetime, loops: Loops) -> None:
        self._store = store
        self._url = url
        self._started = started
        self.public_url = ""
        self.certificate = ""
        self._made = False
        self._loops = loops
        self._loop: Loop | None = None

    def start(self) -> None:
        """Make it, now or as soon as that is possible."""
        if not self._try() and (self._loop is None or not self._loop.alive):
            self._loop = self._loops.add("announcement", self._try_again, vital=False, finite=True)
            self._loop.start()

    def show(self, certificate: str) -> None:
        """It has another certificate now."""
        self.certificate = certificate
        self.start()

    def stop(self) -> None:
        """This process listens no more."""
        if self._loop is not None:
            self._loop.stop()
        discovery.withdraw(self._store)

    def problems(self) -> Iterable[str]:
        """That it is missing, in words."""
        return [] if self._made else ["other commands cannot find this controller: its discovery file is missing"]

    def _try(self) -> bool:
        try:
            discovery.announce(
                self._store,
                self._url,
                self._started,
                certificate=self.certificate,
                public_url=self.public_url,
            )
        except OSError as error:
            if self._loop is None:  # once is enough
                _log.warning(
                    "the discovery file cannot be written: other commands need --url until it can",
                    file=str(discovery.server_file(self._store)),
                    url=self._url,
                    error=error.strerror or str(error),
                )
            return False
        self._made = True
        return True

    def _try_again(self) -> float | None:
        return None if self._try() else _AGAIN_SECONDS
