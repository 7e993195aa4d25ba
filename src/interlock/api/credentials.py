"""What a request shows of its sender: a bearer token, the cookie of a session, whose connection it is, and its page.

A browser sends the cookie by itself, also when a foreign page makes it write; and SameSite does not tell ports of one
host apart. So a write by cookie must name our own origin and carry `X-Interlock: 1`, which a foreign page cannot send
without being asked for permission first. A bearer token wins over a cookie and needs none of this: no browser sends
one by itself.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from interlock.api.problems import RequestError

HEADER: Final = "X-Interlock"
_HEADER: Final = HEADER.lower().encode()
OWN_USER: Final = "own_user"
CONNECTION: Final = "connection"
PEER: Final = "peer"
SAFE_WAY: Final = "safe_way"
READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
Headers = Mapping[bytes, bytes]


class Credentials(msgspec.Struct, frozen=True):
    """What a sender shows; both may be empty. A bearer token wins.

    `own_user`: the connection is one of the controller's own user, on this machine; counts until there is a token.
    `address` is where it comes from, `peer` whose share of the server it takes.
    """

    authorization: str = ""
    session: str = ""
    own_user: bool = False
    address: str = ""
    peer: str = ""

    @property
    def bearer(self) -> str:
        """The text of a bearer token; "" for none, and for other kinds."""
        kind, _, text = self.authorization.partition(" ")
        return text.strip() if kind.lower() == "bearer" else ""


def headers_of(scope: Mapping[str, Any]) -> dict[bytes, bytes]:
    """The headers of a request, by their lower-case names."""
    return {name.lower(): value for name, value in scope["headers"]}


def cookie_name(scope: Mapping[str, Any]) -> str:
    """The name of our cookie: cookies do not tell ports apart, so the port is part of the name."""
    _, port = scope.get("server") or ("", 0)
    return f"interlock_session_{port}"


def credentials_of(scope: Mapping[str, Any], headers: Headers) -> Credentials:
    """What the sender of a request shows."""
    authorization = headers.get(b"authorization", b"").decode("latin-1")
    session = "" if authorization else _cookie(headers, cookie_name(scope))
    state, client = scope.get("state", {}), scope.get("client")
    return Credentials(
        authorization,
        session,
        own_user=state.get(OWN_USER) is True,
        address=client[0] if client else "",
        peer=state.get(PEER, ""),
    )


def _cookie(headers: Headers, name: str) -> str:
    for part in headers.get(b"cookie", b"").decode("latin-1").split(";"):
        key, _, value = part.strip().partition("=")
        if key == name:
            return value
    return ""


def origin_of(url: str) -> str:
    """The origin of an address, as a browser writes it; "" for what is none."""
    try:
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.netloc}".lower() if parts.scheme and parts.netloc else ""
    except ValueError:
        return ""


def check_own_page(scope: Mapping[str, Any], headers: Headers, public_origin: str) -> None:
    """Raise unless a request comes from our own page."""
    host = headers.get(b"host", b"").decode("latin-1").lower()
    origin = headers.get(b"origin", b"").decode("latin-1").lower()
    own = {f"{scope.get('scheme', 'http')}://{host}", public_origin} - {""}
    if origin not in own:
        shown = f"the Origin {origin[:100]!r}" if origin else "no Origin"
        detail = (
            f"a write with a session's cookie must come from the controller's own page, not from {shown}: use a bearer "
            "token, or set public_url in interlock.toml to the address of the page"
        )
        raise RequestError(HTTPStatus.FORBIDDEN, "cross-origin", detail)
    if headers.get(_HEADER) != b"1":
        detail = f"a write with a session's cookie needs the header `{HEADER}: 1`"
        raise RequestError(HTTPStatus.FORBIDDEN, "cross-origin", detail)
