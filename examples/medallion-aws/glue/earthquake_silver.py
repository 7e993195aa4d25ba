"""Silver: the earthquakes of one hour, cleaned, merged into a Delta table. Running it twice changes nothing."""

import sys
from typing import Any

import lake

BRONZE = "id string, time string, magnitude double, place string, longitude double, latitude double, depth_km double"
COLUMNS = (
    "id string, time timestamp, magnitude double, place string, longitude double, latitude double, depth_km double,"
    " region string, date string, hour string"
)


def clean_sql(hour: lake.Hour) -> str:
    """A quake without a magnitude is not measured yet; of several reports the last one counts."""
    return f"""
        CREATE OR REPLACE TEMPORARY VIEW fresh AS
        SELECT id, to_timestamp(time) AS time, magnitude, place, longitude, latitude, depth_km,
               trim(element_at(split(place, ','), -1)) AS region, '{hour.date}' AS date, '{hour.hour}' AS hour
        FROM (
            SELECT *, row_number() OVER (PARTITION BY id ORDER BY time DESC) AS rank
            FROM bronze WHERE magnitude IS NOT NULL
        ) AS ranked
        WHERE rank = 1
    """


def main(spark: Any, argv: list[str]) -> None:
    """One hour."""
    hour = lake.hour_of(argv)
    spark.read.schema(BRONZE).json(hour.bronze("earthquake")).createOrReplaceTempView("bronze")
    table = hour.table("silver", "earthquake")
    lake.run(spark, [clean_sql(hour), lake.create_sql(table, COLUMNS), lake.merge_sql(table, ("id", "date"))])


if __name__ == "__main__":
    main(lake.glue_session(), sys.argv)
