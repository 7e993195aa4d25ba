"""What the routes of one controller share."""

import msgspec

from interlock.api.metrics import Metrics
from interlock.api.served import Served
from interlock.api.write_rates import WriteRates


class AppState(msgspec.Struct, frozen=True):
    """The controller, what is measured of it, how fast callers write, and where a proxy shows its page."""

    service: Served
    metrics: Metrics
    rates: WriteRates
    public_url: str = ""
