"""What the routes of one controller share."""

import msgspec

from interlock.api.metrics import Metrics
from interlock.embedded.service import Service


class AppState(msgspec.Struct, frozen=True):
    """The controller, what is measured of it, and where a proxy shows its page (`public_url`)."""

    service: Service
    metrics: Metrics
    public_url: str = ""
