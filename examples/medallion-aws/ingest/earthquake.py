"""Earthquakes of the last hour, as the USGS publishes them: read every 20 minutes, so that each is seen three times."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import landing


def records(feed: Any) -> Iterator[landing.Record]:
    """The reports of a GeoJSON summary that have a time and a place."""
    for feature in feed["features"]:
        about, (longitude, latitude, depth) = feature["properties"], feature["geometry"]["coordinates"]
        if about.get("time") is None:
            continue
        at = datetime.fromtimestamp(about["time"] / 1000, UTC)
        yield {
            "id": feature["id"],
            "time": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "magnitude": about.get("mag"),
            "place": about.get("place") or "",
            "longitude": longitude,
            "latitude": latitude,
            "depth_km": depth,
        }


def handler(event: dict[str, Any], context: Any) -> dict[str, int]:
    """One reading; `event` is EventBridge's, and says when it is."""
    import boto3

    now = datetime.fromisoformat(event["time"].replace("Z", "+00:00"))
    return landing.land(
        boto3.client("s3"),
        boto3.client("dynamodb"),
        bucket=os.environ["BUCKET"],
        table=os.environ["CONTROL_TABLE"],
        feed="earthquake",
        records=list(records(landing.fetch(os.environ["FEED_URL"]))),
        now=now,
    )
