"""What the routes of one controller share."""

import msgspec

from interlock.api.logins import FailedLogins
from interlock.api.metrics import Metrics
from interlock.api.served import Served
from interlock.api.write_rates import WriteRates


class AppState(msgspec.Struct, frozen=True):
    """The controller, what is measured of it, what its callers do, and where a proxy shows its page."""

    service: Served
    metrics: Metrics
    rates: WriteRates = msgspec.field(default_factory=WriteRates)
    logins: FailedLogins = msgspec.field(default_factory=FailedLogins)
    public_url: str = ""
