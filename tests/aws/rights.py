"""Which rights the functions, the state machine and Scheduler use: in journeys, and when things go wrong.

`python -m tests.aws.rights` plays enough of them to see every right used, and writes `tests/aws/rights.json`; a test
compares the planned policies with it. That nothing is denied needs no record: the in-process AWS refuses what a policy
does not allow, in every journey.
"""

import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final

import structlog

from interlock.model.keys import Table
from interlock.simulation.scenario import inline_scenario
from tests.aws import rare_rights
from tests.aws.test_journeys import SAMPLE
from tests.aws.world.cloud import Cloud, client
from tests.aws.world.faults import AwsFaults, faulty
from tests.aws.world.play import on_aws
from tests.aws.world.rights import Need
from tests.aws.world.terraform import shipped
from tests.journeys.test_journeys import FILES, named, scenario_of
from tests.safety.faults import Loss

FILE: Final = Path(__file__).parent / "rights.json"
PLAYED: Final = SAMPLE | {
    "cancel-waiting-and-running",
    "config-brakes-withdraw-what-waits",
    "job-polled-a-thousand-times",
    "job-reported-from-outside",
    "pool-outlasts-the-execution",
    "postrun-recheck-on-a-timer",
    "probe-fails-and-recovers",
    "sla-promise-follows",
    "sla-ready-by",
    "waiting-reopened",
    "watchdog-trigger-deadline",
}
TROUBLED: Final = frozenset({"crash-while-starting", "pool-in-turn", "retry-delay-doubles", "sla-both-past"})
_OWN_NAMES: Final = ((re.compile(r"(:execution:[^:]+:).+"), r"\1*"), (re.compile(r"(:schedule/[^/]+/).+"), r"\1*"))
# An address that no channel may call: each try fails at once.
_ALERTED: Final = json.dumps([{"channel": "webhook", "url": "http://127.0.0.1:9/"}])

Used = dict[str, list[list[str]]]


def _seen(cloud: Cloud) -> Used:
    assert cloud.rights.denied == []
    return {role: sorted({_plain(need) for need in needs}) for role, needs in cloud.rights.used.items()}  # type: ignore[misc]


def _plain(need: Need) -> tuple[str, str, str]:
    """Without the name of one execution or schedule."""
    resource = need.resource
    for pattern, general in _OWN_NAMES:
        resource = pattern.sub(general, resource)
    return need.action, resource, need.service


def of_journey(number: int) -> Used:
    """What one journey uses."""
    with on_aws(scenario_of(FILES[number])) as world:
        world.play()
        return _seen(world.cloud)


def of_troubled_journey(number: int) -> Used:
    """What one journey uses while executions are stopped, schedules get lost, and the index and the answers are old."""
    losses = tuple(Loss(instant, instant % 3) for instant in range(3, 60, 5))
    faults = AwsFaults(aborted=losses, unscheduled=losses, stale=True, kills=tuple(range(20, 400, 23)), reordered=True)
    with faulty(scenario_of(FILES[number]), faults) as world:
        world.finish()
        return _seen(world.cloud)


def of_alarms_and_bad_records() -> Used:
    """What an alarm, an alert that nobody takes for a day, and records that are none of ours lead to."""
    scenario = inline_scenario(
        name="rights",
        start="2026-03-02T08:00:00Z",
        until="2026-03-04T08:00:00Z",
        pipelines=[
            {
                "pipeline": {"id": "x"},
                "schedule": {"cron": "0 9 * * *"},
                "validation": {"rules": [{"key": "a", "check": "exists"}]},
                "job": {"type": "external"},
            }
        ],
        steps=[],
        jobs={},
    )
    with on_aws(scenario, shipped(variables={"ALERTS": _ALERTED})) as world:
        detail = {
            "alarmName": "test-interlock-watchdog-errors",
            "state": {"value": "ALARM", "reason": "r"},
            "previousState": {"value": "OK"},
        }
        world.cloud.bus.publish("aws.cloudwatch", "CloudWatch Alarm State Change", detail)
        for table, sk in ((Table.CONTROL, "TRIGGER#cron#x"), (Table.JOBLOG, "JOB#x")):
            name = world.cloud.plan.tables[table].name
            item = {"PK": {"S": "PIPELINE#x"}, "SK": {"S": sk}, "event": {"S": "success"}, "status": {"S": "odd"}}
            client("dynamodb").put_item(TableName=name, Item=item)
        world.play()
        return _seen(world.cloud)


def of_rare_case(number: int) -> Used:
    """What a case that no journey brings about uses."""
    return _seen(rare_rights.ALL[number]())


def _all() -> Iterator[tuple[Callable[..., Used], tuple[int, ...]]]:
    yield of_alarms_and_bad_records, ()
    for number in range(len(rare_rights.ALL)):
        yield of_rare_case, (number,)
    for number, path in enumerate(FILES):
        if named(path) in PLAYED:
            yield of_journey, (number,)
        if named(path) in TROUBLED:
            yield of_troubled_journey, (number,)


def _quiet() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))


def recorded() -> Used:
    """Everything, played."""
    found: dict[str, set[tuple[str, ...]]] = {}
    with ProcessPoolExecutor(2, initializer=_quiet) as pool:
        for future in [pool.submit(act, *arguments) for act, arguments in _all()]:
            for role, needs in future.result().items():
                found.setdefault(role, set()).update(tuple(need) for need in needs)
    return {role: [list(need) for need in sorted(needs)] for role, needs in sorted(found.items())}


if __name__ == "__main__":
    FILE.write_text(json.dumps(recorded(), indent=1) + "\n", encoding="utf-8")
