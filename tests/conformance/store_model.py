"""A store as a plain dict, and random commits: what the store suite compares a backend with."""

from typing import Any

from hypothesis import strategies as st

from interlock.model.keys import Table
from interlock.ports.store import (
    Condition,
    Delete,
    Item,
    Key,
    Matches,
    Missing,
    Present,
    Put,
    Require,
    Update,
    Write,
)


def exactly(value: Any) -> Any:
    """A value in a form in which true is not 1. 1.0 may come back as 1: a store has one kind of number."""
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, dict):
        return {name: exactly(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [exactly(inner) for inner in value]
    return value


PARTITIONS = ("PIPELINE#a", "PIPELINE#b")
NAMES = st.sampled_from(["n", "m"])
VALUES = st.sampled_from([None, 0, 1, True, False, "1", [1], {"x": None}])
KEYS = st.builds(
    Key,
    st.sampled_from([Table.CONTROL, Table.EVENTS, Table.RERUN]),
    st.sampled_from(PARTITIONS),
    st.sampled_from(["a", "a#", "b"]),
)
ITEMS = st.dictionaries(NAMES, VALUES)
CONDITIONS: st.SearchStrategy[Condition] = st.one_of(
    st.none(), st.just(Missing()), st.just(Present()), st.builds(Matches, st.dictionaries(NAMES, VALUES, max_size=2))
)
REQUIREMENTS = CONDITIONS.filter(lambda condition: condition is not None)
WRITES: st.SearchStrategy[Write] = st.one_of(
    st.builds(Put, KEYS, ITEMS, CONDITIONS),
    st.builds(
        Update,
        KEYS,
        set=st.dictionaries(st.just("n"), VALUES),
        # A name of its own: adding to what is no number has its own test.
        add=st.dictionaries(st.just("count"), st.integers(-5, 5)),
        remove=st.sampled_from([(), ("m",)]),
        when=CONDITIONS,
    ),
    st.builds(Delete, KEYS, CONDITIONS),
    st.builds(Require, KEYS, REQUIREMENTS),
)
COMMITS = st.lists(st.lists(WRITES, min_size=1, max_size=5, unique_by=lambda write: write.key), max_size=12)


def model_holds(condition: Condition, item: Item | None) -> bool:
    match condition:
        case None:
            return True
        case Missing():
            return item is None
        case Present():
            return item is not None
        case Matches():
            return all(exactly((item or {}).get(name)) == exactly(v) for name, v in condition.attributes.items())


def model_write(model: dict[Key, Item], reported: dict[str, list[tuple[str, Item | None]]], write: Write) -> None:
    existed = write.key in model
    match write:
        case Put():
            model[write.key] = dict(write.item)
        case Update():
            item = {**model.get(write.key, {}), **write.set}
            for name, amount in write.add.items():
                item[name] = item.get(name, 0) + amount
            model[write.key] = {name: value for name, value in item.items() if name not in write.remove}
        case Delete():
            model.pop(write.key, None)
        case Require():
            return
    if write.key.table is not Table.RERUN and (existed or write.key in model):
        reported.setdefault(write.key.pk, []).append((f"{write.key.table}/{write.key.sk}", model.get(write.key)))
