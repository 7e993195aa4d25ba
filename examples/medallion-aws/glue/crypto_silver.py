"""Silver: the prices of one hour, cleaned, merged into a Delta table. Running it twice changes nothing."""

import sys
from typing import Any

import lake

BRONZE = "id string, time string, symbol string, price_usd double, volume_24h_usd double"
COLUMNS = "id string, time timestamp, symbol string, price_usd double, volume_24h_usd double, date string, hour string"


def clean_sql(hour: lake.Hour) -> str:
    """Prices above zero, each snapshot once."""
    return f"""
        CREATE OR REPLACE TEMPORARY VIEW fresh AS
        SELECT id, to_timestamp(time) AS time, symbol, price_usd, volume_24h_usd,
               '{hour.date}' AS date, '{hour.hour}' AS hour
        FROM (
            SELECT *, row_number() OVER (PARTITION BY id ORDER BY time DESC) AS rank
            FROM bronze WHERE price_usd > 0
        ) AS ranked
        WHERE rank = 1
    """


def main(spark: Any, argv: list[str]) -> None:
    """One hour."""
    hour = lake.hour_of(argv)
    spark.read.schema(BRONZE).json(hour.bronze("crypto")).createOrReplaceTempView("bronze")
    table = hour.table("silver", "crypto")
    lake.run(spark, [clean_sql(hour), lake.create_sql(table, COLUMNS), lake.merge_sql(table, ("id", "date"))])


if __name__ == "__main__":
    main(lake.glue_session(), sys.argv)
