"""Which pipelines run after which, around one of them, and how their runs of a date stand."""

import pytest

from interlock.config.stored import read_stored
from interlock.control import catalog
from interlock.control.views import graph
from interlock.model.config import PipelineConfig
from interlock.model.errors import InvalidValueError, UnknownPipelineError
from interlock.model.run import Word
from tests.control.played import pipeline, played, ready


def test_a_graph_is_walked_both_ways_with_markers() -> None:
    triggered = {"trigger": {"key": "never", "check": "exists"}}
    configs = [
        pipeline("a"),
        pipeline("b", schedule=triggered, after=[{"pipeline": "a"}]),
        pipeline("c", schedule=triggered, after=[{"pipeline": "b"}, {"pipeline": "gone"}]),
    ]
    world = played(configs, "2026-03-02T08:30:00Z", steps=[ready("2026-03-02T08:10:00Z")])
    store = world.engine.store
    near = graph.around(store, "b", depth=1, date="2026-03-02")
    assert {one.id: (one.word, one.known) for one in near.nodes} == {
        "a": (Word.DONE, True),
        "b": (Word.WAITING, True),
        "c": (None, True),
    }
    assert {(one.from_, one.to, one.marker) for one in near.edges} == {("a", "b", "present"), ("b", "c", "awaited")}
    far = graph.around(store, "a", depth=3)
    assert [(one.id, one.known) for one in far.nodes] == [("a", True), ("b", True), ("c", True), ("gone", False)]
    assert all(one.marker is None for one in far.edges)
    with pytest.raises(UnknownPipelineError):
        graph.around(store, "none", depth=1)
    with pytest.raises(InvalidValueError):
        graph.around(store, "a", depth=1, date="someday")


def test_a_graph_that_is_too_large_says_how_many_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "MOST_NODES", 3)
    triggered = {"trigger": {"key": "never", "check": "exists"}}
    below = [pipeline(f"b{index}", schedule=triggered, after=[{"pipeline": "a"}]) for index in range(5)]
    world = played([pipeline("a"), *below], "2026-03-02T07:30:00Z")
    found = graph.around(world.engine.store, "a", depth=1)
    assert (len(found.nodes), found.left_out) == (3, 3)


def test_only_those_that_name_a_pipeline_now_run_after_it() -> None:
    triggered = {"trigger": {"key": "never", "check": "exists"}}
    configs = [pipeline("a"), *(pipeline(name, schedule=triggered, after=[{"pipeline": "a"}]) for name in "bcd")]
    control = played(configs, "2026-03-02T07:30:00Z").engine.control
    assert [one.id for one in graph.downstreams(control.store, "a")] == ["b", "c", "d"]
    catalog.delete_config(control, "b")
    document = pipeline("c", schedule=triggered)
    changed = read_stored(document, {})
    assert isinstance(changed, PipelineConfig)
    catalog.apply_config(control, changed, document)
    assert [one.id for one in graph.downstreams(control.store, "a")] == ["d"], "a link is a hint, and is checked"


def test_a_node_says_how_its_run_of_the_date_and_its_sla_stand() -> None:
    sla = {"deadline": "09:00", "expectedDuration": "30m"}
    configs = [pipeline(name, sla=sla, schedule={"cron": "0 8 * * *", "evaluation": {"window": "3h"}}) for name in "ab"]
    steps = [ready("2026-03-02T08:50:00Z", "b")]
    jobs = {"b": [{"after": "5m", "result": "success"}]}

    def node(name: str, until: str) -> tuple[Word | None, str | None]:
        world = played(configs, until, steps=steps, jobs=jobs)
        (one,) = graph.around(world.engine.store, name, depth=0, date="2026-03-02").nodes
        return one.word, one.sla

    assert node("a", "2026-03-02T08:20:00Z") == (Word.WAITING, None)
    assert node("a", "2026-03-02T08:40:00Z") == (Word.WAITING, "at-risk")
    assert node("a", "2026-03-02T09:10:00Z") == (Word.WAITING, "breached")
    assert node("b", "2026-03-02T09:10:00Z") == (Word.DONE, None)


def test_a_node_without_a_run_names_its_first_schedule_and_one_without_a_date_names_none() -> None:
    world = played([pipeline("a")], "2026-03-02T07:30:00Z")
    (dated,) = graph.around(world.engine.store, "a", depth=0, date="2026-03-02").nodes
    assert (dated.schedule, dated.word, dated.owner) == ("cron", None, "owner of a")
    (undated,) = graph.around(world.engine.store, "a", depth=0).nodes
    assert (undated.schedule, undated.owner) == ("", "owner of a")


def test_the_depth_is_counted_in_steps() -> None:
    triggered = {"trigger": {"key": "never", "check": "exists"}}
    chain = [pipeline("a")]
    chain += [pipeline(name, schedule=triggered, after=[{"pipeline": chr(ord(name) - 1)}]) for name in "bcd"]
    world = played(chain, "2026-03-02T07:30:00Z")
    reached = [[one.id for one in graph.around(world.engine.store, "a", depth=depth).nodes] for depth in range(4)]
    assert reached == [["a"], ["a", "b"], ["a", "b", "c"], ["a", "b", "c", "d"]]


def test_a_reader_sees_no_more_than_the_name_of_what_he_may_not_see() -> None:
    triggered = {"trigger": {"key": "never", "check": "exists"}}
    configs = [
        pipeline("secret"),
        pipeline("a", after=[{"pipeline": "secret"}], schedule=triggered),
        pipeline("b", after=[{"pipeline": "a"}], schedule=triggered),
        pipeline("hidden", after=[{"pipeline": "a"}, {"pipeline": "b"}], schedule=triggered),
        pipeline("further", schedule=triggered),
        pipeline("source", schedule=triggered),
    ]
    configs[0]["after"] = [{"pipeline": "source"}]
    world = played(configs, "2026-03-02T07:30:00Z")
    store = world.engine.store
    seen = graph.around(store, "a", depth=3, date="2026-03-02", visible={"a", "b", "source"})
    assert {one.id: (one.owner, one.known, one.hidden) for one in seen.nodes} == {
        "a": ("owner of a", True, False),
        "b": ("owner of b", True, False),
        "secret": ("", True, True),
    }, "what runs after it is not even named, nor what is behind it"
    assert {(one.from_, one.to, one.require) for one in seen.edges} == {
        ("secret", "a", "same-period"),
        ("a", "b", "same-period"),
    }
    whole = graph.around(store, "a", depth=3)
    assert {one.id for one in whole.nodes} == {"a", "b", "secret", "hidden", "source"}


def test_the_run_of_a_node_is_that_of_the_schedule_which_ran() -> None:
    config = pipeline("a", schedules=[{"id": "x", "cron": "0 20 * * *"}, {"id": "y", "cron": "0 8 * * *"}])
    del config["schedule"]
    world = played([config], "2026-03-02T08:30:00Z")
    (node,) = graph.around(world.engine.store, "a", depth=0, date="2026-03-02").nodes
    assert (node.schedule, node.word) == ("y", Word.WAITING)
