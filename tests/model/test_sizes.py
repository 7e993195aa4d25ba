"""Amounts of data as people write them."""

import pytest

from interlock.model.errors import InvalidValueError
from interlock.model.sizes import parse_size


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("512", 512),
        ("1B", 1),
        ("1kB", 1000),
        ("1 KiB", 1024),
        ("64MiB", 64 * 1024**2),
        (" 1.5gb ", 1_500_000_000),
        ("0.1TB", 100_000_000_000),
        ("4GiB", 4 * 1024**3),
    ],
)
def test_sizes(text: str, expected: int) -> None:
    assert parse_size(text) == expected


@pytest.mark.parametrize("text", ["", "MiB", "-1", "1 PiB", "1M", "1e3", "1,5GB", "64MiBs", "١٢"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(InvalidValueError, match="is not an amount of data: write '64MiB'"):
        parse_size(text)
