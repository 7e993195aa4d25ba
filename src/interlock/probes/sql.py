"""Probe `sql`: a query that gives one row, whose columns are the fields of the observation. Nothing is ever committed.

Any database that SQLAlchemy has a dialect for; its driver is the user's to install.
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock_time
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from interlock.decide.masking import Masks
from interlock.model.durations import Duration, format_duration
from interlock.model.errors import ProbeError
from interlock.model.probe_configs import SqlProbeConfig
from interlock.model.times import format_instant
from interlock.ports.probes import ProbeRequest
from interlock.probes.configs import quoted, read_config


class SqlProbe:
    """Asks databases. Each look has a connection of its own, which is closed with it."""

    def look(self, request: ProbeRequest) -> dict[str, Any]:
        """The one row of the query."""
        config = read_config(request, SqlProbeConfig)
        masks = Masks(filter(None, [_password(config.url)]))
        try:
            engine = create_engine(config.url, poolclass=NullPool)
            with engine.connect() as connection, _bounded(connection, request.timeout) as over:
                try:
                    found = connection.execute(text(config.query.replace(":", r"\:"))).mappings().fetchmany(2)
                except SQLAlchemyError:
                    if over.is_set():
                        took = format_duration(Duration(seconds=request.timeout.total_seconds()))
                        raise ProbeError(f"the query had not ended after {took}, and was cancelled") from None
                    raise
                return _observation(found)
        except (ArgumentError, NoSuchModuleError, ModuleNotFoundError) as error:
            raise ProbeError(f"url: {masks.hide(quoted(str(error)))}") from None
        except SQLAlchemyError as error:
            # What the driver says, without the statement and a link to somebody's manual.
            said = str(getattr(error, "orig", None) or error)
            raise ProbeError(masks.hide(quoted(said)) or type(error).__name__) from None


def _password(url: str) -> str:
    try:
        return str(make_url(url).password or "")
    except ArgumentError:
        return ""


@contextmanager
def _bounded(connection: Connection, timeout: timedelta) -> Iterator[threading.Event]:
    """Cancel the query when the time is over, if its driver can; the event says that it was."""
    driver, over = connection.connection.driver_connection, threading.Event()
    cancel = getattr(driver, "interrupt", None) or getattr(driver, "cancel", None)  # sqlite3, psycopg and others

    def end() -> None:
        over.set()
        if callable(cancel):
            with suppress(Exception):
                cancel()

    timer = threading.Timer(timeout.total_seconds(), end)
    timer.daemon = True
    timer.start()
    try:
        yield over
    finally:
        timer.cancel()


def _observation(rows: "list[Any] | tuple[Any, ...] | Any") -> dict[str, Any]:
    found: list[Mapping[str, Any]] = [dict(row) for row in rows]
    if not found:
        raise ProbeError("the query gave no row: it must give exactly one, such as SELECT count(*) AS count FROM ...")
    if len(found) > 1:
        raise ProbeError("the query gave more than one row: it must give exactly one")
    return {str(name): _value(str(name), value) for name, value in found[0].items()}


def _value(name: str, value: object) -> Any:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Decimal():
            return _number(value)
        case datetime():
            # Without a zone: most databases keep UTC, and a time without one could not be compared.
            return format_instant(value if value.tzinfo is not None else value.replace(tzinfo=UTC))
        case date() | clock_time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case UUID():
            return str(value)
        case _:
            raise ProbeError(f"column {name}: a {type(value).__name__} has no place in a sensor: cast it in the query")


def _number(value: Decimal) -> int | float | str:
    """Exactly what it was: a fraction that no float holds stays text, which rules compare as a number."""
    if not value.is_finite():
        return str(value)
    if value == value.to_integral_value():
        return int(value)
    near = float(value)
    return near if Decimal(repr(near)) == value else str(value)
