"""What the demo says of an example that somebody changed: never that an act happened which did not."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from interlock.demo import acts, play
from interlock.demo.example import DemoError, lay_out
from interlock.demo.stage import Stage
from interlock.demo.timeline import Entry


def first_act(stage: Stage, first: datetime) -> Iterator[acts.Act]:
    stage.forward_to(first + timedelta(hours=1))
    yield acts.gating(stage, acts.hour_of(first))


def play_changed(folder: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> play.Outcome:
    """The first act alone, with a change in a pipeline."""

    def lay_out_changed(target: Path) -> None:
        lay_out(target)
        file = target / "pipelines" / "earthquake-silver.yaml"
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))

    monkeypatch.setattr(play, "lay_out", lay_out_changed)
    monkeypatch.setattr(play, "story", first_act)
    printed: list[Entry] = []
    return play.play_once(folder, printed.append)


def test_a_job_that_starts_too_early_is_not_taken_for_gating(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = play_changed(tmp_path, monkeypatch, "field: rows, value: 100", "field: rows, value: 50")
    assert not outcome.ok
    assert outcome.trouble == ""
    (act,) = outcome.acts
    assert [problem for problem in act.missing if "VALIDATION_PASSED of earthquake-silver" in problem] == [
        "VALIDATION_PASSED of earthquake-silver for 2026-03-02T10 happened too early"
    ]


def test_an_event_that_never_comes_ends_it_with_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(play, "_PATIENCE", 0.5)
    outcome = play_changed(tmp_path, monkeypatch, "value: landed}", "value: arrived}")
    assert not outcome.ok
    assert outcome.acts == []
    assert outcome.trouble.startswith("TRIGGER_STARTED of earthquake-silver for 2026-03-02T10 did not happen")
    assert str(tmp_path) in outcome.trouble


def test_pipelines_that_are_invalid_are_not_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DemoError, match=r"earthquake-silver\.yaml.*maxRetries"):
        play_changed(tmp_path, monkeypatch, "maxRetries: 2", "maxRetries: 99")
