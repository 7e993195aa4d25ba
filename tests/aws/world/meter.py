"""What is billed: requests and units of DynamoDB, transitions, invocations, messages, schedules and events.

Source of the units: DynamoDB Developer Guide, "DynamoDB on-demand capacity mode" (a write unit per KB, a read unit per
4 KB read consistently and half of one otherwise, twice the units in a transaction; an absent item costs one unit) and
"Global secondary indexes" (each put of an indexed item is a write to the index, too).
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from interlock.aws.dynamodb.attributes import OWN, decode_item
from interlock.ports.limits import item_size
from tests.aws.world.calls import Call
from tests.aws.world.cloud import Cloud

_KB: Final = 1024
_COUNTED: Final = {
    "SendMessage": "messages",
    "SendMessageBatch": "messages",
    "CreateSchedule": "schedules",
    "UpdateSchedule": "schedules",
    "PutEvents": "events",
    "StartExecution": "executions",
}

Bill = Counter[str]


class Meter:
    """Counts for each principal what its calls cost, from when it was made."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._before: dict[str, int] = {}
        self.bills: dict[str, Bill] = {}
        cloud.calls.before.append(self._seen)
        cloud.calls.after.append(self._answered)

    def total(self, *, without: tuple[str, ...] = ()) -> Bill:
        """The bill of the functions and the machine, some of them left out; with invocations and transitions."""
        plan = self._cloud.plan
        names = [one.name for one in plan.functions if not one.name.endswith(without or ("\0",))]
        found: Bill = Counter()
        for name in (*names, plan.machine.name):
            found += self.bills.get(name, Counter())
        found["transitions"] = sum(one.transitions for one in self._cloud.machine.executions.values())
        invoked = Counter(name for name in self._cloud.functions.invoked if name in names)
        found += Counter({f"invocations of {name.split('-interlock-')[1]}": n for name, n in invoked.items()})
        found["invocations"] = invoked.total()
        return found

    def _seen(self, call: Call) -> None:
        """Before a write: how large what it replaces or removes was."""
        if call.service == "dynamodb":
            self._before = {}
            for kind, action in _actions(call):
                self._before[str(_key(kind, action))] = self._size(action["TableName"], _key(kind, action))

    def _answered(self, call: Call, answer: Any) -> None:
        bill = self.bills.setdefault(call.principal, Counter())
        if call.service == "dynamodb":
            self._table(call, answer, bill)
        elif call.operation in _COUNTED:
            bill[_COUNTED[call.operation]] += len(call.arguments.get("Entries", [None]))

    def _table(self, call: Call, answer: Any, bill: Bill) -> None:
        actions = _actions(call)
        if actions:
            twice = 2 if call.operation == "TransactWriteItems" else 1
            bill["writes"] += 1
            for kind, action in actions:
                key = _key(kind, action)
                size = max(self._before.get(str(key), 0), self._size(action["TableName"], key), 1)
                bill["items written"] += kind != "ConditionCheck"
                bill["write units"] += twice * -(-size // _KB)
                if "GSI1PK" in action.get("Item", {}):
                    bill["write units"] += -(-size // _KB)
            return
        bill["reads"] += 1
        bill["half read units"] += sum(_read_units(call, answer))

    def _size(self, table: str, key: Mapping[str, Any]) -> int:
        item = self._cloud.tables.stored(table, key)
        return 0 if item is None else _bytes(item)


def _actions(call: Call) -> list[tuple[str, Mapping[str, Any]]]:
    """The writes of a call."""
    match call.operation:
        case "TransactWriteItems":
            return [next(iter(one.items())) for one in call.arguments["TransactItems"]]
        case "PutItem" | "UpdateItem" | "DeleteItem":
            return [(call.operation.removesuffix("Item"), call.arguments)]
    return []


def _key(kind: str, action: Mapping[str, Any]) -> dict[str, Any]:
    given = action["Item"] if kind == "Put" else action["Key"]
    return {name: given[name] for name in ("PK", "SK")}


def _read_units(call: Call, answer: Any) -> list[int]:
    """In halves of a unit."""
    whole = 2 if call.operation != "Query" or call.arguments.get("ConsistentRead") else 1
    match call.operation:
        case "GetItem":
            return [2 * _blocks(_bytes(answer.get("Item") or {}))]
        case "BatchGetItem":
            sizes = [_bytes(item) for items in answer["Responses"].values() for item in items]
            asked = sum(len(part["Keys"]) for part in call.arguments["RequestItems"].values())
            return [2 * _blocks(size) for size in [*sizes, *[0] * (asked - len(sizes))]]
        case "Query":
            return [whole * _blocks(sum(_bytes(item) for item in answer["Items"]))]
    return []


def _blocks(size: int) -> int:
    return max(1, -(-size // (4 * _KB)))


def _bytes(item: Mapping[str, Any]) -> int:
    return item_size(decode_item(item)) + sum(len(name) + len(item[name]["S"].encode()) for name in OWN & item.keys())
