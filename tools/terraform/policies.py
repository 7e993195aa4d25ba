"""Policies under `parliament`; runs in its environment: `python policies.py FILE...` prints findings, a line each."""

import json
import sys
from pathlib import Path
from typing import Final

from parliament import analyze_policy_string

# The data of parliament wants an ARN of every kind that an action may have; standard executions have one kind only.
_ACCEPTED: Final = {("RESOURCE_MISMATCH", "states:DescribeExecution")}


def main() -> int:
    """1 if anything was found."""
    found: list[str] = []
    for path in map(Path, sys.argv[1:]):
        for address, values in json.loads(path.read_text(encoding="utf-8"))["resources"].items():
            if not address.startswith("aws_iam_role_policy."):
                continue
            for one in analyze_policy_string(values["policy"]).findings:
                actions = {str(part.get("action")) for part in one.detail if isinstance(part, dict)}
                if not actions or not {(one.issue, action) for action in actions} <= _ACCEPTED:
                    found.append(f"{path.name} {address}: {one.issue} {one.detail}")
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
