"""Gold: an hour in a few lines, from silver/FEED/HOUR.csv to gold/FEED/HOUR.csv.

Earthquakes by region, prices by coin. Without its silver file there is no gold: a missing input is an error, never an
empty result.
"""

import argparse
import csv
import os
from pathlib import Path

Row = dict[str, str]
Line = dict[str, object]


def by_region(quakes: list[Row]) -> list[Line]:
    """How many quakes a region had, and the strongest."""
    lines: list[Line] = []
    for region in sorted({quake["region"] for quake in quakes}):
        magnitudes = [float(quake["magnitude"]) for quake in quakes if quake["region"] == region]
        lines.append({"region": region, "quakes": len(magnitudes), "strongest": max(magnitudes)})
    return lines


def by_coin(trades: list[Row]) -> list[Line]:
    """How much of a coin was traded, and its price, weighted by the size of the trades."""
    lines: list[Line] = []
    for symbol in sorted({trade["symbol"] for trade in trades}):
        mine = [(float(trade["price"]), float(trade["size"])) for trade in trades if trade["symbol"] == symbol]
        volume = sum(size for _, size in mine)
        price = sum(price * size for price, size in mine) / volume
        lines.append({"coin": symbol, "trades": len(mine), "volume": f"{volume:.2f}", "price": f"{price:.2f}"})
    return lines


def write(lines: list[Line], file: Path) -> None:
    """All or nothing: who reads the file never sees half of it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(f".{os.getpid()}.part")
    with part.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
    part.replace(file)


def main() -> None:
    """Summarise one hour of one feed."""
    parser = argparse.ArgumentParser(description="Summarise an hour of a feed.")
    parser.add_argument("--feed", choices=("earthquake", "crypto"), required=True)
    parser.add_argument("--date", required=True)
    parser.add_argument("--hour", required=True)
    parser.add_argument("--attempt", default="1")
    wanted = parser.parse_args()
    name = f"{wanted.date}T{wanted.hour}.csv"
    with Path("silver", wanted.feed, name).open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    summarise = by_region if wanted.feed == "earthquake" else by_coin
    file = Path("gold", wanted.feed, name)
    write(summarise(rows), file)
    print(f"attempt {wanted.attempt}: {file} from {len(rows)} rows")


if __name__ == "__main__":
    main()
