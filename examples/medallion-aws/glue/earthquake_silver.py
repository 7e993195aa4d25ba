"""Silver: the earthquakes of one hour, cleaned, merged into a Delta table. Running it twice changes nothing."""

import sys

from awsglue.context import GlueContext
from awsglue.utils import getResolvedOptions
from delta.tables import DeltaTable
from pyspark.context import SparkContext
from pyspark.sql import functions as fn
from pyspark.sql.window import Window

given = getResolvedOptions(sys.argv, ["bucket", "par_day", "par_hour"])
spark = GlueContext(SparkContext.getOrCreate()).spark_session
lake = f"s3://{given['bucket']}"
date = f"{given['par_day'][:4]}-{given['par_day'][4:6]}-{given['par_day'][6:]}"

bronze = spark.read.schema(
    "id string, time string, magnitude double, place string, longitude double, latitude double, depth_km double"
).json(f"{lake}/bronze/earthquake/date={date}/hour={given['par_hour']}/")

# A quake without a magnitude is not measured yet; of several reports the last one counts.
latest = Window.partitionBy("id").orderBy(fn.col("time").desc())
hour = (
    bronze.where("magnitude is not null")
    .withColumn("rank", fn.row_number().over(latest))
    .where("rank = 1")
    .drop("rank")
    .withColumn("time", fn.to_timestamp("time"))
    .withColumn("region", fn.trim(fn.element_at(fn.split("place", ","), -1)))
    .withColumn("date", fn.lit(date))
    .withColumn("hour", fn.lit(given["par_hour"]))
)

path = f"{lake}/silver/earthquake"
DeltaTable.createIfNotExists(spark).location(path).addColumns(hour.schema).partitionedBy("date").execute()
(
    DeltaTable.forPath(spark, path)
    .alias("kept")
    .merge(hour.alias("new"), "kept.id = new.id and kept.date = new.date")
    .whenMatchedUpdateAll()
    .whenNotMatchedInsertAll()
    .execute()
)
