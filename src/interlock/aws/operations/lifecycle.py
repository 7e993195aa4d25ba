"""The state machine as it is deployed, beside the one that this version ships."""

import re
from datetime import timedelta
from importlib.resources import files
from typing import Any, Final

import msgspec

from interlock.aws.names import Function, Names
from interlock.aws.operations.environment import Environment, is_missing
from interlock.model.errors import AccessError
from interlock.model.keys import Table

DEFAULT_TIMEOUT: Final = timedelta(hours=4)
_ANY: Final = -1
_PLACEHOLDER: Final = re.compile(r"\$\{(\w+)\}")


def deployed_definition(environment: Environment) -> dict[str, Any] | None:
    """The definition of the deployed machine; None when there is none."""
    arn = environment.names.state_machine_arn
    client = environment.client("stepfunctions")
    try:
        found = environment.ask(
            f"reading the state machine {environment.names.state_machine} (states:DescribeStateMachine)",
            lambda: client.describe_state_machine(stateMachineArn=arn),
        )
    except AccessError as error:
        if is_missing(error):
            return None
        raise
    return msgspec.json.decode(found["definition"], type=dict[str, Any])


def deployed_timeout(environment: Environment) -> timedelta:
    """`sfn_timeout_seconds` of the deployed machine; the default where there is none yet."""
    seconds = (deployed_definition(environment) or {}).get("TimeoutSeconds")
    return timedelta(seconds=seconds) if isinstance(seconds, int) else DEFAULT_TIMEOUT


def difference(names: Names, deployed: dict[str, Any]) -> str | None:
    """Where the deployed machine is another than this version's, for the same environment; None when it is the same."""
    return _difference(shipped_definition(names), deployed, "$")


def shipped_definition(names: Names) -> dict[str, Any]:
    """The definition of this version with an environment's names; the numbers that are variables are left open."""
    values = {
        "orchestrator_arn": names.function_arn(Function.ORCHESTRATOR),
        "sla_monitor_arn": names.function_arn(Function.SLA_MONITOR),
        "control_table": names.tables[Table.CONTROL],
        "sfn_timeout_seconds": str(_ANY),
        "trigger_max_attempts": str(_ANY),
    }
    text = files("interlock.control").joinpath("lifecycle.asl.json").read_text(encoding="utf-8")
    return msgspec.json.decode(_PLACEHOLDER.sub(lambda found: values[found[1]], text), type=dict[str, Any])


def _difference(ours: Any, theirs: Any, place: str) -> str | None:
    if ours == _ANY and isinstance(theirs, int):
        return None
    if isinstance(ours, dict) and isinstance(theirs, dict):
        if unlike := sorted(ours.keys() ^ theirs.keys()):
            return f"{place}.{unlike[0]}"
        return next(
            (found for name in ours if (found := _difference(ours[name], theirs[name], f"{place}.{name}"))), None
        )
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = enumerate(zip(ours, theirs, strict=True))
        return next(filter(None, (_difference(*pair, f"{place}[{at}]") for at, pair in pairs)), None)
    return None if ours == theirs else place
