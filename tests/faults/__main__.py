"""The long form of the fault tests: `python -m tests.faults [--seconds 600] [--seed N] [--report FILE]`.

Prints the seed first, so that a campaign that found something can be played again. Exits 1 if anything was violated.
"""

import argparse
import secrets
import sys
from pathlib import Path

import msgspec

from tests.faults.campaign import Plan, play


def main() -> int:
    """Play a campaign, write its report."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description="Faults on a real controller.")
    parser.add_argument("--seconds", type=float, default=600.0, help="how long mishaps go on")
    parser.add_argument("--seed", type=int, default=None, help="play the mishaps of an earlier campaign")
    parser.add_argument("--report", type=Path, default=Path("faults-report.json"))
    chosen = parser.parse_args()
    seed = chosen.seed if chosen.seed is not None else secrets.randbelow(2**31)
    print(f"seed {seed}", flush=True)
    report = play(Plan(seed=seed, seconds=chosen.seconds), lambda line: print(line, flush=True))
    text = msgspec.json.format(msgspec.json.encode(report), indent=2)
    chosen.report.write_bytes(text + b"\n")
    print(text.decode())
    return 0 if report.passed else 1


if __name__ == "__main__":
    sys.exit(main())
