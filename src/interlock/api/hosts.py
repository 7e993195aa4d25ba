"""Names of hosts in requests and settings: which always mean this machine?"""

import ipaddress
from functools import lru_cache
from urllib.parse import urlsplit


def hostname(host: str) -> str:
    """The name in a Host header, without a port; "" for what is none."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def is_loopback_name(name: str) -> bool:
    """Does a host name always mean the machine itself? `localhost` does, by RFC 6761; other names are what DNS says."""
    cleaned = name.rstrip(".").lower()
    if cleaned == "localhost" or cleaned.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(cleaned).is_loopback
    except ValueError:
        return False


@lru_cache(maxsize=64)
def is_own_host(header: bytes) -> bool:
    """Does a Host header name this machine? Clients send the same again and again."""
    return is_loopback_name(hostname(header.decode("latin-1")))
