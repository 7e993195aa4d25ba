"""Gold: earthquakes per region and hour, merged into a Delta table. An hour that is repeated replaces itself."""

import sys
from typing import Any

import lake

COLUMNS = "date string, hour string, region string, quakes bigint, strongest double, mean_depth_km double"


def count_sql(hour: lake.Hour) -> str:
    """The quakes of the hour, by region."""
    return f"""
        CREATE OR REPLACE TEMPORARY VIEW fresh AS
        SELECT date, hour, region, count(*) AS quakes, max(magnitude) AS strongest,
               round(avg(depth_km), 1) AS mean_depth_km
        FROM {hour.table("silver", "earthquake")}
        WHERE date = '{hour.date}' AND hour = '{hour.hour}'
        GROUP BY date, hour, region
    """


def main(spark: Any, argv: list[str]) -> None:
    """One hour."""
    hour = lake.hour_of(argv)
    table = hour.table("gold", "earthquake")
    merge = lake.merge_sql(table, ("date", "hour", "region"), replaced=hour)
    lake.run(spark, [count_sql(hour), lake.create_sql(table, COLUMNS), merge])


if __name__ == "__main__":
    main(lake.glue_session(), sys.argv)
