"""Print the description of the HTTP API: `python .ci/openapi.py > openapi.json`."""

import sys

import msgspec

from interlock.api.app import create_litestar
from interlock.api.metrics import Metrics
from interlock.embedded.service import Service, ServiceSettings


def main() -> None:
    """A controller in memory is enough to describe itself."""
    service = Service(ServiceSettings(store=None))
    try:
        described = create_litestar(service, Metrics(service)).openapi_schema.to_schema()
    finally:
        service.stop()
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(described), indent=1).decode() + "\n")


if __name__ == "__main__":
    main()
