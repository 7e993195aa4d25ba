"""The cost page is made from what was measured and from one file of prices."""

import json

import pytest

from tools import costs


def test_the_tables_are_made_anew_in_their_places() -> None:
    text = costs.PAGE.read_text(encoding="utf-8")
    made = costs.with_tables(text)
    assert costs.with_tables(made) == made
    assert all(make() in made for make in costs.TABLES.values())
    assert "as of 20" in costs.prices_table()


def test_the_page_shows_what_was_measured_and_the_prices_of_the_file() -> None:
    """Out of date: `python -m tools.costs`."""
    text = costs.PAGE.read_text(encoding="utf-8")
    assert text == costs.with_tables(text)


def test_every_measured_kind_is_shown() -> None:
    assert set(json.loads(costs.UNITS.read_text(encoding="utf-8"))) == set(costs._ROWS)


def test_what_units_cost() -> None:
    prices = {"per million": {"transitions": 25.0, "invocations": 0.2}, "lambda GB-second": 0.0}
    assert costs.dollars({"transitions": 17, "invocations": 14, "reads": 39}, prices) == pytest.approx(0.0004278)
