"""boto3 clients, one for each service, made when it is first called: a function pays for what it uses."""

import threading
from collections.abc import Callable
from typing import Any, Final

_CONNECT_SECONDS: Final = 3
_READ_SECONDS: Final = 20
_ATTEMPTS: Final = 3


class Clients:
    """The clients of one process. `make` is given the name of the service."""

    def __init__(self, make: Callable[[str], Any] | None = None) -> None:
        self._make = make or make_client
        self._lock = threading.Lock()
        self._made: dict[str, Any] = {}

    def __call__(self, service: str) -> Any:
        """The client of a service."""
        with self._lock:
            if service not in self._made:
                self._made[service] = self._make(service)
            return self._made[service]


def make_client(service: str) -> Any:
    """A client with the credentials and the region of this process."""
    import boto3
    from botocore.config import Config

    return boto3.client(
        service,
        config=Config(
            connect_timeout=_CONNECT_SECONDS,
            read_timeout=_READ_SECONDS,
            retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
            tcp_keepalive=True,
            user_agent_extra="interlock",
        ),
    )
