"""Counterexamples as files: a scenario in the form of SPEC 18, its faults in a comment block. Play one again with

    python -m tests.safety.replay FILE...

It prints the timeline and what was violated, and exits 1 if anything was.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from interlock.model.events import Event
from interlock.model.times import format_instant
from interlock.simulation.scenario import load_scenario
from interlock.simulation.world import Line
from tests.safety.faults import FaultPlan, FaultyWorld
from tests.safety.invariants import violations

_MARK: Final = "# faults: "


def as_text(fields: Mapping[str, Any], plan: FaultPlan, found: Sequence[str]) -> str:
    """A scenario file that says what it violates and where the faults are."""
    lines = ["# Found by tests/safety. Replay with: python -m tests.safety.replay THIS_FILE"]
    lines += [f"# violates {one}" for one in found]
    lines += [f"{_MARK}{msgspec.json.encode(plan).decode()}"]
    return "\n".join(lines) + "\n" + yaml.safe_dump(dict(fields), sort_keys=False, width=110)


def faults_of(text: str) -> FaultPlan:
    """The fault plan in the comment block of a file; none when it has no such line."""
    found = [line for line in text.splitlines() if line.startswith(_MARK)]
    return msgspec.json.decode(found[0][len(_MARK) :], type=FaultPlan) if found else FaultPlan()


def replay(path: Path) -> tuple[list[Line], list[str]]:
    """Play a file with its faults; its timeline and its violations."""
    world = FaultyWorld(load_scenario(path), faults_of(path.read_text(encoding="utf-8"))).finish()
    return world.lines, violations(world)


def main(arguments: Sequence[str]) -> int:
    """The command."""
    failed = False
    for name in arguments:
        lines, found = replay(Path(name))
        reported = [_told(line) for line in lines]
        sys.stdout.write("\n".join([f"== {name}", *reported, *(f"VIOLATED {one}" for one in found), ""]))
        failed = failed or bool(found)
    return 1 if failed else 0


def _told(line: Line) -> str:
    if isinstance(line, Event):
        at = format_instant(line.timestamp)
        return f"{at} {line.pipeline_id} {line.schedule_id} {line.date} {line.type}: {line.message}"
    return f"{format_instant(line.at)} -- {line.text}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
