"""`ports.usage.SensorUsage` on SQLite: the row that triggers keep (`sensor_use.sql`)."""

from typing import Final

from interlock.embedded.sqlite.database import Database
from interlock.model.keys import pipeline_pk
from interlock.model.sensor import SensorUse

_READ: Final = "SELECT kept, expiring, bytes FROM sensor_use WHERE pk = ?"


class SqliteSensorUsage:
    """The count of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def sensors_of(self, pipeline: str) -> SensorUse:
        """What the sensors of a pipeline take now."""
        rows = self._database.read(_READ, (pipeline_pk(pipeline),))
        return SensorUse(*rows[0]) if rows else SensorUse()
