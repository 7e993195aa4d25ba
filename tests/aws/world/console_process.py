"""`interlock console` over a whole environment on AWS, as two processes: for the tests of the page in a browser.

    python -m tests.aws.world.console_process PORT FOLDER

The world has a process of its own: streams, timers, the state machine and the functions, with the rights of the
Terraform plan. The console is the real one; its calls of AWS go to the world through a pipe.
"""

import io
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from unittest import mock

from botocore.client import BaseClient


def main(port: int, folder: Path) -> None:
    """Serve until a signal."""
    os.environ["AWS_CONFIG_FILE"] = os.environ["AWS_SHARED_CREDENTIALS_FILE"] = str(folder / "none")
    os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
    context = get_context("fork")
    here, there = context.Pipe()
    context.Process(target=_play, args=(there, here), daemon=True).start()
    there.close()
    # Only now: both processes load what they need at the same time, and neither what only the other needs.
    from interlock.api.console import Console, ConsoleSettings
    from interlock.api.console_server import ConsoleServer, serve_console
    from interlock.aws.operations.address import parse_address
    from interlock.aws.operations.environment import open_environment

    address: str = here.recv()
    with _forwarded(here):
        console = Console(open_environment(parse_address(address)), ConsoleSettings(folder / "console.db"))
        serve_console(ConsoleServer(port=port), console)


def _play(pipe: Connection, others: Connection) -> None:
    others.close()  # so that the end of the console is the end of the pipe, and of this process
    from tests.aws.world.piped import play

    play(pipe)


@contextmanager
def _forwarded(pipe: Connection) -> Iterator[None]:
    """Every call of a boto3 client of this process is made in the world instead."""
    turn = threading.Lock()

    def make(caller: Any, operation: str, arguments: dict[str, Any]) -> Any:
        with turn:
            pipe.send((caller.meta.service_model.service_name, operation, arguments))
            answer, refusal = pipe.recv()
        if refusal is not None:
            raise caller.exceptions.from_code(refusal["Error"]["Code"])(refusal, operation)
        # What boto3 hands out as a stream came as bytes.
        return {**answer, "Payload": io.BytesIO(answer["Payload"])} if "Payload" in answer else answer

    with mock.patch.object(BaseClient, "_make_api_call", make):
        yield


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
