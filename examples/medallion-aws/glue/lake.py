"""What the four jobs share: which hour they are for, where the tables lie, and the SQL that merges into them.

Beside the scripts in S3, given to each job by `--extra-py-files`. Everything but `run` is plain Python: it can be read,
and tested, without Spark.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

_DAY = re.compile(r"(\d{4})(\d\d)(\d\d)")
_HOUR = re.compile(r"[01]\d|2[0-3]")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


class Hour(NamedTuple):
    """The hour that a run is for, and the lake it is in."""

    bucket: str
    date: str
    hour: str

    def bronze(self, feed: str) -> str:
        """The folder of an hour's records."""
        return f"s3://{self.bucket}/bronze/{feed}/date={self.date}/hour={self.hour}/"

    def table(self, tier: str, feed: str) -> str:
        """A Delta table, as SQL names it."""
        return f"delta.`s3://{self.bucket}/{tier}/{feed}`"


def hour_of(argv: Sequence[str]) -> Hour:
    """The arguments of a job run: `--bucket` of the job, `--par_day` and `--par_hour` of Interlock; others are Glue's.

    They become part of SQL and of paths, so they are checked.
    """
    given = dict(pairwise(argv))
    day = _DAY.fullmatch(_needed(given, "--par_day"))
    hour, bucket = _needed(given, "--par_hour"), _needed(given, "--bucket")
    if day is None:
        raise SystemExit(f"--par_day is {given['--par_day']!r}, not a day such as 20260302")
    if not _HOUR.fullmatch(hour):
        raise SystemExit(f"--par_hour is {hour!r}, not an hour from 00 to 23")
    if not _BUCKET.fullmatch(bucket):
        raise SystemExit(f"--bucket is {bucket!r}, not the name of a bucket")
    return Hour(bucket, "-".join(day.groups()), hour)


def _needed(given: dict[str, str], name: str) -> str:
    if name not in given:
        raise SystemExit(f"the job run has no argument {name}")
    return given[name]


def create_sql(table: str, columns: str) -> str:
    """Makes a table the first time."""
    return f"CREATE TABLE IF NOT EXISTS {table} ({columns}) USING delta PARTITIONED BY (date)"


def merge_sql(table: str, keys: Iterable[str], replaced: Hour | None = None) -> str:
    """Merges the view `fresh` into a table by its keys. `replaced`: what the hour had, and has no more, is deleted."""
    same = " AND ".join(f"kept.{key} = fresh.{key}" for key in keys)
    merge = (
        f"MERGE INTO {table} AS kept USING fresh ON {same}"
        " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    if replaced is None:
        return merge
    gone = f"kept.date = '{replaced.date}' AND kept.hour = '{replaced.hour}'"
    return f"{merge} WHEN NOT MATCHED BY SOURCE AND {gone} THEN DELETE"


def run(spark: Any, statements: Iterable[str]) -> None:
    """Execute them in their order."""
    for statement in statements:
        spark.sql(statement)


def glue_session() -> Any:
    """The Spark session of a Glue job."""
    from awsglue.context import GlueContext
    from pyspark.context import SparkContext

    return GlueContext(SparkContext.getOrCreate()).spark_session
