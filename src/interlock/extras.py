"""Packages that only some installations need, each an extra of Interlock's own, and how to say that one is missing."""

from importlib.util import find_spec
from typing import Final, NamedTuple


class Extra(NamedTuple):
    """What `pip install 'interlock[name]'` adds: a package, and the module that it is imported as."""

    name: str
    package: str
    module: str

    @property
    def installed(self) -> bool:
        """Is its package here?"""
        return find_spec(self.module) is not None

    def why_missing(self, what: str) -> str:
        """That `what` need the package, and how to install it; "" if it is here."""
        if self.installed:
            return ""
        return f"{what} need the package {self.package}, which is not installed: pip install 'interlock[{self.name}]'"


AWS: Final = Extra("aws", "boto3", "boto3")
HOLIDAYS: Final = Extra("holidays", "holidays", "holidays")
OIDC: Final = Extra("oidc", "PyJWT", "jwt")
SLACK: Final = Extra("slack", "slack-sdk", "slack_sdk")
SQL: Final = Extra("sql", "SQLAlchemy", "sqlalchemy")
EXTRAS: Final = (AWS, HOLIDAYS, OIDC, SLACK, SQL)


def installed() -> tuple[str, ...]:
    """The extras whose packages are here, by name."""
    return tuple(one.name for one in EXTRAS if one.installed)
