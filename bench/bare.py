"""The floor of `bench.api`: a bare ASGI application with the same commit, and nothing else.

`python -m bench.bare FOLDER` serves on a port that it writes to `FOLDER/port`. A request's body is decoded and put as
the item of a sensor, durably, through the same writer thread; there is no routing, no check, no log and no limit.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

import msgspec
import uvicorn

from interlock.embedded.clock import SystemClock
from interlock.embedded.sqlite.database import Database
from interlock.embedded.sqlite.store import SqliteStore
from interlock.model.keys import Table
from interlock.ports.store import Key, Put


def main(folder: Path) -> None:
    """Serve until a signal."""
    clock = SystemClock()
    with Database.open(folder / "bare.db", clock=clock) as database:
        store = SqliteStore(database, clock)
        decode = msgspec.json.Decoder(dict[str, Any]).decode

        async def app(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] != "http":
                return
            data = decode((await receive())["body"])
            put = Put(Key(Table.CONTROL, "PIPELINE#bare", f"SENSOR#{scope['path'][-40:]}"), {"data": data})
            now = int(clock.now().timestamp() * 1000)
            await asyncio.wrap_future(database.submit(lambda connection: store.apply(connection, [put], now)))
            headers = [(b"content-type", b"application/json"), (b"content-length", b"2")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b"{}"})

        config = uvicorn.Config(app, port=0, log_config=None, access_log=False, http="httptools", lifespan="off")
        listener = config.bind_socket()
        listener.listen(1024)
        (folder / "port").write_text(str(listener.getsockname()[1]))
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
