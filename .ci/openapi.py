"""Print the description of the HTTP API: `python .ci/openapi.py > openapi.json`."""

import sys

import msgspec

from interlock.api.app import create_api
from interlock.api.metrics import Metrics
from interlock.api.state import AppState
from interlock.api.write_rates import WriteRates
from interlock.embedded.service import Service, ServiceSettings


def main() -> None:
    """A controller in memory is enough to describe itself."""
    service = Service(ServiceSettings(store=None))
    try:
        described = create_api(AppState(service, Metrics(service), WriteRates())).description()
    finally:
        service.stop()
    sys.stdout.write(msgspec.json.format(described, indent=1).decode() + "\n")


if __name__ == "__main__":
    main()
