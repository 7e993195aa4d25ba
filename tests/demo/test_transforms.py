"""The example's own scripts: the feeds are the same every time, the jobs make the right thing of them."""

import csv
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from interlock.demo.example import example_folder

EXAMPLE = example_folder()
HOUR = "2026-03-02T10"


def script(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, EXAMPLE / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SILVER, GOLD = script("jobs/silver.py"), script("jobs/gold.py")


def run(folder: Path, path: str, *arguments: str, expect: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE / path), *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == expect, done.stderr
    return done.stdout if expect == 0 else done.stderr


def land(folder: Path, feed: str, part: str) -> int:
    return int(json.loads(run(folder, f"feeds/{feed}.py", HOUR, part))["rows"])


def refine(folder: Path, feed: str, job: str, expect: int = 0) -> str:
    return run(folder, f"jobs/{job}.py", "--feed", feed, "--date", HOUR[:10], "--hour", HOUR[11:], expect=expect)


def table(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as stream:
        return list(csv.DictReader(stream))


def quake(number: int, magnitude: float | None, time: str = "10:00") -> dict[str, Any]:
    return {"id": f"eq-{number}", "time": time, "magnitude": magnitude, "depthKm": 1.0, "region": "Tonga"}


def lines(*rows: dict[str, Any]) -> list[str]:
    return [json.dumps(row) for row in rows]


def test_a_quake_is_kept_once_as_it_was_last_reported() -> None:
    found = SILVER.clean_earthquakes(lines(quake(1, 3.0), quake(2, 4.0), quake(1, 3.4)))
    assert [(row["id"], row["magnitude"]) for row in found] == [("eq-1", 3.4), ("eq-2", 4.0)]


def test_a_quake_without_a_magnitude_is_left_out_unless_it_is_revised() -> None:
    assert SILVER.clean_earthquakes(lines(quake(1, None))) == []
    assert len(SILVER.clean_earthquakes(lines(quake(1, None), quake(1, 2.0)))) == 1
    assert SILVER.clean_earthquakes(lines(quake(1, 2.0), quake(1, None))) == []


def test_quakes_and_trades_come_out_by_time() -> None:
    found = SILVER.clean_earthquakes(lines(quake(1, 3.0, "10:30"), quake(2, 4.0, "10:10")))
    assert [row["id"] for row in found] == ["eq-2", "eq-1"]
    trades = [{"at": at, "symbol": "BTC", "price": price, "size": 1} for at, price in (("2", 5), ("1", 4), ("3", None))]
    assert [row["price"] for row in SILVER.clean_trades(lines(*trades))] == [4, 5]


def test_gold_counts_quakes_by_region_and_names_the_strongest() -> None:
    rows = [
        {"region": "Tonga", "magnitude": "3.1"},
        {"region": "Atacama", "magnitude": "2.0"},
        {"region": "Tonga", "magnitude": "10.0"},
    ]
    assert GOLD.by_region(rows) == [
        {"region": "Atacama", "quakes": 1, "strongest": 2.0},
        {"region": "Tonga", "quakes": 2, "strongest": 10.0},
    ]


def test_gold_weights_the_price_of_a_coin_by_the_size_of_its_trades() -> None:
    rows = [
        {"symbol": "BTC", "price": "100", "size": "1"},
        {"symbol": "ETH", "price": "7", "size": "2"},
        {"symbol": "BTC", "price": "200", "size": "3"},
    ]
    assert GOLD.by_coin(rows) == [
        {"coin": "BTC", "trades": 2, "volume": "4.00", "price": "175.00"},
        {"coin": "ETH", "trades": 1, "volume": "2.00", "price": "7.00"},
    ]


@pytest.mark.parametrize("feed", ["earthquake", "crypto"])
def test_a_feed_opens_a_run_with_its_first_part_and_lets_it_start_with_the_rest(tmp_path: Path, feed: str) -> None:
    # The pipelines ask for 100 rows.
    assert land(tmp_path, feed, "first") < 100 <= land(tmp_path, feed, "rest")
    landed = (tmp_path / "bronze" / feed / f"{HOUR}.jsonl").read_text()
    assert land(tmp_path, feed, "count") == len(landed.splitlines())
    land(tmp_path, feed, "first")
    land(tmp_path, feed, "rest")
    assert (tmp_path / "bronze" / feed / f"{HOUR}.jsonl").read_text() == landed


def test_a_correction_is_more_than_the_allowed_drift_and_changes_gold(tmp_path: Path) -> None:
    land(tmp_path, "earthquake", "first")
    before = land(tmp_path, "earthquake", "rest")
    refine(tmp_path, "earthquake", "silver")
    refine(tmp_path, "earthquake", "gold")
    gold = tmp_path / "gold" / "earthquake" / f"{HOUR}.csv"
    first = table(gold)
    assert land(tmp_path, "earthquake", "correct") > before * 1.05
    refine(tmp_path, "earthquake", "silver")
    refine(tmp_path, "earthquake", "gold")
    assert sum(int(row["quakes"]) for row in table(gold)) > sum(int(row["quakes"]) for row in first)
    assert max(float(row["strongest"]) for row in table(gold)) == 7.4


def test_a_busy_source_turns_the_job_away_once_with_the_code_for_try_again_later(tmp_path: Path) -> None:
    land(tmp_path, "crypto", "first")
    land(tmp_path, "crypto", "busy")
    assert "503" in refine(tmp_path, "crypto", "silver", expect=75)
    assert not (tmp_path / "silver").exists()
    refine(tmp_path, "crypto", "silver")
    refine(tmp_path, "crypto", "gold")
    assert [row["coin"] for row in table(tmp_path / "gold" / "crypto" / f"{HOUR}.csv")] == ["BTC", "ETH"]


def test_without_its_silver_there_is_no_gold(tmp_path: Path) -> None:
    assert "No such file" in refine(tmp_path, "crypto", "gold", expect=1)
    assert not (tmp_path / "gold").exists()
