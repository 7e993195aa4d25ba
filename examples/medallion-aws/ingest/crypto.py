"""Prices of the hundred largest coins, as CoinLore publishes them: a snapshot every 20 minutes, three to the hour."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import landing

EVERY = timedelta(minutes=20)


def records(feed: Any, now: datetime) -> Iterator[landing.Record]:
    """The tickers of a snapshot, under the 20 minutes it was taken in: a second reading replaces the first."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    taken = (midnight + (now - midnight) // EVERY * EVERY).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for ticker in feed["data"]:
        yield {
            "id": f"{ticker['id']}@{taken}",
            "time": taken,
            "symbol": ticker["symbol"],
            "price_usd": float(ticker["price_usd"]),
            "volume_24h_usd": float(ticker.get("volume24") or 0),
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
        feed="crypto",
        records=list(records(landing.fetch(os.environ["FEED_URL"]), now)),
        now=now,
    )
