"""IAM of the world: which rights a call needs, and whether the planned policy of the caller's role gives them.

Sources: Service Authorization Reference (actions and resources of each service); DynamoDB Developer Guide, "IAM with
DynamoDB transactions" (a transaction needs the right of each of its writes); Lambda Developer Guide (what a mapping
needs of the function's role); EventBridge Scheduler User Guide (PassRole for the role of the target).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, Final

from moto.secretsmanager.models import secretsmanager_backends
from moto.ssm.models import ssm_backends

from tests.aws.world.calls import Call
from tests.aws.world.plan import ACCOUNT, REGION, Plan, PlannedFunction, Statement, arn

_TRANSACTED: Final = {
    "Put": "dynamodb:PutItem",
    "Update": "dynamodb:UpdateItem",
    "Delete": "dynamodb:DeleteItem",
    "ConditionCheck": "dynamodb:ConditionCheckItem",
}
# An action by the name of its operation, unless it is called otherwise.
_PREFIXES: Final = {"stepfunctions": "states"}
_BATCHES: Final = {"SendMessageBatch": "SendMessage", "ChangeMessageVisibilityBatch": "ChangeMessageVisibility"}
_STREAM: Final = ("DescribeStream", "GetRecords", "GetShardIterator")
_QUEUE: Final = ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes")
_TRACING: Final = ("PutTelemetryRecords", "PutTraceSegments")
# Lambda Developer Guide, "Giving Lambda functions access to resources in an Amazon VPC", "Required IAM permissions".
_INTERFACES: Final = ("AssignPrivateIpAddresses", "DeleteNetworkInterface", "UnassignPrivateIpAddresses")
_LOGS: Final = ("CreateLogStream", "PutLogEvents")

# Step Functions Developer Guide, "Using CloudWatch Logs to log execution history": what the machine's role needs.
_DELIVERY: Final = (
    "CreateLogDelivery",
    "DeleteLogDelivery",
    "DescribeLogGroups",
    "DescribeResourcePolicies",
    "GetLogDelivery",
    "ListLogDeliveries",
    "PutResourcePolicy",
    "UpdateLogDelivery",
)


@dataclass(frozen=True, slots=True)
class Need:
    """A right that somebody needs. `service`: to whom a role is passed."""

    action: str
    resource: str
    service: str = ""


def needs(call: Call) -> Iterator[Need]:
    """The rights that a call needs."""
    if call.service == "dynamodb":
        yield from _of_table(call)
        return
    arguments = call.arguments
    match call.service, call.operation:
        case "sqs", operation:
            yield Need(
                f"sqs:{_BATCHES.get(operation, operation)}", arn("sqs", arguments["QueueUrl"].rpartition("/")[2])
            )
        case "scheduler", operation:
            yield Need(
                f"scheduler:{operation}", arn("scheduler", f"schedule/{arguments['GroupName']}/{arguments['Name']}")
            )
            if "Target" in arguments:
                yield Need("iam:PassRole", arguments["Target"]["RoleArn"], "scheduler.amazonaws.com")
        case "events", "PutEvents":
            for bus in {entry.get("EventBusName", "default").rpartition("/")[2] for entry in arguments["Entries"]}:
                yield Need("events:PutEvents", arn("events", f"event-bus/{bus}"))
        case "lambda", operation:
            action = "InvokeFunction" if operation == "Invoke" else operation
            version = f":{arguments['Qualifier']}" if "Qualifier" in arguments else ""
            function = f"function:{arguments['FunctionName'].rpartition(':')[2]}{version}"
            yield Need(f"lambda:{action}", arn("lambda", function))
        case "stepfunctions", operation:
            resource = arguments.get("executionArn") or arguments.get("stateMachineArn") or "*"
            yield Need(f"{_PREFIXES[call.service]}:{operation}", resource)
        case (("glue" | "emr" | "emr-serverless" | "logs" | "s3" | "secretsmanager" | "ssm" | "sts"), _):
            yield from _of_target(call)
        case service, operation:
            raise AssertionError(f"which right does {service} {operation} need? Teach the world")


def _of_table(call: Call) -> Iterator[Need]:
    arguments = call.arguments
    match call.operation:
        case "TransactWriteItems":
            for item in arguments["TransactItems"]:
                ((kind, action),) = item.items()
                yield Need(_TRANSACTED[kind], _table(action["TableName"]))
        case "BatchGetItem":
            for name in arguments["RequestItems"]:
                yield Need("dynamodb:BatchGetItem", _table(name))
        case operation:
            index = f"/index/{arguments['IndexName']}" if "IndexName" in arguments else ""
            yield Need(f"dynamodb:{operation}", _table(arguments["TableName"]) + index)


def _of_target(call: Call) -> Iterator[Need]:
    """The rights of what jobs, probes and secrets call."""
    arguments, operation = call.arguments, call.operation
    match call.service:
        case "glue":
            yield Need(f"glue:{operation}", arn("glue", f"job/{arguments['JobName']}"))
        case "emr":
            cluster = arguments.get("ClusterId") or arguments["JobFlowId"]
            yield Need(f"elasticmapreduce:{operation}", arn("elasticmapreduce", f"cluster/{cluster}"))
        case "emr-serverless":
            run = f"/jobruns/{arguments['jobRunId']}" if "jobRunId" in arguments else ""
            resource = arn("emr-serverless", f"/applications/{arguments['applicationId']}{run}")
            yield Need(f"emr-serverless:{operation}", resource)
            if "executionRoleArn" in arguments:
                yield Need("iam:PassRole", arguments["executionRoleArn"], "emr-serverless.amazonaws.com")
        case "logs":
            stream = arguments.get("logStreamName", "")
            yield Need(f"logs:{operation}", arn("logs", f"log-group:{arguments['logGroupName']}:log-stream:{stream}"))
        case "s3":
            # Service Authorization Reference, Amazon S3: ListObjectsV2 is the action ListBucket.
            action = "ListBucket" if operation.startswith("ListObjects") else operation
            yield Need(f"s3:{action}", f"arn:aws:s3:::{arguments['Bucket']}")
        case "secretsmanager":
            yield Need(f"secretsmanager:{operation}", arguments["SecretId"])
            yield from _opened(_key_of_secret(arguments["SecretId"]))
        case "ssm":
            yield Need(f"ssm:{operation}", arn("ssm", f"parameter/{arguments['Name'].removeprefix('/')}"))
            parameters = ssm_backends[ACCOUNT][REGION]._parameters.get(arguments["Name"]) or []
            yield from _opened(next((one.keyid for one in parameters), None))
        case "sts":
            yield Need(f"sts:{operation}", arguments["RoleArn"])


def _key_of_secret(arn_: str) -> str | None:
    secrets = secretsmanager_backends[ACCOUNT][REGION].secrets.values()
    return next((getattr(one, "kms_key_id", None) for one in secrets if one.arn == arn_), None)


def _opened(key: str | None) -> Iterator[Need]:
    """A secret under a key of one's own is decrypted in the name of who reads it; AWS's own key asks for nothing."""
    if key is not None and key.startswith("arn:"):
        yield Need("kms:Decrypt", key)


def _table(name: str) -> str:
    return arn("dynamodb", f"table/{name}")


def needs_of_services(plan: Plan, role: str) -> Iterator[Need]:
    """The rights that AWS itself uses in the name of a role: mappings, logs, Scheduler, the state machine's tasks."""
    for function in plan.functions:
        if _named(function.role) == role:
            yield from _of_function(plan, function)
    if _named(plan.machine.role) == role:
        for function in plan.functions:
            if function.arn in plan.machine.definition:
                yield Need("lambda:InvokeFunction", function.arn)
        yield from (Need(f"logs:{one}", "*") for one in _DELIVERY)
        if any(one.traced for one in plan.functions):
            yield from (Need(f"xray:{one}", "*") for one in _TRACING)
    if plan.key is not None:
        # Of tables, queues and environments: "How Amazon DynamoDB uses AWS KMS", "Amazon SQS: least-privilege policy".
        yield from (Need(f"kms:{one}", plan.key) for one in ("Decrypt", "GenerateDataKey"))
    for queue in plan.queues:
        if role.endswith("-scheduler") and queue.name.endswith(("-timers", "-scheduler-dlq")):
            yield Need("sqs:SendMessage", queue.arn)


def _of_function(plan: Plan, function: PlannedFunction) -> Iterator[Need]:
    yield from (
        Need(f"logs:{one}", arn("logs", f"log-group:/aws/lambda/{function.name}:log-stream:x")) for one in _LOGS
    )
    if function.traced:
        yield from (Need(f"xray:{one}", "*") for one in _TRACING)
    if function.network:
        interface = arn("ec2", "network-interface/eni-1")
        yield from (Need("ec2:CreateNetworkInterface", arn("ec2", one)) for one in function.network)
        yield from (Need(f"ec2:{one}", interface) for one in ("CreateNetworkInterface", *_INTERFACES))
        yield from (Need(f"ec2:{one}", "*") for one in ("DescribeNetworkInterfaces", "DescribeSubnets"))
    for mapping in plan.mappings:
        if mapping.function != function.name:
            continue
        if mapping.stream:
            stream = f"{_table(mapping.source)}/stream/2026-01-01T00:00:00.000"
            yield from (Need(f"dynamodb:{one}", stream) for one in _STREAM)
            yield Need("dynamodb:ListStreams", "*")
            if mapping.on_failure is not None:
                yield Need("sqs:SendMessage", arn("sqs", mapping.on_failure))
        else:
            yield from (Need(f"sqs:{one}", arn("sqs", mapping.source)) for one in _QUEUE)


class Rights:
    """Refuses what a role may not do, and remembers what it did: to be put before the calls of a cloud."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._roles = {one.name: _named(one.role) for one in plan.functions}
        self._roles[plan.machine.name] = _named(plan.machine.role)
        self.used: dict[str, set[Need]] = {role: set(needs_of_services(plan, role)) for role in plan.policies}
        self.denied: list[tuple[str, Need]] = []

    def __call__(self, call: Call) -> None:
        """Before a call."""
        role = self._roles.get(call.principal)
        if role is None:
            return  # an operator, or AWS itself
        for need in needs(call):
            self.used[role].add(need)
            if not allowed(self._plan.policies[role], need):
                self.denied.append((role, need))
                refusal = f"{role} is not authorized to perform: {need.action} on resource: {need.resource}"
                raise call.error("AccessDeniedException", refusal)


def allowed(statements: tuple[Statement, ...], need: Need) -> bool:
    """Does a policy give the right?"""
    found = [one for one in statements if applies(one, need)]
    return bool(found) and all(one["Effect"] == "Allow" for one in found)


def applies(statement: Statement, need: Need) -> bool:
    """Is the statement about that?"""
    named = any(_fits(one, need.action) for one in listed(statement["Action"]))
    about = any(_fits(one, need.resource) for one in listed(statement["Resource"]))
    return named and about and _met(statement.get("Condition") or {}, need)


def _met(condition: Mapping[str, Any], need: Need) -> bool:
    for operator, wanted in condition.items():
        assert (operator, *wanted) == ("StringEquals", "iam:PassedToService"), f"teach the world {condition}"
        if need.service not in listed(wanted["iam:PassedToService"]):
            return False
    return True


def listed(value: Any) -> list[str]:
    """A policy may name one thing or several."""
    return [value] if isinstance(value, str) else list(value)


@cache
def _fits(pattern: str, text: str) -> bool:
    # Only `*` and `?` are wildcards of a policy.
    return fnmatchcase(text, pattern.replace("[", "[[]")) or (pattern == text)


def unused(statements: tuple[Statement, ...], used: set[Need]) -> list[str]:
    """The actions and the resources of a policy that nobody needed."""
    found: list[str] = []
    for statement in statements:
        own = [need for need in used if applies(statement, need)]
        name = statement.get("Sid", "")
        found += [
            f"{name}: {action}"
            for action in listed(statement["Action"])
            if not any(_fits(action, need.action) for need in own)
        ]
        found += [
            f"{name}: {resource}"
            for resource in listed(statement["Resource"])
            if not any(_fits(resource, need.resource) for need in own)
        ]
    return found


def _named(role: str) -> str:
    return role.rpartition("/")[2]
