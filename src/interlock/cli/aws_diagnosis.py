"""The checks of `interlock doctor` on an environment of AWS. Each asks a service; a missing permission is named."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from interlock.aws.dynamodb.items import INDEX
from interlock.aws.names import Function, Names, Queue
from interlock.aws.operations import digest
from interlock.aws.operations.environment import is_missing
from interlock.aws.operations.lifecycle import deployed_definition, difference
from interlock.aws.operations.queue_depths import Depth, depth
from interlock.cli.checks import Check
from interlock.cli.diagnosis import dead_letters, invalid_configs, watched
from interlock.cli.output import counted
from interlock.cli.wording import length, now
from interlock.control import sla_monitor
from interlock.decide import sla
from interlock.model import keys
from interlock.model.errors import AccessError, InterlockError
from interlock.model.keys import Table
from interlock.model.times import parse_instant

if TYPE_CHECKING:
    from interlock.aws.operations.address import AwsAddress
    from interlock.aws.operations.environment import Environment
    from interlock.cli.aws_backend import AwsBackend

_STREAMED: Final = (Table.CONTROL, Table.JOBLOG, Table.EVENTS)
_MAPPED: Final = {
    Function.STREAM_ROUTER: (Table.CONTROL, Table.JOBLOG, Queue.TIMERS),
    Function.EVENT_SINK: (Table.EVENTS,),
    Function.SLA_MONITOR: (Queue.SLA_TIMERS,),
    Function.ALERT_DISPATCHER: (Queue.ALERTS,),
}
_BEHIND: Final = timedelta(minutes=5)
_LOOKED_BACK: Final = timedelta(minutes=15)
_WAITING_LIMIT: Final = 1000
_OVERDUE: Final = timedelta(minutes=20)
_FAR: Final = timedelta(minutes=16)
"""Beyond the longest delay of a queue: such a timer is an entry of Scheduler."""
_SCHEDULES_COUNTED: Final = 100_000
_QUOTA: Final = 1_000_000
_NEAR: Final = 0.8
_FEW_FREE: Final = 50
_APPLY: Final = "`terraform apply` with the module of this version"


def checks(address: "AwsAddress") -> Iterator[Check]:
    """Everything there is to look at. An environment that cannot be opened is one problem."""
    from interlock.cli.aws_backend import opened

    try:
        with opened(address) as backend:
            yield Check(name="environment", ok=True, detail=_where(backend.environment.names))
            yield from _all(backend)
    except AccessError as error:
        yield Check(name="environment", ok=False, detail=str(error), advice="see above")


def _where(names: Names) -> str:
    return f"{names.environment} in account {names.account}, region {names.region}"


def _all(backend: "AwsBackend") -> Iterator[Check]:
    environment = backend.environment
    looks: list[tuple[str, Callable[[], Iterator[Check]]]] = [
        ("tables", lambda: _tables(environment)),
        ("mappings", lambda: _mappings(environment)),
        ("streams", lambda: _lag(environment)),
        ("state machine", lambda: _machine(environment)),
        ("functions", lambda: _functions(environment)),
        ("timers", lambda: _timers(backend)),
        ("queues", lambda: _queues(environment)),
        ("dead letters", lambda: _dead(environment)),
        ("stored configs", lambda: iter([invalid_configs([one.id for one in backend.pipelines() if not one.valid])])),
        ("watchdog", lambda: _watchdog(backend)),
        ("quotas", lambda: _quotas(environment)),
    ]
    for name, look in looks:
        try:
            yield from look()
        except InterlockError as error:
            advice = "doctor needs the rights to look: docs/guide/aws/commands.md lists them"
            yield Check(name=name, ok=False, detail=str(error), advice=advice)


# ------------------------------------------------------------------------------------------------------- what is there


def _tables(environment: "Environment") -> Iterator[Check]:
    client = environment.client("dynamodb")
    problems: list[str] = []
    for table, name in environment.names.tables.items():
        found = _described(environment, f"looking at table {name}", lambda: client.describe_table(TableName=name))  # noqa: B023 - called at once
        if found is None:
            problems.append(f"there is no table {name}")
            continue
        problems += _table_problems(table, name, found["Table"])
        ttl = environment.ask(
            f"looking at the TTL of {name} (dynamodb:DescribeTimeToLive)",
            lambda: client.describe_time_to_live(TableName=name),  # noqa: B023 - called at once
        )["TimeToLiveDescription"]
        if ttl.get("TimeToLiveStatus") not in ("ENABLED", "ENABLING") or ttl.get("AttributeName") != "ttl":
            problems.append(f"{name} does not expire items by `ttl`")
    if problems:
        yield Check(name="tables", ok=False, detail="; ".join(problems), advice=_APPLY)
    else:
        yield Check(name="tables", ok=True, detail="4 tables, active, with their streams")


def _table_problems(table: Table, name: str, found: dict[str, Any]) -> Iterator[str]:
    if found.get("TableStatus") not in ("ACTIVE", "UPDATING"):
        yield f"{name} is {found.get('TableStatus')}"
    stream = found.get("StreamSpecification", {})
    if table in _STREAMED and not (stream.get("StreamEnabled") and stream.get("StreamViewType") == "NEW_IMAGE"):
        yield f"{name} has no stream of new images"
    if table is Table.EVENTS:
        indexes = {one["IndexName"]: one.get("IndexStatus") for one in found.get("GlobalSecondaryIndexes", [])}
        if indexes.get(INDEX) not in ("ACTIVE", "UPDATING"):
            yield f"{name} has no index {INDEX}"


def _mappings(environment: "Environment") -> Iterator[Check]:
    """Is every stream and queue read by its function?"""
    problems: list[str] = []
    for function, sources in _MAPPED.items():
        found = _mapped(environment, function)
        for source in sources:
            mapping = next((one for one in found if _reads(environment.names, one, source)), None)
            what = f"the {source.value} {'stream' if isinstance(source, Table) else 'queue'}"
            if mapping is None:
                problems.append(f"nobody reads {what}: the {function} has no mapping of it")
            elif mapping.get("State") != "Enabled":
                problems.append(f"the {function} does not read {what}: its mapping is {mapping.get('State')}")
            elif str(mapping.get("LastProcessingResult", "")).startswith("PROBLEM"):
                problems.append(f"the {function} reads {what} with a problem: {mapping['LastProcessingResult']}")
    if problems:
        advice = f"enable the mapping (Lambda, configuration, triggers), or {_APPLY}"
        yield Check(name="mappings", ok=False, detail="; ".join(problems), advice=advice)
    else:
        yield Check(name="mappings", ok=True, detail="every stream and queue is read")


def _mapped(environment: "Environment", function: Function) -> list[dict[str, Any]]:
    name, client = environment.names.function(function), environment.client("lambda")
    found = _described(
        environment,
        f"looking at the mappings of {name} (lambda:ListEventSourceMappings)",
        lambda: client.list_event_source_mappings(FunctionName=name),
    )
    return list((found or {}).get("EventSourceMappings", []))


def _reads(names: Names, mapping: dict[str, Any], source: Table | Queue) -> bool:
    arn = str(mapping.get("EventSourceArn", ""))
    if isinstance(source, Queue):
        return arn == names.queue_arn(source)
    return arn.startswith(f"{names.table_arn(source)}/stream/")


def _lag(environment: "Environment") -> Iterator[Check]:
    """How old is what the functions read now? A stream forgets after 24 hours."""
    late: list[str] = []
    for function in (Function.STREAM_ROUTER, Function.EVENT_SINK):
        age = _metric(environment, "AWS/Lambda", "IteratorAge", FunctionName=environment.names.function(function))
        if age is not None and timedelta(milliseconds=age) > _BEHIND:
            late.append(f"the {function} is {length(timedelta(milliseconds=age))} behind its stream")
    if late:
        advice = "its log says what holds it up; what is not read within 24 hours is lost, then: `interlock aws replay`"
        yield Check(name="streams", ok=False, detail="; ".join(late), advice=advice)
    else:
        yield Check(name="streams", ok=True, detail="no function is far behind")


def _metric(environment: "Environment", namespace: str, name: str, **dimensions: str) -> float | None:
    """The highest value of the last quarter of an hour; None when there is none."""
    client, end = environment.client("cloudwatch"), now()
    found = environment.ask(
        f"reading the metric {name} (cloudwatch:GetMetricStatistics)",
        lambda: client.get_metric_statistics(
            Namespace=namespace,
            MetricName=name,
            Dimensions=[{"Name": key, "Value": value} for key, value in dimensions.items()],
            StartTime=end - _LOOKED_BACK,
            EndTime=end,
            Period=60,
            Statistics=["Maximum"],
        ),
    )["Datapoints"]
    return max((float(one["Maximum"]) for one in found), default=None)


# ------------------------------------------------------------------------------------------------------- which version


def _machine(environment: "Environment") -> Iterator[Check]:
    found = deployed_definition(environment)
    if found is None:
        detail = f"there is no state machine {environment.names.state_machine}"
        yield Check(name="state machine", ok=False, detail=detail, advice=_APPLY)
        return
    place = difference(environment.names, found)
    if place is not None:
        detail = f"the deployed lifecycle is not this version's: {place} differs"
        yield Check(name="state machine", ok=False, detail=detail, advice=f"{_APPLY}, or use the CLI of its version")
    else:
        yield Check(name="state machine", ok=True, detail="the lifecycle of this version")


def _functions(environment: "Environment") -> Iterator[Check]:
    """Is each there, ready, and of this version?"""
    ours = digest.describe()
    problems: list[str] = []
    for function in Function:
        name, client = environment.names.function(function), environment.client("lambda")
        found = _described(
            environment,
            f"looking at the function {name} (lambda:GetFunctionConfiguration)",
            lambda: client.get_function_configuration(FunctionName=name),  # noqa: B023 - called at once
        )
        if found is None:
            problems.append(f"there is no function {name}")
        elif found.get("State", "Active") not in ("Active", "Inactive"):
            problems.append(f"{function} is {found['State']}: {found.get('StateReason', '')}")
        elif (deployed := digest.read_description(str(found.get("Description", "")))) is None:
            problems.append(f"{function} does not say which version it is")
        elif deployed != digest.read_description(ours):
            problems.append(f"{function} is version {deployed[0]} (source {deployed[1]})")
    if problems:
        detail = f"this is {ours}: {'; '.join(problems)}"
        advice = "`make lambda` and `terraform apply`, or use the CLI of the deployed version"
        yield Check(name="functions", ok=False, detail=detail, advice=advice)
    else:
        yield Check(name="functions", ok=True, detail=f"{counted(len(Function), 'function')} of this version")


# ------------------------------------------------------------------------------------------------------- is it at work?


def _timers(backend: "AwsBackend") -> Iterator[Check]:
    """Do the armed timers and the entries of Scheduler agree?"""
    wanted = dict(_wanted_timers(backend))
    armed = _armed(backend, list(wanted))
    entries, whole = _entries(backend.environment)
    soon = now() + _FAR
    missing = [name for name, at in wanted.items() if name not in armed and at > now() - _OVERDUE]
    missing += [name for name, far in armed.items() if far > soon and whole and name not in entries]
    others = _armed(backend, [name for name in entries if name not in armed])
    orphaned = [name for name in entries if name not in armed and name not in others]
    problems = []
    if missing:
        problems.append(f"{counted(len(missing), 'timer')} not armed, such as {missing[0]}")
    if orphaned:
        problems.append(f"Scheduler entries without a timer: {len(orphaned)}, such as {orphaned[0]}")
    if problems:
        advice = "`interlock watchdog` arms what is missing; an entry without a timer does nothing when it fires"
        yield Check(name="timers", ok=False, detail="; ".join(problems), advice=advice)
    else:
        yield Check(name="timers", ok=True, detail=f"{len(armed)} armed, {len(entries)} of them entries of Scheduler")


def _wanted_timers(backend: "AwsBackend") -> Iterator[tuple[str, datetime]]:
    """The timers that schedules and open SLAs must have."""
    from interlock.control import records
    from interlock.model.run import SlaState

    for pipeline in backend.store.pipelines():
        pk = keys.pipeline_pk(pipeline)
        for row in backend.store.query(Table.CONTROL, pk, keys.TICK):
            at = parse_instant(row.item.get("nextAt"))
            if at is not None:
                yield keys.tick_timer_name(pipeline, row.key.sk[len(keys.TICK) :]), at
        for row in backend.store.query(Table.CONTROL, pk, keys.SLA, reverse=True, limit=100):
            state = records.convert(row.item, SlaState, row.key)
            for kind, at in sla.next_instants(state).items():
                yield sla_monitor.timer_name(keys.run_of(pk, row.key.sk, keys.SLA), kind), at


def _armed(backend: "AwsBackend", names: list[str]) -> dict[str, datetime]:
    """When each of these timers fires; one that is not armed is left out."""
    from interlock.aws.timers import RECORD
    from interlock.ports.store import Key

    items = backend.store.get_many([Key(Table.CONTROL, f"{RECORD}{name}", "TIMER") for name in names])
    found = zip(names, items, strict=True)
    times = {name: parse_instant(item.get("at")) for name, item in found if item is not None}
    return {name: at for name, at in times.items() if at is not None}


def _entries(environment: "Environment") -> tuple[set[str], bool]:
    """The names of the entries of Scheduler, and whether they are all."""
    client, group = environment.client("scheduler"), environment.names.timer_group
    found: set[str] = set()
    token: str | None = None
    while len(found) < _SCHEDULES_COUNTED:
        more = {"NextToken": token} if token else {}
        page = _described(
            environment,
            f"listing the schedules of {group} (scheduler:ListSchedules)",
            lambda: client.list_schedules(GroupName=group, MaxResults=100, **more),  # noqa: B023 - called at once
        )
        found.update(one["Name"] for one in (page or {}).get("Schedules", []))
        token = (page or {}).get("NextToken")
        if not token:
            return found, True
    return found, False


def _queues(environment: "Environment") -> Iterator[Check]:
    """Is what is due taken out of the queues?"""
    problems, said = [], []
    for queue in (Queue.TIMERS, Queue.SLA_TIMERS, Queue.ALERTS):
        found = depth(environment, queue)
        if found is None:
            problems.append(f"there is no queue {environment.names.queue(queue)}")
            continue
        said.append(f"{queue.value} {_depth(found)}")
        if found.waiting > _WAITING_LIMIT:
            problems.append(f"{found.waiting} messages wait in {environment.names.queue(queue)}")
    if problems:
        advice = "look at the function that reads it: its log, its concurrency, its mapping"
        yield Check(name="queues", ok=False, detail="; ".join(problems), advice=advice)
    else:
        yield Check(name="queues", ok=True, detail=", ".join(said))


def _depth(found: Depth) -> str:
    return f"{found.waiting + found.taken} due, {found.delayed} to come" if found.total else "empty"


def _dead(environment: "Environment") -> Iterator[Check]:
    from interlock.aws.operations.dead_letter_queues import QUEUES

    found = [depth(environment, queue) for queue in QUEUES]
    yield dead_letters(sum(one.total for one in found if one is not None))
    lost = [environment.names.queue(queue) for queue, one in zip(QUEUES, found, strict=True) if one is None]
    if lost:
        yield Check(name="dead letters", ok=False, detail=f"there is no queue {', '.join(lost)}", advice=_APPLY)


def _watchdog(backend: "AwsBackend") -> Iterator[Check]:
    found = list(watched(backend.store, "is the rule enabled? The log of the watchdog function says more"))
    if found:
        yield from found
    else:
        detail = "it has never made a whole pass"
        yield Check(
            name="watchdog", ok=False, detail=detail, advice="`interlock watchdog` makes one and says what fails"
        )


def _quotas(environment: "Environment") -> Iterator[Check]:
    """What an account may have, where we could come near it."""
    near: list[str] = []
    account = environment.client("lambda")
    limits = environment.ask("reading the limits of Lambda (lambda:GetAccountSettings)", account.get_account_settings)[
        "AccountLimit"
    ]
    free = int(limits.get("UnreservedConcurrentExecutions", _FEW_FREE))
    if free < _FEW_FREE:
        near.append(f"only {free} concurrent executions of Lambda are not reserved")
    opened = _metric(environment, "AWS/States", "OpenExecutionCount")
    if opened is not None and opened > _NEAR * _QUOTA:
        near.append(f"{int(opened)} executions of Step Functions are open, of {_QUOTA}")
    entries, _ = _entries(environment)
    if len(entries) >= _SCHEDULES_COUNTED:
        near.append(f"{_SCHEDULES_COUNTED} entries of Scheduler or more, of {_QUOTA}")
    if near:
        advice = "have the quota raised (Service Quotas), docs/guide/aws/limits.md says which"
        yield Check(name="quotas", ok=False, detail="; ".join(near), advice=advice)
    else:
        yield Check(name="quotas", ok=True, detail="none is near")


def _described(environment: "Environment", doing: str, act: Callable[[], Any]) -> Any:
    """What a service says of a thing; None when there is no such thing."""
    try:
        return environment.ask(doing, act)
    except AccessError as error:
        if is_missing(error):
            return None
        raise
