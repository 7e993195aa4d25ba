"""Which pipelines run after which, around one of them (see `pipeline_views`)."""

from collections.abc import Container, Iterator
from typing import Final, Literal

import msgspec

from interlock.control import catalog, readiness, records
from interlock.control.catalog import Stored
from interlock.control.views import pipeline_views
from interlock.model import keys
from interlock.model.config import PipelineConfig, Upstream
from interlock.model.errors import InterlockError
from interlock.model.keys import RunKey, Table
from interlock.model.periods import parse_period
from interlock.model.run import SlaKind, Word
from interlock.ports.store import Store

MOST_NODES: Final = 150
MOST_DEPTH: Final = 3
_BREACHES: Final = frozenset({SlaKind.BREACH, SlaKind.RELATIVE_BREACH})


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A pipeline. `word` and `sla` are of its run of the date that was asked for; nothing without one.

    `known` is false for a pipeline that another names and that is not there. `hidden`: the reader may not see more of
    it than its name.
    """

    id: str
    owner: str
    known: bool
    hidden: bool = False
    schedule: str = ""
    word: Word | None = None
    sla: Literal["at-risk", "breached"] | None = None


class Edge(msgspec.Struct, frozen=True, kw_only=True):
    """`to` runs after `from`. `marker`: has the upstream completed what the run of the date waits for?"""

    from_: str = msgspec.field(name="from")
    to: str
    require: str
    marker: Literal["present", "awaited"] | None = None


class Graph(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Pipelines and what runs after what. `left_out`: how many more there are than fit."""

    nodes: list[Node]
    edges: list[Edge]
    left_out: int


def downstreams(store: Store, pipeline: str) -> list[PipelineConfig]:
    """The pipelines that run after this one, by their configs in force."""
    links = store.query(Table.CONTROL, keys.pipeline_pk(pipeline), keys.DOWNSTREAM)
    configs = (catalog.current(store, link.key.sk[len(keys.DOWNSTREAM) :]) for link in links)
    return [one for one in configs if one is not None and any(entry.pipeline == pipeline for entry in one.after)]


def around(
    store: Store, root: str, *, depth: int, date: str | None = None, visible: Container[str] | None = None
) -> Graph:
    """The pipelines up to `depth` steps before and after one of them.

    `visible`: those that the reader may see; None means all. Of another, only its name is shown where one that may be
    seen runs after it, and nothing behind it.
    """
    pipeline_views.known(store, root)
    period = None if date is None else str(parse_period(date))
    found, left_out = _reached(store, root, depth, visible)
    nodes = [
        _node(store, name, stored, period)
        if visible is None or name in visible
        else Node(id=name, owner="", known=True, hidden=True)
        for name, stored in found.items()
    ]
    configs = [stored.config for stored in found.values() if stored is not None and stored.config is not None]
    edges = [
        Edge(from_=entry.pipeline, to=config.id, require=entry.require, marker=_marker(store, config, entry, period))
        for config in configs
        for entry in config.after
        if entry.pipeline in found and (visible is None or config.id in visible)
    ]
    return Graph(nodes=nodes, edges=edges, left_out=left_out)


def _reached(
    store: Store, root: str, depth: int, visible: Container[str] | None
) -> tuple[dict[str, Stored | None], int]:
    """The names that are reached, the nearest first, and how many more there would be."""
    found: dict[str, Stored | None] = {root: catalog.stored(store, root)}
    left: set[str] = set()
    border = [root]
    for _ in range(depth):
        reached: list[str] = []
        for name in border:
            for neighbour in _neighbours(store, name, found[name], visible):
                if neighbour in found:
                    continue
                if len(found) >= MOST_NODES:
                    left.add(neighbour)
                    continue
                found[neighbour] = catalog.stored(store, neighbour)
                if visible is None or neighbour in visible:
                    reached.append(neighbour)
        border = reached
    return found, len(left)


def _neighbours(store: Store, name: str, stored: Stored | None, visible: Container[str] | None) -> Iterator[str]:
    yield from (entry.pipeline for entry in _after(stored))
    yield from (config.id for config in downstreams(store, name) if visible is None or config.id in visible)


def _after(stored: Stored | None) -> list[Upstream]:
    return list(stored.config.after) if stored is not None and stored.config is not None else []


def _node(store: Store, name: str, stored: Stored | None, date: str | None) -> Node:
    config = stored.config if stored is not None else None
    node = Node(id=name, owner=config.pipeline.owner if config is not None else "", known=stored is not None)
    if config is None or date is None:
        return node
    for schedule in config.all_schedules:
        key = RunKey(name, schedule.schedule_id, date)
        run = records.get_run(store, key)
        if run is not None:
            return msgspec.structs.replace(node, schedule=key.schedule, word=run.word, sla=_alert(store, key, run.word))
    return msgspec.structs.replace(node, schedule=config.all_schedules[0].schedule_id)


def _alert(store: Store, key: RunKey, word: Word) -> Literal["at-risk", "breached"] | None:
    state = None if word is Word.DONE else records.get_sla(store, key)
    if state is None or state.outcome is not None or not state.fired:
        return None
    return "at-risk" if _BREACHES.isdisjoint(state.fired) else "breached"


def _marker(
    store: Store, config: PipelineConfig, entry: Upstream, date: str | None
) -> Literal["present", "awaited"] | None:
    if date is None:
        return None
    key = RunKey(config.id, config.all_schedules[0].schedule_id, date)
    try:
        found = readiness.upstream_sensor(store, config, key, entry)
    except InterlockError:
        return None  # an upstream that cannot be judged for that date has no marker to show
    return "awaited" if found is None else "present"
