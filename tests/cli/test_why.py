"""`interlock why`, from a store to the text that is pasted into a chat."""

import json
from pathlib import Path
from typing import Any

import pytest

from interlock.cli.output import plain_console
from interlock.cli.store_access import find_target, reading, writing
from interlock.cli.why import print_explanation
from interlock.control.attempts import opening
from interlock.control.records import control_key
from interlock.control.views.explain import explain
from interlock.control.writing import write_sensor
from interlock.decide.why import Explanation
from interlock.model.errors import InvalidValueError, UnknownPipelineError
from interlock.model.keys import RunKey, Table
from interlock.model.periods import day_period
from interlock.ports.store import Put, Record
from interlock.simulation.scenario import inline_scenario
from interlock.simulation.world import World
from tests.cli.test_main import run

GOLD: dict[str, Any] = {
    "pipeline": {"id": "gold"},
    "schedule": {"cron": "0 8 * * *", "timezone": "America/New_York", "exclude": {"weekends": True}},
    "sla": {"deadline": "10:00", "expectedDuration": "30m"},
    "validation": {
        "rules": [
            {"key": "up", "check": "equals", "field": "status", "value": "ready"},
            {"key": "row-count", "check": "gte", "field": "count", "value": 1000},
        ]
    },
    "job": {"type": "glue", "config": {"jobName": "x"}, "maxRetries": 1},
}
FEED: dict[str, Any] = {
    "pipeline": {"id": "feed"},
    "schedule": {"trigger": {"key": "up", "check": "equals", "field": "status", "value": "ready", "deadline": "14:00"}},
    "validation": {"rules": [{"key": "a", "check": "exists"}]},
    "job": {"type": "external"},
}
READY = {"at": "+10m", "sensor": "gold/up", "data": {"status": "ready"}}
ENOUGH = {"at": "+20m", "sensor": "gold/row-count", "data": {"count": 5000}}
FEW = {"at": "+20m", "sensor": "gold/row-count", "data": {"count": 5}}


def asked(
    until: str,
    *steps: dict[str, Any],
    pipelines: tuple[dict[str, Any], ...] = (GOLD,),
    pipeline: str = "gold",
    jobs: dict[str, Any] | None = None,
    **which: str,
) -> Explanation:
    """What is said at that instant of Monday, 2 March 2026; the controller started at 07:55 in New York."""
    scenario = inline_scenario(
        start="2026-03-02T12:55:00Z", until=until, pipelines=list(pipelines), steps=list(steps), jobs=jobs or {}
    )
    world = World(scenario)
    world.play()
    found = explain(world.engine.store, pipeline, world.clock.now(), **which)
    world.database.close()
    return found


def printed(capsys: pytest.CaptureFixture[str], found: Explanation) -> list[str]:
    print_explanation(plain_console(), found)
    return capsys.readouterr().out.splitlines()


def test_a_held_run_pastes_cleanly(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, asked("2026-03-02T14:40:00Z", READY, FEW))
    assert "\n".join(lines) == (
        """\
gold for 2026-03-02 was held: its window closed 09:00 EST (40m ago); 1 of 2 rules pass; row-count:
count is 5, needs >= 1000
(as of 2026-03-02 14:40Z, schedule cron, times in America/New_York)

Opened
  - 08:00 EST (1h40m ago) by cron 0 8 * * * at 2026-03-02 08:00 America/New_York

Calendar
  ✓ 2026-03-02 is not excluded

Rules (as they are now)
  ✓ up status equals ready: status is "ready"; received 08:05 EST (1h35m ago)
  ✗ row-count count gte 1000: count is 5, needs >= 1000; received 08:15 EST (1h25m ago)

Attempts
  ✗ 1 (first) opened 08:00 EST; evaluation window closed 09:00 EST: 1 of 2 rules pass; row-count:
    count is 5, needs >= 1000

SLA
  ✗ 09:30 EST (10m ago): SLA warning was given

Next
  - 10:00 EST (in 20m): SLA breach, unless it is done by then
  - 2026-03-03 08:00 EST (in 22h20m): the run of 2026-03-03 opens
  - until 2026-03-03 09:00 EST (in 23h20m): a sensor write that makes the rules pass re-opens it
    (without a period of its own only until 2026-03-03 00:00 EST)

What to do: Ask whoever writes row-count: it needs count >= 1000. Such a write re-opens it by
  itself."""
    )


def test_a_failed_run_has_its_attempts_and_a_command_that_can_be_pasted(capsys: pytest.CaptureFixture[str]) -> None:
    fails = {"gold": [{"after": "5m", "result": "fail", "category": "TRANSIENT", "error": "lost executor " * 9}]}
    lines = printed(capsys, asked("2026-03-02T15:30:00Z", READY, ENOUGH, jobs=fails))
    assert lines[0].startswith("gold for 2026-03-02 failed after 2 attempts 08:25 EST")
    assert max(map(len, lines)) <= 100
    assert sum(line.startswith("  ✗ ") for line in lines) == 2
    assert lines[-1].endswith("`interlock rerun gold --date 2026-03-02`.")


@pytest.mark.parametrize(
    ("until", "date", "state"),
    [
        ("2026-03-02T12:58:00Z", "2026-03-02", "not opened"),
        ("2026-03-02T13:10:00Z", "2026-03-02", "waiting"),
        ("2026-03-06T15:00:00Z", "2026-03-06", "held"),
        ("2026-03-07T15:00:00Z", "2026-03-07", "excluded"),
        ("2026-03-09T11:00:00Z", "2026-03-06", "held"),
    ],
)
def test_without_a_date_it_is_the_latest_run_or_what_is_due(until: str, date: str, state: str) -> None:
    found = asked(until)
    assert (found.date, found.state) == (date, state)


def test_a_trigger_that_has_not_come_and_one_that_never_came() -> None:
    early = asked("2026-03-02T13:26:00Z", pipelines=(FEED,), pipeline="feed")
    assert early.verdict == "feed for 2026-03-02 has not run: no write of up for 2026-03-02 has opened it"
    late = asked("2026-03-02T14:26:00Z", pipelines=(FEED,), pipeline="feed")
    assert (late.state, late.date) == ("held", "2026-03-02")


def test_a_cascade_that_is_half_way_there() -> None:
    down = {
        "pipeline": {"id": "down"},
        "after": [{"pipeline": "gold"}, {"pipeline": "feed"}],
        "validation": {"rules": [{"key": "upstream:gold", "check": "exists"}]},
        "job": {"type": "external"},
    }
    found = asked("2026-03-02T13:50:00Z", READY, ENOUGH, pipelines=(GOLD, FEED, down), pipeline="down")
    assert found.verdict == "down for 2026-03-02 has not run: it waits for feed 2026-03-02"
    assert found.advice == "Look at the upstream: `interlock why feed --date 2026-03-02`."


def test_a_date_and_a_schedule_can_be_named() -> None:
    two = {key: value for key, value in GOLD.items() if key != "schedule"}
    two["schedules"] = [{"id": "am", "cron": "0 13 * * *"}, {"id": "pm", "cron": "30 13 * * *"}]
    found = asked("2026-03-02T13:40:00Z", pipelines=(two,), date="2026-03-02", schedule="pm")
    assert (found.schedule, found.state) == ("pm", "waiting")
    with pytest.raises(InvalidValueError, match="has no schedule 'xx': it has am, pm"):
        asked("2026-03-02T13:40:00Z", pipelines=(two,), schedule="xx")


def test_an_unknown_pipeline_has_the_nearest_names() -> None:
    with pytest.raises(UnknownPipelineError, match="did you mean gold"):
        asked("2026-03-02T13:40:00Z", pipeline="golf")


def test_a_refused_rerun_is_among_what_also_happened() -> None:
    again = {"at": "+40m", "rerun": "gold", "date": "2026-03-02"}
    found = asked("2026-03-02T14:30:00Z", READY, ENOUGH, again)
    also = next(section for section in found.sections if section.title == "Also")
    assert "RERUN_REJECTED" in also.lines[0].text
    assert found.state == "done"


def test_a_dry_run_says_what_would_have_happened() -> None:
    wrote = [
        {"at": f"+{at}m", "sensor": f"feed/{key}", "data": {"status": "ready"}} for at, key in ((5, "up"), (6, "a"))
    ]
    found = asked("2026-03-02T13:30:00Z", *wrote, pipelines=({**FEED, "dryRun": True},), pipeline="feed")
    assert found.state == "dry run"
    assert "its job would have been started 13:01Z (29m ago)" in found.verdict


# ------------------------------------------------------------------------------------------------------ the command


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A store with one pipeline, whose run of today waits for a row count."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines/gold.json").write_text(json.dumps({**GOLD, "schedule": FEED["schedule"]}))
    assert run(capsys, "apply", ".").code == 0
    with writing(find_target()) as control:
        day = control.now().date()
        key = RunKey("gold", "stream", str(day_period(day)))
        write_sensor(control, "gold", "up", {"status": "ready"})
        opening.open_first(control, opening.Start(key=key, opened_by="sensor up"))
    return tmp_path / "interlock.db"


def test_the_command_reads_the_store(capsys: pytest.CaptureFixture[str], store: Path) -> None:
    outcome = run(capsys, "why", "gold")
    assert outcome.code == 0
    assert "is waiting: 1 of 2 rules pass; no sensor row-count" in outcome.out.replace("\n", " ")
    assert "\x1b" not in outcome.out
    assert outcome.out == run(capsys, "why", "gold", "--store", "sqlite:///interlock.db").out


def test_json_is_the_explanation(capsys: pytest.CaptureFixture[str], store: Path) -> None:
    report = json.loads(run(capsys, "why", "gold", "--json").out)
    assert report["state"] == "waiting"
    assert report["advice"].startswith("Nobody has written row-count")
    assert {"title": "Opened", "lines": report["sections"][0]["lines"]} == report["sections"][0]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("why", "gould"), 1, "there is no pipeline 'gould'; did you mean gold?"),
        (("why", "gold", "--schedule", "pm"), 1, "has no schedule 'pm': it has stream"),
        (("why", "gold", "--date", "yesterday"), 2, "is not a period"),
        (("why", "gold", "--store", "sqlite:///none.db"), 1, "no store at"),
        (("why", "gold", "--store", "mysql://x"), 2, "is not a store"),
        (("why", "gold", "--store", "sqlite:///a.db", "--url", "http://x"), 2, "not both"),
        (("why",), 2, "Missing argument"),
    ],
)
def test_errors_say_what_to_do(
    capsys: pytest.CaptureFixture[str], store: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    outcome = run(capsys, *arguments)
    assert (outcome.code, outcome.out) == (code, "")
    assert words in outcome.err.replace("\n", " ")
    assert not (store.parent / "none.db").exists()


def test_an_invalid_stored_config_is_explained(capsys: pytest.CaptureFixture[str], store: Path) -> None:
    with writing(find_target()) as control:
        control.store.commit(
            [Put(control_key("PIPELINE#broken", "CONFIG"), {"document": {"pipeline": {"id": "broken"}}})]
        )
    outcome = run(capsys, "why", "broken")
    assert outcome.out.startswith("broken is not run: its stored config is invalid\n")
    assert "✗ validation: is missing" in outcome.out


def test_reading_does_not_change_the_store(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def items() -> list[Record]:
        with reading(find_target()) as reader:
            return reader.store.query(Table.CONTROL, "PIPELINE#gold")

    before = items()
    run(capsys, "why", "gold")
    assert items() == before
    assert len(before) > 3
