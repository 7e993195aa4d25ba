"""What the Terraform module plans, as tests use it: `tests/aws/plan.json` and `tests/aws/plan-everything.json`.

    python -m tools.terraform.planned

writes both. They come from `terraform test -json -verbose` on the stub provider. What only AWS knows is mocked there
with random text; here it is replaced by what AWS would have made of it: the ARN of a table, the address of a queue.
Attributes that the module does not set, and that mean nothing to anybody, are left out.
"""

import json
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tools.terraform.offline import ROOT, run_terraform, write_packages

PLANS: Final = {
    "plan": ROOT / "tests" / "aws" / "plan.json",
    "plan_everything": ROOT / "tests" / "aws" / "plan-everything.json",
}
_PLACE: Final = "us-east-1:123456789012"
_STREAM_LABEL: Final = "2026-01-01T00:00:00.000"
# Attributes of which nobody learns anything.
_NOISE: Final = frozenset({"tags_all", "timeouts", "source_code_hash", "filename"})


class PlanError(Exception):
    """Terraform refused; the message is what it said."""


def plan(name: str) -> dict[str, Any]:
    """`{"resources": {address: planned values}}` of a test file of the module."""
    with tempfile.TemporaryDirectory() as folder:
        data, packages = Path(folder) / "data", write_packages(Path(folder) / "packages")
        started = run_terraform("init", "-input=false", "-no-color", data=data)
        if started.returncode:
            raise PlanError(started.stdout + started.stderr)
        done = run_terraform(
            "test",
            "-json",
            "-verbose",
            f"-filter=tests/{name}.tftest.hcl",
            data=data,
            variables={"dist_path": str(packages)},
        )
    messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode:
        said = [one["diagnostic"] for one in messages if one["type"] == "diagnostic"]
        raise PlanError("\n".join(f"{one['summary']}: {one.get('detail', '')}" for one in said) or done.stderr)
    return _plan_of(messages)


def _plan_of(messages: list[dict[str, Any]]) -> dict[str, Any]:
    runs = {(one.get("@testrun"), one["type"]): one for one in messages}
    planned = runs["planned", "test_plan"]["test_plan"]["resource_changes"]
    applied = runs["applied", "test_state"]["test_state"]["root_module"]["resources"]
    again = runs["again", "test_plan"]["test_plan"].get("resource_changes", [])
    changes = [one["address"] for one in again if one["change"]["actions"] not in (["no-op"], ["read"])]
    if changes:
        raise PlanError(f"a second plan changes {', '.join(changes)}")
    values = {one["address"]: one["values"] for one in applied if one["mode"] == "managed"}
    types = {one["address"]: one["type"] for one in applied}
    real = dict(_replacements(values, types))
    resources = {
        one["address"]: _values(one["change"], values[one["address"]], real)
        for one in sorted(planned, key=lambda one: str(one["address"]))
        if one["mode"] == "managed"
    }
    for address, names in values.items():
        known = {name: real[text] for name, text in names.items() if isinstance(text, str) and text in real}
        resources[address] = dict(sorted({**resources[address], **known}.items()))
    return {"resources": resources}


def _values(change: Mapping[str, Any], applied: Mapping[str, Any], real: Mapping[str, str]) -> dict[str, Any]:
    """The attributes that the module sets; those that were unknown when it was planned, as they were applied."""
    kept: dict[str, Any] = {}
    for name, value in change["after"].items():
        unknown = change["after_unknown"].get(name, False)
        if name in _NOISE:
            continue
        found = _pruned(_replaced(applied[name] if _any(unknown) else value, real))
        if found not in (None, [], {}):
            kept[name] = found
    for name, unknown in change["after_unknown"].items():
        if unknown is True and name not in _NOISE:
            found = _replaced(applied[name], real)
            if found != applied[name]:
                kept[name] = found
    return kept


def _any(unknown: Any) -> bool:
    if isinstance(unknown, dict):
        return any(map(_any, unknown.values()))
    if isinstance(unknown, list):
        return any(map(_any, unknown))
    return bool(unknown)


def _pruned(value: Any) -> Any:
    """Without what is not set, at any depth."""
    if isinstance(value, dict):
        return {name: kept for name, one in value.items() if (kept := _pruned(one)) not in (None, [])}
    return [_pruned(one) for one in value] if isinstance(value, list) else value


def _replaced(value: Any, real: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: _replaced(one, real) for name, one in value.items()}
    if isinstance(value, list):
        return [_replaced(one, real) for one in value]
    if isinstance(value, str):
        return _MOCKED.sub(lambda found: real.get(found[0], found[0]), value)
    return value


_MOCKED: Final = re.compile(r"(?<![A-Za-z0-9])[a-z0-9]{8}(?![A-Za-z0-9])")


def _replacements(values: Mapping[str, Mapping[str, Any]], types: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Mocked text, and what AWS would have said instead."""
    for address, found in values.items():
        for name, text in _real(types[address], found).items():
            yield str(found[name]), text


def _real(type_: str, found: Mapping[str, Any]) -> dict[str, str]:
    name = str(found.get("name", found.get("function_name", found.get("alarm_name", ""))))
    match type_:
        case "aws_dynamodb_table":
            arn = f"arn:aws:dynamodb:{_PLACE}:table/{name}"
            stream = {"stream_arn": f"{arn}/stream/{_STREAM_LABEL}"} if found["stream_enabled"] else {}
            return {"arn": arn, **stream}
        case "aws_lambda_function":
            return {"arn": f"arn:aws:lambda:{_PLACE}:function:{name}"}
        case "aws_sqs_queue":
            region, account = _PLACE.split(":")
            return {
                "arn": f"arn:aws:sqs:{_PLACE}:{name}",
                "url": f"https://sqs.{region}.amazonaws.com/{account}/{name}",
            }
        case "aws_iam_role":
            return {"arn": f"arn:aws:iam::{_PLACE.split(':')[1]}:role/{name}"}
        case "aws_cloudwatch_log_group":
            return {"arn": f"arn:aws:logs:{_PLACE}:log-group:{name}"}
        case "aws_cloudwatch_event_rule":
            return {"arn": f"arn:aws:events:{_PLACE}:rule/{name}"}
        case "aws_cloudwatch_event_bus":
            return {"arn": f"arn:aws:events:{_PLACE}:event-bus/{name}"}
        case "aws_scheduler_schedule_group":
            return {"arn": f"arn:aws:scheduler:{_PLACE}:schedule-group/{name}"}
        case "aws_sfn_state_machine":
            return {"arn": f"arn:aws:states:{_PLACE}:stateMachine:{name}"}
        case "aws_cloudwatch_metric_alarm":
            return {"arn": f"arn:aws:cloudwatch:{_PLACE}:alarm:{name}"}
    return {}


def text_of(planned: Mapping[str, Any]) -> str:
    """A plan as it is committed."""
    return json.dumps(planned, indent=1, sort_keys=True) + "\n"


def main() -> int:
    """Write both plans."""
    for name, path in PLANS.items():
        path.write_text(text_of(plan(name)), encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
