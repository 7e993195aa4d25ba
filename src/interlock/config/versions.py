"""Versions of configs: a hash of their canonical JSON. Apart from what reads configs, since it needs none of that."""

from hashlib import sha256

import msgspec

from interlock.model.errors import InvalidValueError


def config_version(document: object) -> str:
    """What tells one version of a config from another: a hash of its canonical JSON."""
    return sha256(canonical_json(document)).hexdigest()[:16]


def canonical_json(document: object) -> bytes:
    """The one JSON text of a document: keys sorted, no spaces."""
    try:
        return msgspec.json.encode(document, order="sorted")
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidValueError(f"the config cannot be written as JSON: {error}") from error
