"""The list of targets: ours, other people's, and what is said of those that cannot be loaded."""

from pathlib import Path

import pytest

from interlock.config.loader import load_paths
from interlock.embedded.targets import abilities, make_targets
from interlock.extras import Extra
from interlock.jobs import registry
from interlock.jobs.registry import LazyRunner, Registered, load_target, make_runner, startable_types, why_unavailable
from interlock.jobs.secrets import SecretStore
from interlock.model.config import JobType
from interlock.model.errors import InterlockError, JobStartError
from interlock.ports.job_targets import TargetSettings
from interlock.ports.job_types import known_types
from interlock.ports.jobs import JobRunner, JobState, JobStop, Recovery
from tests.conformance.manual_clock import ManualClock
from tests.jobs.command.trials import request
from tests.jobs.foreign import installed

SETTINGS = TargetSettings(clock=ManualClock())
PIPELINE = """
pipeline: {id: gold}
schedule: {cron: "0 8 * * *"}
validation: {rules: [{key: rows, check: exists}]}
job: {type: %s, config: %s}
"""


@pytest.mark.parametrize("name", list(registry.BUILT_IN))
def test_every_registered_target_can_be_loaded(name: str, tmp_path: Path) -> None:
    target = load_target(name)
    assert target.config is not None
    made = target.make(TargetSettings(clock=ManualClock(), folder=tmp_path))
    port: JobRunner = made
    registry.close_runner(port)


def test_a_type_without_a_target_says_so() -> None:
    with pytest.raises(InterlockError, match="type teleport cannot be started by this installation"):
        load_target("teleport")


# ----------------------------------------------------------------------------------------------------- missing extras


@pytest.fixture
def without_package(monkeypatch: pytest.MonkeyPatch) -> None:
    needs = Registered("interlock.jobs.external:TARGET", Extra("aws", "no_such_package", "no_such_package"))
    monkeypatch.setattr(registry, "BUILT_IN", {**registry.BUILT_IN, JobType.GLUE: needs})


@pytest.mark.usefixtures("without_package")
def test_a_missing_extra_is_named_when_the_config_is_loaded(tmp_path: Path) -> None:
    file = tmp_path / "gold.yaml"
    file.write_text(PIPELINE % ("glue", "{jobName: etl}"))
    loaded = load_paths([file], abilities=abilities())
    assert loaded.configs == ()
    (problem,) = loaded.errors
    assert str(problem) == (
        f"{file}:5 job.type: jobs of type glue need the package no_such_package, which is not installed:"
        " pip install 'interlock[aws]'"
    )
    # Without an installation in mind (a simulation) the config is as good as any.
    assert len(load_paths([file]).configs) == 1


@pytest.mark.usefixtures("without_package")
def test_a_missing_extra_is_named_when_a_job_is_to_start_all_the_same() -> None:
    runner = make_runner(JobType.GLUE, SETTINGS)
    with pytest.raises(JobStartError, match=r"pip install 'interlock\[aws\]'") as caught:
        runner.start(request())
    assert caught.value.permanent


# ------------------------------------------------------------------------------------------------------ other people's


def test_a_package_adds_a_type(tmp_path: Path) -> None:
    file = tmp_path / "gold.yaml"
    file.write_text(PIPELINE % ("queue", "{queue: etl}"))
    (refused,) = load_paths([file]).errors
    assert '"queue" is not one of command, http' in refused.message
    assert "interlock.jobs" in refused.message
    with installed(tmp_path / "site", "queue = queue_target:TARGET", "command = queue_target:TARGET"):
        assert known_types() == [*JobType, "queue"]
        assert startable_types().count("command") == 1
        loaded = load_paths([file], abilities=abilities())
        assert loaded.problems == ()
        runner = make_targets(SETTINGS, SecretStore({})).runners["queue"]
        asked = request(queue="etl")
        started = runner.start(asked)
        assert started.job_id == "etl/run-1"
        assert runner.recover(asked) is Recovery.START_AGAIN
        assert runner.check(asked, started.job_id).state is JobState.SUCCEEDED
        assert runner.stop(asked, started.job_id) is JobStop.ENDED
        assert runner.output(asked, started.job_id).text == "done"
        assert runner.link(asked, started.job_id) == "https://queue.example.org/etl/run-1"


def test_a_near_miss_is_guessed(tmp_path: Path) -> None:
    file = tmp_path / "gold.yaml"
    file.write_text(PIPELINE % ("comand", "{command: x}") + "owner: nobody\n")
    found = [str(one) for one in load_paths([file]).errors]
    assert any('job.type: "comand" is not one of' in one and "did you mean command?" in one for one in found), found
    assert len(found) == 2  # with the other errors of the file, not after them


@pytest.mark.parametrize(
    ("entry", "module", "words"),
    [
        ("queue = queue_target:TARGET", "import no_such_package", "No module named 'no_such_package'"),
        ("queue = queue_target:TARGET", "TARGET = 5", "which is not a JobTarget"),
        ("queue = queue_target:OTHER", "", "has no attribute 'OTHER'"),
    ],
)
def test_a_package_that_is_broken_says_how(tmp_path: Path, entry: str, module: str, words: str) -> None:
    with installed(tmp_path / "site", entry, module=module):
        assert why_unavailable("queue") == ""
        with pytest.raises(InterlockError, match=words):
            load_target("queue")
        with pytest.raises(JobStartError, match=words):
            make_runner("queue", SETTINGS).start(request())


def test_a_runner_is_made_once_and_closed_only_if_it_was() -> None:
    made: list[str] = []

    class Runner:
        def close(self) -> None:
            made.append("closed")

        def start(self, _request: object) -> str:
            return "started"

    def make() -> JobRunner:
        made.append("made")
        return Runner()  # type: ignore[return-value]

    lazy = LazyRunner(make)
    lazy.close()
    assert made == []
    lazy.start(request())
    lazy.start(request())
    lazy.close()
    assert made == ["made", "closed"]
