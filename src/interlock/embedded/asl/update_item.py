"""The one service call the interpreter makes by itself: DynamoDB's `updateItem`, as a write to our store.

The lifecycle waits by letting the state machine store its task token in the run's `ACTIVE#` record (SPEC 5).
On AWS Step Functions calls DynamoDB; here the same parameters become one conditional Update. Only what such a
call needs is read: `SET` of values, and a condition that is a conjunction of equalities. Anything else is
refused, as DynamoDB refuses nonsense.
"""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from interlock.embedded.asl.paths import Json
from interlock.model.errors import InterlockError
from interlock.model.keys import Table
from interlock.ports.store import Key, Matches, Update

UPDATE_ITEM: Final = "arn:aws:states:::aws-sdk:dynamodb:updateItem.waitForTaskToken"
CONDITION_FAILED: Final = "DynamoDb.ConditionalCheckFailedException"

_EQUATION: Final = re.compile(r"\s*(?P<name>#?[A-Za-z_]\w*)\s*=\s*(?P<value>:\w+)\s*")
_WHOLE: Final = re.compile(r"-?\d+")


class UpdateRefusedError(InterlockError):
    """Parameters of `updateItem` that cannot be carried out."""

    error_name: Final = "DynamoDb.DynamoDbException"


class _Text(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"value": "S"}):
    value: str


class _Key(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="upper"):
    pk: _Text
    sk: _Text


class _Parameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename="pascal"):
    table_name: Table
    key: _Key
    update_expression: str
    condition_expression: str | None = None
    expression_attribute_names: dict[str, str] = {}
    expression_attribute_values: dict[str, dict[str, str]] = {}


def to_update(payload: Json) -> Update:
    """The write that a call of `updateItem` with these parameters is."""
    try:
        call = msgspec.convert(payload, _Parameters)
    except msgspec.ValidationError as error:
        raise UpdateRefusedError(f"updateItem: {error}") from error
    verb, _, assignments = call.update_expression.strip().partition(" ")
    if verb.upper() != "SET":
        raise UpdateRefusedError(f"updateItem: only SET is known here, not {call.update_expression!r}")
    used: set[str] = set()
    changes = _equations(assignments.split(","), call, used)
    when = None
    if call.condition_expression is not None:
        parts = re.split(r"\s+AND\s+", call.condition_expression, flags=re.IGNORECASE)
        when = Matches(_equations(parts, call, used))
    unused = {*call.expression_attribute_names, *call.expression_attribute_values} - used
    if unused:
        raise UpdateRefusedError(f"updateItem: {', '.join(sorted(unused))} is given and never used")
    return Update(Key(call.table_name, call.key.pk.value, call.key.sk.value), set=changes, when=when)


def _equations(parts: list[str], call: _Parameters, used: set[str]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for part in parts:
        match = _EQUATION.fullmatch(part)
        if match is None:
            raise UpdateRefusedError(f"updateItem: {part.strip()!r} is not of the form `name = :value`")
        name, value = match["name"], match["value"]
        used |= {name, value}
        attribute = _defined(call.expression_attribute_names, name) if name.startswith("#") else name
        found[attribute] = _plain(_defined(call.expression_attribute_values, value))
    return found


def _defined(definitions: Mapping[str, Json], name: str) -> Json:
    if name not in definitions:
        raise UpdateRefusedError(f"updateItem: {name} is used and nowhere defined")
    return definitions[name]


def _plain(value: Mapping[str, str]) -> Json:
    match dict(value):
        case {"S": str() as text, **rest} if not rest:
            return text
        case {"N": str() as number, **rest} if not rest and _WHOLE.fullmatch(number):
            return int(number)
        case _:
            raise UpdateRefusedError(f"updateItem: {value!r} is neither S nor a whole number N, as text")
