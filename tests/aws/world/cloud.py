"""The world itself: everything that a plan deploys, in one process, driven step by step on virtual time."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from functools import cache
from typing import Any, Final

from moto import mock_aws

from interlock.model.keys import Table
from interlock.ports.clock import Clock
from tests.aws.dynamo import session
from tests.aws.world.bus import AsyncInvocations, Bus
from tests.aws.world.calls import Call, Calls
from tests.aws.world.functions import Functions, Prepare
from tests.aws.world.machine import StateMachine
from tests.aws.world.moto_machine import CONFIG, MotoMachine
from tests.aws.world.plan import REGION, Plan, PlannedMapping, queue_url
from tests.aws.world.queues import Queues
from tests.aws.world.rights import Rights
from tests.aws.world.schedules import Schedules
from tests.aws.world.sources import QueuePump, StreamPump
from tests.aws.world.tables import Tables

_LIVELOCK: Final = 10_000
# Whatever moto knows of state machines is of other people's: they end when a test says so.
_PLAIN: Final[Any] = {"lambda": {"use_docker": False}}


@cache
def client(service: str) -> Any:
    """A client of the world; one for all, because a session reads the models of its services once."""
    return session().client(service)


class Cloud:
    """What is deployed, and what happens in it. To be used within `running`."""

    def __init__(
        self,
        plan: Plan,
        clock: Clock,
        prepare: Prepare,
        machine: type[StateMachine] = StateMachine,
    ) -> None:
        self.plan = plan
        self.clock = clock
        self.calls = Calls()
        self.tables = Tables(plan, clock)
        self.queues = Queues(plan, clock)
        self.functions = Functions(plan, self.calls, prepare)
        self.invocations = AsyncInvocations(clock, lambda name, text: self.functions.invoke(name, text).error is None)
        self.bus = Bus(plan, clock, self.deliver)
        self.schedules = Schedules(plan, clock, self.deliver)
        self.machine = machine(plan, clock=clock, calls=self.calls, functions=self.functions, publish=self.bus.publish)
        self.streams = [self._stream(one) for one in plan.mappings if one.stream]
        self.readers = [self._reader(one) for one in plan.mappings if not one.stream]
        self.rights = Rights(plan)
        self.calls.before.append(self.rights)
        self.calls.services |= {
            "dynamodb": self.tables,
            "sqs": self.queues,
            "scheduler": self.schedules,
            "events": self.bus,
            "stepfunctions": self.machine,
            "lambda": self._invoked,
        }

    @contextmanager
    def running(self) -> Iterator["Cloud"]:
        """Moto, patched, with everything that is planned made in it."""
        with ExitStack() as stack:
            stack.enter_context(mock_aws(config=CONFIG if isinstance(self.machine, MotoMachine) else _PLAIN))
            stack.enter_context(self.tables.installed())
            stack.enter_context(self.queues.installed(client("sqs")))
            self.schedules.install(client("scheduler"))
            self.machine.use(client("dynamodb"))
            if isinstance(self.machine, MotoMachine):
                stack.enter_context(self.machine.installed(client("stepfunctions")))
            stack.enter_context(self.calls.installed())
            yield self

    # ------------------------------------------------------------------------------------------------ driving

    def pump_streams(self) -> int:
        """Deliver what the streams have, and what was invoked asynchronously, until nothing moves; how much."""
        done = 0
        for _ in range(_LIVELOCK):
            moved = sum(stream.pump() for stream in self.streams) + self.invocations.pump()
            if not moved:
                return done
            done += moved
        raise AssertionError("the streams do not come to rest: something wakes itself forever")

    def pump_timers(self) -> int:
        """Deliver what is due in Scheduler and in the queues; how much."""
        return self.schedules.pump() + sum(reader.pump() for reader in self.readers)

    def next_at(self) -> datetime | None:
        """When something is due next, executions apart."""
        found = [
            self.schedules.next_at(),
            self.queues.next_at(),
            self.invocations.next_at(),
            *(stream.next_at() for stream in self.streams),
        ]
        return min((at for at in found if at is not None), default=None)

    def deliver(self, target: str, payload: str) -> None:
        """Hand a payload over to a function (asynchronously) or a queue, by its ARN, as a service does."""
        service, name = target.split(":")[2], target.rpartition(":")[2]
        if service == "lambda":
            self.invocations.put(target, payload)
            return
        assert service == "sqs", f"{target} is no target of this world"
        with self.calls.acting_as("aws"):
            client("sqs").send_message(QueueUrl=self._url(name), MessageBody=payload)

    def dead_letters(self) -> int:
        """How much was given up on: messages in the queues of dead letters, and asynchronous invocations."""
        read = {one.source for one in self.plan.mappings}
        return sum(self.queues.depth(one.name) for one in self.plan.queues if one.name not in read) + len(
            self.invocations.given_up
        )

    # ------------------------------------------------------------------------------------------------- wiring

    def _stream(self, mapping: PlannedMapping) -> StreamPump:
        table, planned = next((t, one) for t, one in self.plan.tables.items() if one.name == mapping.source)
        return StreamPump(
            mapping,
            table,
            planned,
            tables=self.tables,
            functions=self.functions,
            clock=self.clock,
            give_up=lambda queue, body: self.deliver(f"arn:aws:sqs:{REGION}:0:{queue}", body),
        )

    def _reader(self, mapping: PlannedMapping) -> QueuePump:
        queue = next(one for one in self.plan.queues if one.name == mapping.source)
        return QueuePump(
            mapping,
            self._url(queue.name),
            queue.arn,
            client=_Service(self),
            queues=self.queues,
            functions=self.functions,
            region=REGION,
        )

    def _url(self, name: str) -> str:
        return queue_url(name)

    def _invoked(self, call: Call) -> Any:
        if not self.plan.has_function(call.arguments["FunctionName"]):
            return call.forward()  # somebody else's, which a job calls
        if call.arguments.get("InvocationType") == "Event":
            payload = call.arguments.get("Payload", b"{}")
            self.invocations.put(
                call.arguments["FunctionName"], payload if isinstance(payload, str) else payload.decode()
            )
            return {"StatusCode": 202}
        return self.functions(call)

    def stream_of(self, table: Table) -> StreamPump:
        """The mapping of a table's stream."""
        return next(one for one in self.streams if one.mapping.source == self.plan.tables[table].name)


class _Service:
    """SQS as Lambda's pollers call it: with the rights of the function, but not in its name."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def __getattr__(self, name: str) -> Any:
        act = getattr(client("sqs"), name)

        def call(**arguments: Any) -> Any:
            with self._cloud.calls.acting_as("aws"):
                return act(**arguments)

        return call
