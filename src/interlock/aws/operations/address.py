"""`aws://<environment>[?region=..&profile=..]`: which environment is meant, and as whom it is asked."""

from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec

from interlock.aws.names import check_environment
from interlock.model.errors import InvalidValueError

SCHEME: Final = "aws://"
_EXAMPLE: Final = "write aws://prod or aws://prod?region=eu-west-1&profile=data"


class AwsAddress(msgspec.Struct, frozen=True):
    """An environment. Without a region or a profile, those of the AWS configuration are used."""

    environment: str
    region: str | None = None
    profile: str | None = None

    def __str__(self) -> str:
        given = {name: text for name, text in (("region", self.region), ("profile", self.profile)) if text}
        return f"{SCHEME}{self.environment}{f'?{urlencode(given)}' if given else ''}"


def parse_address(text: str) -> AwsAddress:
    """The environment that an address names, or a clear error. Asks nobody."""
    parts = urlsplit(text)
    if parts.scheme != "aws" or not parts.netloc or parts.path not in ("", "/") or parts.fragment:
        raise InvalidValueError(f"{text!r} is not an environment on AWS: {_EXAMPLE}")
    given = parse_qsl(parts.query, keep_blank_values=True)
    unknown = [name for name, _ in given if name not in ("region", "profile")]
    if unknown:
        raise InvalidValueError(f"{text!r}: {unknown[0]!r} is neither region nor profile: {_EXAMPLE}")
    names = [name for name, _ in given]
    if len(set(names)) < len(names) or not all(value for _, value in given):
        raise InvalidValueError(f"{text!r}: region and profile are given once, with a value: {_EXAMPLE}")
    return AwsAddress(check_environment(parts.netloc), **dict(given))
