"""The earthquake feed: what a seismic network would report of one hour, made up, and the same every time.

    python feeds/earthquake.py 2026-03-02T10 first      the first half of the hour lands in bronze/
    python feeds/earthquake.py 2026-03-02T10 rest       the hour is complete
    python feeds/earthquake.py 2026-03-02T10 correct    afterwards: quakes that were found late
    python feeds/earthquake.py 2026-03-02T10 count      lands nothing, counts only

Prints {"file": ..., "rows": ...}: the data of a sensor. Standard library only, no network.
"""

import argparse
import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

REGIONS = ("Anatolia", "Atacama", "Sumatra", "Tonga")
QUAKES = 150
FOUND_LATE = 18


def quakes(hour: str) -> list[dict[str, object]]:
    """The reports of an hour, in order: some quakes are reported twice, some without a magnitude."""
    draw = random.Random(f"earthquakes {hour}")
    begin = datetime.strptime(hour, "%Y-%m-%dT%H").replace(tzinfo=UTC)
    seconds = sorted(draw.sample(range(3600), QUAKES))
    reports = [_report(draw, hour, number, begin + timedelta(seconds=at)) for number, at in enumerate(seconds)]
    revised = [{**reports[number], "magnitude": _magnitude(draw)} for number in draw.sample(range(QUAKES), 8)]
    return reports + revised


def corrections(hour: str) -> list[dict[str, object]]:
    """What is reported of the hour afterwards: one of them is the strongest of the hour."""
    draw = random.Random(f"earthquakes {hour} corrected")
    begin = datetime.strptime(hour, "%Y-%m-%dT%H").replace(tzinfo=UTC)
    late = [
        _report(draw, hour, QUAKES + number, begin + timedelta(seconds=draw.randrange(3600)))
        for number in range(FOUND_LATE)
    ]
    return [{**late[0], "magnitude": 7.4, "region": "Tonga"}, *late[1:]]


def _report(draw: random.Random, hour: str, number: int, at: datetime) -> dict[str, object]:
    return {
        "id": f"eq-{hour}-{number:03d}",
        "time": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "magnitude": None if draw.random() < 0.05 else _magnitude(draw),
        "depthKm": round(draw.uniform(2, 180), 1),
        "region": draw.choice(REGIONS),
    }


def _magnitude(draw: random.Random) -> float:
    return min(round(1.5 + draw.expovariate(1.1), 1), 7.0)


def main() -> None:
    """Append a part of the hour to its file."""
    parser = argparse.ArgumentParser(description="Write synthetic earthquakes into bronze/.")
    parser.add_argument("hour", help="such as 2026-03-02T10")
    parser.add_argument("part", choices=("first", "rest", "correct", "count"))
    wanted = parser.parse_args()
    reports = quakes(wanted.hour)
    middle = len(reports) // 2
    parts = {"first": reports[:middle], "rest": reports[middle:], "correct": corrections(wanted.hour)}
    file = Path("bronze/earthquake", f"{wanted.hour}.jsonl")
    file.parent.mkdir(parents=True, exist_ok=True)
    before = file.read_text().splitlines() if file.exists() and wanted.part != "first" else []
    lines = before + [json.dumps(report) for report in parts.get(wanted.part, ())]
    if wanted.part in parts:
        file.write_text("\n".join(lines) + "\n")
    print(json.dumps({"file": str(file), "rows": len(lines)}))


if __name__ == "__main__":
    main()
