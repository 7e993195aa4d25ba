"""Gold: open, high, low and close per coin and hour, merged into a Delta table. A repeated hour replaces itself."""

import sys

from awsglue.context import GlueContext
from awsglue.utils import getResolvedOptions
from delta.tables import DeltaTable
from pyspark.context import SparkContext
from pyspark.sql import functions as fn

given = getResolvedOptions(sys.argv, ["bucket", "par_day", "par_hour"])
spark = GlueContext(SparkContext.getOrCreate()).spark_session
lake = f"s3://{given['bucket']}"
date = f"{given['par_day'][:4]}-{given['par_day'][4:6]}-{given['par_day'][6:]}"

silver = spark.read.format("delta").load(f"{lake}/silver/crypto")
hour = (
    silver.where((fn.col("date") == date) & (fn.col("hour") == given["par_hour"]))
    .groupBy("date", "hour", "symbol")
    .agg(
        fn.min_by("price_usd", "time").alias("open"),
        fn.max("price_usd").alias("high"),
        fn.min("price_usd").alias("low"),
        fn.max_by("price_usd", "time").alias("close"),
        fn.count("*").alias("snapshots"),
    )
)

path = f"{lake}/gold/crypto"
DeltaTable.createIfNotExists(spark).location(path).addColumns(hour.schema).partitionedBy("date").execute()
(
    DeltaTable.forPath(spark, path)
    .alias("kept")
    .merge(hour.alias("new"), "kept.date = new.date and kept.hour = new.hour and kept.symbol = new.symbol")
    .whenMatchedUpdateAll()
    .whenNotMatchedInsertAll()
    .whenNotMatchedBySourceDelete(f"kept.date = '{date}' and kept.hour = '{given['par_hour']}'")
    .execute()
)
