"""Fail unless each of the named folders has at least the given share of its branches covered.

`coverage report --fail-under` mixes lines with branches; the decisions are held to branches alone.

    python .ci/branch_coverage.py COVERAGE_JSON PERCENT FOLDER...
"""

import json
import sys
from pathlib import Path


def branches(report: Path, folder: str) -> tuple[int, int]:
    """Covered and existing branches of the files under a folder."""
    files = json.loads(report.read_text())["files"]
    summaries = [entry["summary"] for name, entry in files.items() if name.startswith(folder + "/")]
    return (
        sum(summary["covered_branches"] for summary in summaries),
        sum(summary["num_branches"] for summary in summaries),
    )


def main(report: str, percent: str, *folders: str) -> int:
    short = False
    for folder in folders:
        covered, existing = branches(Path(report), folder)
        # A folder without branches is not covered: it is missing, or was not measured.
        share = 100 * covered / existing if existing else 0.0
        short |= share < float(percent)
        print(f"{folder}: {covered} of {existing} branches, {share:.1f} % (at least {percent} %)")
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
