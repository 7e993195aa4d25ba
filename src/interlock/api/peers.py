"""Whose connection is this? Until a token was made, the controller obeys its own user alone.

Loopback is open to everybody on the machine, and who may apply a command job runs code as the controller. The system
knows which user opened the other end of a local connection, so the owner needs no token for `curl`, the SDK or the
page, and nobody else gets in. Only Linux says it; elsewhere, and of a connection that does not come from this machine,
nobody is the owner, and a token is needed.
"""

import os
import socket
import struct
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Final

Address = tuple[str, int | None]
_End = tuple[str, int]

_NETLINK_SOCK_DIAG: Final = 4
_SOCK_DIAG_BY_FAMILY: Final = 20
_NLM_F_REQUEST: Final = 1
_HEAD: Final = struct.Struct("=IHHII")
_ASKED: Final = struct.Struct("=BBBBI")
_NO_COOKIE: Final = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
_ANY_STATE: Final = 0xFFFFFFFF
# Of the answer: four bytes, the id of the socket (48), then expiry, two queues, user and inode.
_USER: Final = struct.Struct("=52x12xII")
_SECONDS: Final = 1.0
_PROC: Final = {socket.AF_INET: Path("/proc/net/tcp"), socket.AF_INET6: Path("/proc/net/tcp6")}
# What the kernel shows for a user whom it cannot name here: nobody in particular.
_NOBODY: Final = 65534


def local_user(client: Address | None, server: Address | None) -> int | None:
    """The user who opened the other end of a connection on this machine; None when nobody can tell."""
    if client is None or server is None or client[1] is None or server[1] is None:
        return None
    try:
        if not ip_address(client[0]).is_loopback:
            return None
    except ValueError:
        return None
    return user_of((client[0], client[1]), (server[0], server[1]))


def is_own_user(user: int | None) -> bool:
    """Is this the user of this very process?"""
    own = os.geteuid()
    return own != _NOBODY and user == own


def user_of(client: _End, server: _End) -> int | None:
    """The user who opened the client's socket; None when nobody can tell, or when it is closed already."""
    family = socket.AF_INET6 if ":" in client[0] else socket.AF_INET
    try:
        return _ask_kernel(family, client, server)
    except (AttributeError, OSError, struct.error, ValueError):
        with suppress(OSError, ValueError, IndexError, KeyError):
            return _look_up(family, client, server)
    return None


def _ask_kernel(family: int, client: _End, server: _End) -> int | None:
    """By the socket's own addresses, in constant time, however many connections there are."""
    ports = struct.pack("!HH", client[1], server[1])
    addresses = b"".join(socket.inet_pton(family, host).ljust(16, b"\0") for host, _ in (client, server))
    asked = _ASKED.pack(family, socket.IPPROTO_TCP, 0, 0, _ANY_STATE) + ports + addresses + _NO_COOKIE
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(_SECONDS)
        kernel.send(_HEAD.pack(_HEAD.size + len(asked), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0) + asked)
        answer = kernel.recv(8192)
    if _HEAD.unpack_from(answer)[1] != _SOCK_DIAG_BY_FAMILY:
        raise OSError("the kernel does not tell of sockets")
    user, inode = _USER.unpack_from(answer, _HEAD.size)
    # A socket that its process has closed belongs to nobody, and is shown as root's.
    return int(user) if inode else None


def _look_up(family: int, client: _End, server: _End) -> int | None:
    """In the table of all connections, where the kernel cannot be asked for one."""
    wanted = [_as_shown(family, *client), _as_shown(family, *server)]
    for line in _PROC[socket.AddressFamily(family)].read_text(encoding="ascii").splitlines()[1:]:
        fields = line.split()
        if fields[1:3] == wanted and fields[9] != "0":
            return int(fields[7])
    return None


def _as_shown(family: int, host: str, port: int) -> str:
    packed = socket.inet_pton(family, host)
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return "".join(f"{word:08X}" for word in words) + f":{port:04X}"
