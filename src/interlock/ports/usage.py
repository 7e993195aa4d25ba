"""What the sensors of a pipeline take, as a store that keeps count of it says."""

from typing import Protocol

from interlock.model.sensor import SensorUse


class SensorUsage(Protocol):
    """Who keeps count. Asking takes the same time however many sensors there are."""

    def sensors_of(self, pipeline: str) -> SensorUse:
        """What the sensors of a pipeline take now."""
        ...
