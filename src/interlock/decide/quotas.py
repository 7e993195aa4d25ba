"""How many sensors a pipeline may have: no single writer of sensors may fill the disk.

Sensors that expire by themselves, as those of a period do 90 days after it, count apart and may be five times as many:
ten keys that are written for every hour make 21,600 of them.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from interlock.model.keys import split_sensor_key
from interlock.model.sensor import MAX_SENSOR_BYTES, SensorUse
from interlock.model.times import epoch_millis

PERIOD_KEPT: Final = timedelta(days=90)
_EXPIRING_FACTOR: Final = 5
# Beside the observation an item holds when and by whom it was written.
_LARGEST_ITEM: Final = MAX_SENSOR_BYTES + 1024


class SensorQuota(msgspec.Struct, frozen=True):
    """What the sensors of one pipeline may take."""

    sensors: int = 10_000
    bytes: int = 256 * 1024 * 1024


def expiry_of(key: str, received: datetime) -> int | None:
    """When the sensor of a period expires, in epoch seconds; None for a key that names no period."""
    _, period = split_sensor_key(key)
    if period is None:
        return None
    # What comes late is kept as long as what comes in time.
    kept_from = max(period.ends.replace(tzinfo=UTC), received)
    return epoch_millis(kept_from + PERIOD_KEPT) // 1000


def room(use: SensorUse, quota: SensorQuota) -> int:
    """How many writes fit whatever they are: before so many, nobody has to look again."""
    return max(
        min(
            quota.sensors - use.kept,
            quota.sensors * _EXPIRING_FACTOR - use.expiring,
            (quota.bytes - use.bytes) // _LARGEST_ITEM,
        ),
        0,
    )


def refusal(use: SensorUse, quota: SensorQuota, *, expiring: bool, size: int, replaced: int | None) -> str:
    """Why a write is not taken; "" when it is. `replaced`: the size of the sensor that is there already."""
    if replaced is None:
        most = quota.sensors * _EXPIRING_FACTOR if expiring else quota.sensors
        count = use.expiring if expiring else use.kept
        if count >= most:
            which = "sensors that expire" if expiring else "sensors"
            return (
                f"it has {count} {which}, as many as a pipeline may have: delete some, write fewer keys, or raise "
                "sensors_per_pipeline in [limits] of interlock.toml"
            )
    grown = size - (replaced or 0)
    if grown > 0 and use.bytes + grown > quota.bytes:
        return (
            f"its sensors take {use.bytes} bytes, as many as a pipeline's may: delete some, write less, or raise "
            "bytes_per_pipeline in [limits] of interlock.toml"
        )
    return ""
