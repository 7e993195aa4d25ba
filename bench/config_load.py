"""How long does it take to load a folder of many configs? The promise is ten thousand in 15 seconds."""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Final

from interlock.config.loader import load_paths

FILES: Final = 10_000
PIPELINE: Final = """\
pipeline: {{id: pipeline-{number:05d}, owner: analytics-team, description: Gold-tier revenue}}
schedule:
  cron: "{minute} {hour} * * *"
  timezone: America/New_York
  trigger: {{key: upstream-complete, check: equals, field: status, value: ready, deadline: "23:30"}}
  evaluation: {{window: 1h, interval: 5m}}
  exclude: {{weekends: true, dates: ["2026-12-25"], calendar: us-federal}}
sla: {{deadline: "23:45", expectedDuration: 30m, maxDuration: 4h, critical: true}}
validation:
  trigger: ALL
  rules:
    - {{key: upstream-complete, check: equals, field: status, value: ready}}
    - {{key: row-count, check: gte, field: count, value: 1000}}
    - {{key: freshness, check: age_lt, field: updatedAt, value: 2h}}
job:
  type: glue
  config: {{jobName: "etl-${{PIPELINE}}"}}
  maxRetries: 2
postRun:
  rules: [{{key: output-row-count, check: gte, field: count, value: 1000}}]
  driftField: count
after: [{{pipeline: pipeline-00000}}]
"""


def main(files: int = FILES) -> None:
    """Write the files, load them, print one JSON line."""
    with TemporaryDirectory() as folder:
        _write(Path(folder), files)
        started = perf_counter()
        result = load_paths([Path(folder)])
        seconds = perf_counter() - started
    report = {
        "bench": "config_load",
        "files": files,
        "loaded": len(result.configs),
        "errors": len(result.errors),
        "seconds": round(seconds, 3),
        "millisecondsPerFile": round(1000 * seconds / files, 3),
    }
    print(json.dumps(report))


def _write(folder: Path, files: int) -> None:
    (folder / "pipelines").mkdir()
    (folder / "calendars").mkdir()
    (folder / "calendars" / "us-federal.yaml").write_text("name: us-federal\ndates: ['2026-07-03']\n")
    for number in range(files):
        text = PIPELINE.format(number=number, minute=number % 60, hour=12 + number // 60 % 11)
        if number == 0:
            text = text.rpartition("after:")[0]
        (folder / "pipelines" / f"pipeline-{number:05d}.yaml").write_text(text)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else FILES)
