"""Where a person looks at a job on AWS: addresses of its console."""

from typing import Final
from urllib.parse import quote

_DOMAINS: Final = {"cn-": "amazonaws.cn", "us-gov-": "amazonaws-us-gov.com"}


def console(service: str, region: str, place: str) -> str:
    """A page of a service's console; "" when the region is not known."""
    if not region:
        return ""
    domain = next((name for prefix, name in _DOMAINS.items() if region.startswith(prefix)), "aws.amazon.com")
    return f"https://{region}.console.{domain}/{service}/home?region={region}#/{place}"


def part(text: str) -> str:
    """A name as one part of such an address."""
    return quote(text, safe="")
