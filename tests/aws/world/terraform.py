"""The plan of the Terraform module (`tests/aws/plan.json`) as the world takes it.

Everything that the world has comes from here: a table, filter, rule, queue, variable or state that the module does not
plan is not there, and a journey that needs it fails. A kind of resource that this reader does not know is an error.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from interlock.model.keys import Table
from tests.aws.planned import resources
from tests.aws.world.plan import (
    Plan,
    PlannedFunction,
    PlannedMachine,
    PlannedMapping,
    PlannedQueue,
    PlannedRule,
    PlannedTable,
    PlannedTarget,
    Statement,
)

# Observed, tagged or logged, but nothing that a journey meets; the configs of the plan, because a journey has its own.
_BESIDE: Final = frozenset(
    {
        "aws_cloudwatch_log_group",
        "aws_cloudwatch_metric_alarm",
        "aws_dynamodb_table_item",
        "aws_iam_role",
        "aws_lambda_function_event_invoke_config",
        "aws_lambda_permission",
        "aws_sqs_queue_policy",
        "aws_sqs_queue_redrive_allow_policy",
        "terraform_data",
    }
)
_READ: Final = frozenset(
    {
        "aws_cloudwatch_event_bus",
        "aws_cloudwatch_event_rule",
        "aws_cloudwatch_event_target",
        "aws_dynamodb_table",
        "aws_iam_role_policy",
        "aws_lambda_event_source_mapping",
        "aws_lambda_function",
        "aws_scheduler_schedule_group",
        "aws_sfn_state_machine",
        "aws_sqs_queue",
    }
)
_RATE: Final = re.compile(r"rate\((\d+) minutes?\)")

Values = Mapping[str, Any]


def shipped(*, variables: Mapping[str, str] | None = None, name: str = "plan") -> Plan:
    """What the module plans; `variables` are what an installation set otherwise, in each function that has them."""
    found = resources(name)
    unknown = {address.split(".")[0] for address in found} - _BESIDE - _READ
    assert not unknown, f"the world does not know what {', '.join(sorted(unknown))} would do: teach it"
    functions = tuple(_function(one) for one in _all(found, "aws_lambda_function"))
    (machine,) = _all(found, "aws_sfn_state_machine")
    plan = Plan(
        environment=functions[0].environment["INTERLOCK_ENVIRONMENT"],
        tables={table: _table(found[f'aws_dynamodb_table.this["{table}"]']) for table in Table},
        functions=functions,
        mappings=tuple(_mapping(one) for one in _all(found, "aws_lambda_event_source_mapping")),
        queues=tuple(_queue(one) for one in _all(found, "aws_sqs_queue")),
        rules=tuple(_rule(one, found) for one in _all(found, "aws_cloudwatch_event_rule")),
        machine=PlannedMachine(machine["name"], machine["definition"], machine["role_arn"]),
        buses=tuple(one["name"] for one in _all(found, "aws_cloudwatch_event_bus")),
        schedule_groups=tuple(one["name"] for one in _all(found, "aws_scheduler_schedule_group")),
        policies=_policies(found),
        key=next(_all(found, "aws_lambda_function")).get("kms_key_arn"),
    )
    return _with(plan, variables or {})


def _with(plan: Plan, variables: Mapping[str, str]) -> Plan:
    def changed(function: PlannedFunction) -> PlannedFunction:
        own = {name: value for name, value in variables.items() if name in function.environment}
        return replace(function, environment={**function.environment, **own})

    return replace(plan, functions=tuple(changed(one) for one in plan.functions))


def _all(found: Mapping[str, Values], kind: str) -> Iterator[Values]:
    for address in sorted(found):
        if address.split(".")[0] == kind:
            yield found[address]


def _table(values: Values) -> PlannedTable:
    ttl = [one["attribute_name"] for one in values.get("ttl", []) if one["enabled"]]
    indexes = {one["name"]: (one["hash_key"], one["range_key"]) for one in values.get("global_secondary_index") or []}
    return PlannedTable(
        name=values["name"],
        stream=values["stream_view_type"] if values.get("stream_enabled") else None,
        ttl_attribute=ttl[0] if ttl else None,
        hash_key=values["hash_key"],
        range_key=values["range_key"],
        indexes=indexes,
    )


def _function(values: Values) -> PlannedFunction:
    return PlannedFunction(
        name=values["function_name"],
        handler=values["handler"],
        environment=values["environment"][0]["variables"],
        role=values["role"],
        timeout=timedelta(seconds=values["timeout"]),
        traced=any(one["mode"] == "Active" for one in values.get("tracing_config") or []),
        network=tuple(_network(values)),
    )


def _network(values: Values) -> Iterator[str]:
    for one in values.get("vpc_config") or []:
        yield from (f"subnet/{name}" for name in one["subnet_ids"])
        yield from (f"security-group/{name}" for name in one["security_group_ids"])


def _mapping(values: Values) -> PlannedMapping:
    source: str = values["event_source_arn"]
    stream = ":dynamodb:" in source
    criteria = values.get("filter_criteria") or [{"filter": []}]
    failure = [one["on_failure"][0]["destination_arn"] for one in values.get("destination_config") or []]
    age, retries = values.get("maximum_record_age_in_seconds", -1), values.get("maximum_retry_attempts", -1)
    return PlannedMapping(
        function=values["function_name"].rpartition(":")[2],
        source=source.split(":table/")[1].split("/", maxsplit=1)[0] if stream else source.rpartition(":")[2],
        stream=stream,
        batch_size=values["batch_size"],
        filters=tuple(json.loads(one["pattern"]) for one in criteria[0]["filter"]),
        bisect=bool(values.get("bisect_batch_on_function_error")),
        parallel=values.get("parallelization_factor") or 1,
        reports_failures="ReportBatchItemFailures" in (values.get("function_response_types") or []),
        max_age=None if age == -1 else timedelta(seconds=age),
        max_retries=None if retries == -1 else retries,
        on_failure=failure[0].rpartition(":")[2] if failure else None,
    )


def _queue(values: Values) -> PlannedQueue:
    redrive = json.loads(values["redrive_policy"]) if values.get("redrive_policy") else None
    return PlannedQueue(
        name=values["name"],
        fifo=bool(values.get("fifo_queue")),
        visibility=timedelta(seconds=values.get("visibility_timeout_seconds") or 30),
        retention=timedelta(seconds=values.get("message_retention_seconds") or 345_600),
        dead_letters=redrive["deadLetterTargetArn"].rpartition(":")[2] if redrive else None,
        max_receives=int(redrive["maxReceiveCount"]) if redrive else 0,
    )


def _rule(values: Values, found: Mapping[str, Values]) -> PlannedRule:
    targets = [one for one in _all(found, "aws_cloudwatch_event_target") if one["rule"] == values["name"]]
    rate = _RATE.fullmatch(values.get("schedule_expression") or "")
    pattern = values.get("event_pattern")
    assert rate or pattern, f"the rule {values['name']} never fires"
    return PlannedRule(
        name=values["name"],
        bus=values.get("event_bus_name") or "default",
        targets=tuple(_target(one) for one in targets),
        pattern=json.loads(pattern) if pattern else None,
        every=timedelta(minutes=int(rate[1])) if rate else None,
    )


def _target(values: Values) -> PlannedTarget:
    transformer = values.get("input_transformer") or []
    return PlannedTarget(
        arn=values["arn"],
        input=values.get("input"),
        paths=transformer[0].get("input_paths") or {} if transformer else {},
        template=transformer[0]["input_template"].strip() if transformer else None,
    )


def _policies(found: Mapping[str, Values]) -> dict[str, tuple[Statement, ...]]:
    policies: dict[str, tuple[Statement, ...]] = {}
    for values in _all(found, "aws_iam_role_policy"):
        role = values["role"].rpartition("/")[2]
        policies[role] = (*policies.get(role, ()), *json.loads(values["policy"])["Statement"])
    return policies
