"""What `interlock doctor` found out about one thing."""

import msgspec


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at. `advice` says what to do about a problem."""

    name: str
    ok: bool
    detail: str
    advice: str = ""
