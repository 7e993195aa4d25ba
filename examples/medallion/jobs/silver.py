"""Silver: the lines of a feed for one hour, cleaned, from bronze/FEED/HOUR.jsonl to silver/FEED/HOUR.csv.

Running it again gives the same file or, after a correction of the feed, the better one. A source that is busy is no
fault of the job's: it ends with code 75 (EX_TEMPFAIL, "try again later"), which Interlock takes for a transient failure
and retries.
"""

import argparse
import csv
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path

COLUMNS = {"earthquake": ("time", "id", "magnitude", "depthKm", "region"), "crypto": ("at", "symbol", "price", "size")}
TRY_AGAIN_LATER = 75

Row = dict[str, object]


def clean_earthquakes(lines: Iterable[str]) -> list[Row]:
    """Each quake once, as it was last reported, by time; without a magnitude it is left out."""
    latest = {report["id"]: report for report in map(json.loads, lines)}
    measured = [report for report in latest.values() if report["magnitude"] is not None]
    return sorted(measured, key=lambda report: (report["time"], report["id"]))


def clean_trades(lines: Iterable[str]) -> list[Row]:
    """The trades that have a price, by time."""
    priced = [trade for trade in map(json.loads, lines) if trade["price"] is not None]
    return sorted(priced, key=lambda trade: (trade["at"], trade["symbol"]))


def turned_away(source: Path) -> bool:
    """Is the source busy? It is so once: asked again, it answers."""
    busy = source.with_suffix(".busy")
    if not busy.exists():
        return False
    busy.unlink()
    return True


def write(rows: list[Row], columns: tuple[str, ...], file: Path) -> None:
    """All or nothing: who reads the file never sees half of it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(f".{os.getpid()}.part")
    with part.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, columns)
        writer.writeheader()
        writer.writerows(rows)
    part.replace(file)


def main() -> None:
    """Clean one hour of one feed."""
    parser = argparse.ArgumentParser(description="Clean an hour of a feed.")
    parser.add_argument("--feed", choices=tuple(COLUMNS), required=True)
    parser.add_argument("--date", required=True)
    parser.add_argument("--hour", required=True)
    parser.add_argument("--run-id", default="")
    wanted = parser.parse_args()
    name = f"{wanted.date}T{wanted.hour}"
    source = Path("bronze", wanted.feed, f"{name}.jsonl")
    if turned_away(source):
        print(f"{source}: the store answers 503 Slow Down", file=sys.stderr)
        sys.exit(TRY_AGAIN_LATER)
    clean = clean_earthquakes if wanted.feed == "earthquake" else clean_trades
    with source.open() as bronze:
        rows = clean(bronze)
    file = Path("silver", wanted.feed, f"{name}.csv")
    write(rows, COLUMNS[wanted.feed], file)
    print(f"{wanted.run_id} {file}: {len(rows)} rows")


if __name__ == "__main__":
    main()
