"""`interlock console` over an environment on moto, as a process of its own: for the tests of the page in a browser.

    python -m tests.aws.cli.console_process PORT FOLDER

The functions that read the streams work all the time. Nothing runs the state machine: a run that has opened waits.
"""

import os
import sys
import threading
from pathlib import Path

from interlock.api.console import Console, ConsoleSettings
from interlock.api.console_server import ConsoleServer, serve_console
from interlock.aws.operations.address import parse_address
from interlock.aws.operations.environment import open_environment
from interlock.logs import get_logger
from tests.aws.cli.deployed import ADDRESS, Deployed, deployed

_EVERY = 0.1
_log = get_logger(__name__)


def main(port: int, folder: Path) -> None:
    """Serve until a signal."""
    os.environ["AWS_CONFIG_FILE"] = os.environ["AWS_SHARED_CREDENTIALS_FILE"] = str(folder / "none")
    os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
    ended = threading.Event()
    with deployed() as environment:
        console = Console(open_environment(parse_address(ADDRESS)), ConsoleSettings(folder / "console.db"))
        pumping = threading.Thread(target=_pump, args=(environment, ended), daemon=True)
        pumping.start()
        try:
            serve_console(ConsoleServer(port=port), console)
        finally:
            ended.set()
            pumping.join()


def _pump(environment: Deployed, ended: threading.Event) -> None:
    while not ended.wait(_EVERY):
        try:
            environment.pump()
        except Exception:  # noqa: BLE001 - AWS would try again, and so does this
            _log.exception("a function failed")


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
