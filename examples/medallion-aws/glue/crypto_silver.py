"""Silver: the prices of one hour, cleaned, merged into a Delta table. Running it twice changes nothing."""

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

bronze = spark.read.schema("id string, time string, symbol string, price_usd double, volume_24h_usd double").json(
    f"{lake}/bronze/crypto/date={date}/hour={given['par_hour']}/"
)

hour = (
    bronze.where("price_usd > 0")
    .dropDuplicates(["id"])
    .withColumn("time", fn.to_timestamp("time"))
    .withColumn("date", fn.lit(date))
    .withColumn("hour", fn.lit(given["par_hour"]))
)

path = f"{lake}/silver/crypto"
DeltaTable.createIfNotExists(spark).location(path).addColumns(hour.schema).partitionedBy("date").execute()
(
    DeltaTable.forPath(spark, path)
    .alias("kept")
    .merge(hour.alias("new"), "kept.id = new.id and kept.date = new.date")
    .whenMatchedUpdateAll()
    .whenNotMatchedInsertAll()
    .execute()
)
