"""Who holds the connections of a server, so that one peer cannot hold them all.

A peer is an address of the network (of IPv6, the /64 that one customer gets), or a user of this machine. Each may have
its share of the connections. Who wants more gets the place of a connection of the same peer on which nothing is asked,
the one that has waited longest: half-sent heads and idle connections crowd out nobody but themselves. A peer whose
connections are all busy is refused. A tenth more connections are held in reserve, for short: on them everybody still
hears that it is full, and whoever asks for the health of the controller is answered.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from ipaddress import IPv6Address, ip_address
from typing import Final, Generic, TypeVar

_NETWORK_BITS: Final = 64

C = TypeVar("C", bound=Hashable)


class Place(Enum):
    """What a new connection gets."""

    SERVED = auto()
    FULL = auto()  # there are as many connections as can be served
    SHARE = auto()  # the peer has as many as one peer may have
    NONE = auto()


@dataclass(slots=True)
class _Peer(Generic[C]):
    """The connections of a peer; dicts, since they keep the order. Those that wait for a request are in both."""

    held: dict[C, None] = field(default_factory=dict)
    waiting: dict[C, None] = field(default_factory=dict)


class ConnectionTable(Generic[C]):
    """The connections of one server.

    No method takes longer the more connections there are. When it is full, the peers are looked through.
    """

    def __init__(self, connections: int, per_peer: int, reserved: int) -> None:
        self._connections = connections
        self._per_peer = per_peer
        self._reserved = reserved
        self._peers: dict[str, _Peer[C]] = {}
        self._peer_of: dict[C, str] = {}
        self._reserve: _Peer[C] = _Peer()

    def __len__(self) -> int:
        """How many are served."""
        return len(self._peer_of)

    def enter(self, connection: C, peer: str) -> tuple[Place, C | None]:
        """The place of a new connection, and whom to end for it."""
        own = self._peers.get(peer)
        if own is not None and len(own.held) >= self._per_peer:
            return self._instead_of(_longest_waiting(own), connection, peer, Place.SHARE)
        if len(self._peer_of) >= self._connections:
            return self._instead_of(self._of_the_largest(), connection, peer, Place.FULL)
        self._add(connection, peer)
        return Place.SERVED, None

    def leave(self, connection: C) -> None:
        """It is over."""
        self._reserve.held.pop(connection, None)
        self._reserve.waiting.pop(connection, None)
        peer = self._peer_of.pop(connection, None)
        if peer is None:
            return
        own = self._peers[peer]
        own.held.pop(connection, None)
        own.waiting.pop(connection, None)
        if not own.held:
            del self._peers[peer]

    def waits(self, connection: C) -> None:
        """Nothing is asked on it now."""
        own = self._group_of(connection)
        if own is not None:
            own.waiting.setdefault(connection)

    def works(self, connection: C) -> None:
        """A request is under way on it."""
        own = self._group_of(connection)
        if own is not None:
            own.waiting.pop(connection, None)

    def _group_of(self, connection: C) -> "_Peer[C] | None":
        peer = self._peer_of.get(connection)
        if peer is not None:
            return self._peers[peer]
        return self._reserve if connection in self._reserve.held else None

    def _add(self, connection: C, peer: str) -> None:
        own = self._peers.setdefault(peer, _Peer())
        own.held[connection] = None
        own.waiting[connection] = None
        self._peer_of[connection] = peer

    def _instead_of(self, ended: C | None, connection: C, peer: str, full: Place) -> tuple[Place, C | None]:
        if ended is not None:
            self.leave(ended)
            self._add(connection, peer)
            return Place.SERVED, ended
        if len(self._reserve.held) >= self._reserved:
            ended = _longest_waiting(self._reserve)
            if ended is None:
                return Place.NONE, None
            self.leave(ended)
        self._reserve.held[connection] = None
        self._reserve.waiting[connection] = None
        return full, ended

    def _of_the_largest(self) -> C | None:
        """The connection that has waited longest, of the peer with the most connections that has one."""
        return next(filter(None, map(_longest_waiting, self._by_size())), None)

    def _by_size(self) -> "Iterator[_Peer[C]]":
        return iter(sorted(self._peers.values(), key=lambda peer: len(peer.held), reverse=True))


def _longest_waiting(peer: "_Peer[C]") -> C | None:
    return next(iter(peer.waiting), None)


def peer_of(host: str | None, user: int | None) -> str:
    """The name of a peer: a user of this machine where one is known, or else the address or the network."""
    if user is not None:
        return f"user {user}"
    try:
        address = ip_address((host or "").partition("%")[0])
    except ValueError:
        return host or "unknown"
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(IPv6Address(int(address) >> _NETWORK_BITS << _NETWORK_BITS)) + f"/{_NETWORK_BITS}"
    return str(address)
