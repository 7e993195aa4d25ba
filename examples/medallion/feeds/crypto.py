"""The crypto feed: trades of one hour, made up, and the same every time.

    python feeds/crypto.py 2026-03-02T10 first     the first half of the hour lands in bronze/
    python feeds/crypto.py 2026-03-02T10 rest      the hour is complete
    python feeds/crypto.py 2026-03-02T10 busy      the next job that reads this hour is told to come back later
    python feeds/crypto.py 2026-03-02T10 count     lands nothing, counts only

Prints {"file": ..., "rows": ...}: the data of a sensor. Standard library only, no network.
"""

import argparse
import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

PRICES = {"BTC": 61_000.0, "ETH": 3_150.0}
TRADES = 180


def trades(hour: str) -> list[dict[str, object]]:
    """The trades of an hour in the order they arrive, which is not quite that of time; a few have no price."""
    draw = random.Random(f"crypto {hour}")
    begin = datetime.strptime(hour, "%Y-%m-%dT%H").replace(tzinfo=UTC)
    prices = {symbol: price * draw.uniform(0.95, 1.05) for symbol, price in PRICES.items()}
    found: list[dict[str, object]] = []
    for number in range(TRADES):
        symbol = draw.choice(tuple(PRICES))
        prices[symbol] *= draw.gauss(1.0, 0.0015)
        at = begin + timedelta(seconds=number * 3600 // TRADES + draw.randrange(45))
        price = None if draw.random() < 0.03 else round(prices[symbol], 2)
        size = round(draw.expovariate(1.5) + 0.001, 4)
        found.append({"symbol": symbol, "at": at.strftime("%Y-%m-%dT%H:%M:%SZ"), "price": price, "size": size})
    return found


def main() -> None:
    """Append a part of the hour to its file, or mark it as busy."""
    parser = argparse.ArgumentParser(description="Write synthetic trades into bronze/.")
    parser.add_argument("hour", help="such as 2026-03-02T10")
    parser.add_argument("part", choices=("first", "rest", "busy", "count"))
    wanted = parser.parse_args()
    file = Path("bronze/crypto", f"{wanted.hour}.jsonl")
    file.parent.mkdir(parents=True, exist_ok=True)
    before = file.read_text().splitlines() if file.exists() and wanted.part != "first" else []
    if wanted.part == "busy":
        file.with_suffix(".busy").touch()
    middle = TRADES // 2
    parts = {"first": trades(wanted.hour)[:middle], "rest": trades(wanted.hour)[middle:]}
    lines = before + [json.dumps(trade) for trade in parts.get(wanted.part, ())]
    if wanted.part in parts:
        file.write_text("\n".join(lines) + "\n")
    print(json.dumps({"file": str(file), "rows": len(lines)}))


if __name__ == "__main__":
    main()
