"""Gold: open, high, low and close per coin and hour, merged into a Delta table. A repeated hour replaces itself."""

import sys
from typing import Any

import lake

COLUMNS = (
    "date string, hour string, symbol string, open double, high double, low double, close double, snapshots bigint"
)


def candle_sql(hour: lake.Hour) -> str:
    """The candle of each coin."""
    return f"""
        CREATE OR REPLACE TEMPORARY VIEW fresh AS
        SELECT date, hour, symbol, min_by(price_usd, time) AS open, max(price_usd) AS high, min(price_usd) AS low,
               max_by(price_usd, time) AS close, count(*) AS snapshots
        FROM {hour.table("silver", "crypto")}
        WHERE date = '{hour.date}' AND hour = '{hour.hour}'
        GROUP BY date, hour, symbol
    """


def main(spark: Any, argv: list[str]) -> None:
    """One hour."""
    hour = lake.hour_of(argv)
    table = hour.table("gold", "crypto")
    merge = lake.merge_sql(table, ("date", "hour", "symbol"), replaced=hour)
    lake.run(spark, [candle_sql(hour), lake.create_sql(table, COLUMNS), merge])


if __name__ == "__main__":
    main(lake.glue_session(), sys.argv)
