"""The Glue scripts of examples/medallion-aws, executed: DuckDB stands for Spark, and its tables for Delta's.

sqlglot reads the SQL as Spark's and writes it as DuckDB's, so a statement that is no Spark SQL fails here. What is not
seen: Spark's own types and the Delta format.
"""

import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.aws.test_medallion_aws import EXAMPLE

duckdb = pytest.importorskip("duckdb")
sqlglot = pytest.importorskip("sqlglot")

ARGUMENTS = ["script.py", "--JOB_NAME", "etl", "--bucket", "lake", "--par_day", "20260302", "--par_hour", "09"]
_TABLE = re.compile(r"delta\.`s3://lake/(\w+)/(\w+)`")
_SCRIPTS = ("lake", "crypto_gold", "crypto_silver", "earthquake_gold", "earthquake_silver")


class Spark:
    """As much of a Spark session as the scripts use."""

    def __init__(self, lake: Path) -> None:
        self._lake = lake
        self._duck = duckdb.connect()
        self._schema = ""
        self._path = ""

    def sql(self, text: str) -> None:
        """Execute a statement of Spark."""
        (statement,) = sqlglot.transpile(
            _TABLE.sub(r"\1_\2", text).replace("USING delta PARTITIONED BY (date)", ""), read="spark", write="duckdb"
        )
        self._duck.execute(statement)

    @property
    def read(self) -> "Spark":
        return self

    def schema(self, columns: str) -> "Spark":
        self._schema = columns
        return self

    def json(self, path: str) -> "Spark":
        self._path = path
        return self

    def createOrReplaceTempView(self, name: str) -> None:  # noqa: N802 - Spark's
        """The records of a folder, with the columns that were asked for; those that a record has not are null."""
        columns = [column.split() for column in self._schema.split(", ")]
        typed = ", ".join(f"{column} {'text' if kind == 'string' else kind}" for column, kind in columns)
        self._duck.execute(f"CREATE OR REPLACE TABLE {name} ({typed})")
        holes = ", ".join("?" for _ in columns)
        for file in sorted((self._lake / self._path.removeprefix("s3://lake/")).glob("*.jsonl")):
            for record in map(json.loads, file.read_text().splitlines()):
                self._duck.execute(
                    f"INSERT INTO {name} VALUES ({holes})", [record.get(column) for column, _ in columns]
                )

    def rows(self, table: str, columns: str) -> list[tuple[Any, ...]]:
        return list(self._duck.execute(f"SELECT {columns} FROM {table} ORDER BY ALL").fetchall())


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    monkeypatch.syspath_prepend(str(EXAMPLE / "glue"))
    yield {name: importlib.import_module(name) for name in _SCRIPTS}
    for name in _SCRIPTS:
        sys.modules.pop(name, None)


@pytest.fixture
def spark(tmp_path: Path) -> Spark:
    return Spark(tmp_path)


def land(folder: Path, feed: str, *records: dict[str, Any]) -> None:
    """As the ingest function lands an hour."""
    place = folder / "bronze" / feed / "date=2026-03-02" / "hour=09"
    place.mkdir(parents=True, exist_ok=True)
    (place / "records.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))


def quake(id_: str, place: str, magnitude: float | None, depth: float = 10.0) -> dict[str, Any]:
    about = {"time": "2026-03-02T09:50:00Z", "longitude": -155.2, "latitude": 19.4, "depth_km": depth}
    return {"id": id_, "place": place, "magnitude": magnitude, **about}


def price(minute: str, symbol: str, usd: float) -> dict[str, Any]:
    time = f"2026-03-02T09:{minute}:00Z"
    return {"id": f"{symbol}@{time}", "time": time, "symbol": symbol, "price_usd": usd, "volume_24h_usd": 1.0}


def test_an_hour_of_earthquakes_becomes_gold(spark: Spark, scripts: dict[str, ModuleType], tmp_path: Path) -> None:
    hawaii, chile = "12 km SW of Volcano, Hawaii", "Antofagasta, Chile"
    land(tmp_path, "earthquake", quake("a", hawaii, 2.5), quake("b", hawaii, 4.1, 20.5), quake("c", chile, None))

    def play() -> list[tuple[Any, ...]]:
        for tier in ("silver", "gold"):
            scripts[f"earthquake_{tier}"].main(spark, ARGUMENTS)
        return spark.rows("gold_earthquake", "region, quakes, strongest, mean_depth_km")

    assert play() == [("Hawaii", 2, 4.1, 15.3)], "a quake without a magnitude is not measured yet"
    assert play() == [("Hawaii", 2, 4.1, 15.3)], "and twice changes nothing"
    assert spark.rows("silver_earthquake", "id, region, date, hour") == [
        ("a", "Hawaii", "2026-03-02", "09"),
        ("b", "Hawaii", "2026-03-02", "09"),
    ]

    land(tmp_path, "earthquake", quake("a", chile, 2.6), quake("b", chile, 4.1), quake("c", chile, 1.0))
    assert play() == [("Chile", 3, 4.1, 10.0)], "a region that the hour has no more is gone, revised reports replace"


def test_an_hour_of_prices_becomes_candles(spark: Spark, scripts: dict[str, ModuleType], tmp_path: Path) -> None:
    prices = [("00", 10.0), ("20", 14.0), ("40", 11.0)]
    land(tmp_path, "crypto", *(price(minute, "BTC", usd) for minute, usd in prices), price("00", "BAD", 0.0))
    for _ in range(2):
        for tier in ("silver", "gold"):
            scripts[f"crypto_{tier}"].main(spark, ARGUMENTS)
        assert spark.rows("gold_crypto", "symbol, open, high, low, close, snapshots") == [
            ("BTC", 10.0, 14.0, 10.0, 11.0, 3)
        ]


def test_an_hour_that_did_not_change_is_left_alone_by_another(
    spark: Spark, scripts: dict[str, ModuleType], tmp_path: Path
) -> None:
    land(tmp_path, "crypto", price("00", "BTC", 10.0))
    for tier in ("silver", "gold"):
        scripts[f"crypto_{tier}"].main(spark, ARGUMENTS)
    scripts["crypto_gold"].main(spark, [*ARGUMENTS[:-1], "10"])
    assert spark.rows("gold_crypto", "hour, symbol") == [("09", "BTC")]


def test_the_merge_is_by_its_keys_and_deletes_only_in_its_hour(scripts: dict[str, ModuleType]) -> None:
    lake = scripts["lake"]
    hour = lake.hour_of(ARGUMENTS)
    assert hour == ("lake", "2026-03-02", "09")
    assert lake.merge_sql(hour.table("gold", "crypto"), ("date", "symbol"), replaced=hour) == (
        "MERGE INTO delta.`s3://lake/gold/crypto` AS kept USING fresh"
        " ON kept.date = fresh.date AND kept.symbol = fresh.symbol"
        " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        " WHEN NOT MATCHED BY SOURCE AND kept.date = '2026-03-02' AND kept.hour = '09' THEN DELETE"
    )
    assert "DELETE" not in lake.merge_sql("t", ("id",))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--par_day", "2026-03-02"], "not a day such as 20260302"),
        (["--par_hour", "24"], "not an hour from 00 to 23"),
        (["--par_hour", "09' OR '1'='1"], "not an hour"),
        (["--bucket", "lake/../other"], "not the name of a bucket"),
    ],
)
def test_an_argument_that_is_none_is_refused(scripts: dict[str, ModuleType], given: list[str], said: str) -> None:
    with pytest.raises(SystemExit, match=said):
        scripts["lake"].hour_of([*ARGUMENTS, *given])


def test_an_argument_that_is_missing_names_itself(scripts: dict[str, ModuleType]) -> None:
    with pytest.raises(SystemExit, match="no argument --par_hour"):
        scripts["lake"].hour_of(ARGUMENTS[:-2])
