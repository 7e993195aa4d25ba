"""What the routes of one controller share."""

import msgspec

from interlock.api.metrics import Metrics
from interlock.api.write_rates import WriteRates
from interlock.embedded.service import Service


class AppState(msgspec.Struct, frozen=True):
    """The controller, what is measured of it, how fast callers write, and where a proxy shows its page."""

    service: Service
    metrics: Metrics
    rates: WriteRates
    public_url: str = ""
