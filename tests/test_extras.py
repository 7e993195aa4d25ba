"""Extras: what a plain installation leaves out is said where it is asked for, and nothing is done without it."""

import logging
import tomllib
from pathlib import Path

import pytest

from interlock import extras
from interlock.api.settings import check_packages, load_project
from interlock.cli import diagnosis
from interlock.control import catalog
from interlock.control.alerts.alert_channels import build_alerting
from interlock.decide.calendars import holidays_of
from interlock.embedded.clock import SystemClock
from interlock.embedded.service import Service, ServiceSettings
from interlock.model.errors import InterlockError, InvalidValueError
from tests.cli.test_main import run

ROOT = Path(__file__).parent.parent
PIPELINE = """\
pipeline: {id: closed-on-holidays}
schedule:
  cron: "0 5 * * *"
  exclude: {holidays: US}
sla: {deadline: "10:00", expectedDuration: 30m}
validation: {rules: [{key: orders, check: exists}]}
job: {type: external}
"""
NO_HOLIDAYS = "public holidays need the package holidays, which is not installed: pip install 'interlock[holidays]'"
NO_SLACK = "alerts to Slack need the package slack-sdk, which is not installed: pip install 'interlock[slack]'"


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A plain installation, without any extra."""
    monkeypatch.setattr(extras, "find_spec", lambda _name: None)
    holidays_of.cache_clear()
    catalog._parse.cache_clear()
    catalog._kept.clear()
    catalog._valid.clear()
    return monkeypatch


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines/closed.yaml").write_text(PIPELINE)
    (tmp_path / "interlock.toml").write_text('port = 0\n\n[[alerts]]\nchannel = "slack"\nslack_channel = "#data"\n')
    return tmp_path


def service(project: Path) -> Service:
    return Service(ServiceSettings(store=project / "interlock.db", pipelines=project / "pipelines", environment={}))


def test_every_extra_is_declared_and_all_is_all_of_them() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    own = {name: declared[name] for name in declared.keys() - {"all", "dev", "docs"}}
    assert own.keys() == {one.name for one in extras.EXTRAS}
    assert set(declared["all"]) == {package for packages in own.values() for package in packages}
    for one in extras.EXTRAS:
        assert any(package.startswith(one.package) for package in declared[one.name])
    assert extras.installed() == ("aws", "holidays", "oidc", "slack", "sql")


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("command", [("validate", "."), ("plan", "."), ("apply", ".")])
def test_holidays_without_their_package_are_an_error_of_the_line(
    capsys: pytest.CaptureFixture[str], project: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    (project / "interlock.toml").unlink()
    monkeypatch.chdir(project)
    outcome = run(capsys, *command)
    assert outcome.code == 1
    assert f"pipelines/closed.yaml:4 schedule.exclude.holidays: {NO_HOLIDAYS}" in " ".join(
        (outcome.out + outcome.err).split()
    )
    assert not (project / "interlock.db").exists()


@pytest.mark.usefixtures("bare")
def test_slack_without_its_package_is_an_error_of_the_line(
    capsys: pytest.CaptureFixture[str], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "pipelines/closed.yaml").write_text(PIPELINE.replace("  exclude: {holidays: US}\n", ""))
    monkeypatch.chdir(project)
    place = f"{project / 'interlock.toml'}:4 alerts[0].channel"
    outcome = run(capsys, "validate", ".")
    assert outcome.code == 1
    assert f"{place}: {NO_SLACK}" in " ".join((outcome.out + outcome.err).split())
    with pytest.raises(InterlockError, match="slack-sdk") as caught:
        check_packages(load_project(project / "interlock.toml", project))
    assert str(caught.value) == f"{place}: {NO_SLACK}"
    outcome = run(capsys, "serve")
    assert outcome.code == 1
    assert "pip install 'interlock[slack]'" in outcome.out + outcome.err
    assert not (project / "interlock.db").exists()


@pytest.mark.usefixtures("bare")
def test_who_builds_the_channels_hears_it_too(project: Path) -> None:
    routes = load_project(project / "interlock.toml", project).alerts
    with pytest.raises(InvalidValueError, match=r"alerts to Slack need the package slack-sdk.*SLACK_BOT_TOKEN"):
        build_alerting(routes, {}, clock=SystemClock(), client=lambda: pytest.fail("no webhook"))


def test_doctor_says_which_extras_are_there(project: Path, bare: pytest.MonkeyPatch) -> None:
    found = diagnosis.packages(project)
    assert (found.ok, found.detail) == (False, f"{project / 'interlock.toml'}:4 alerts[0].channel: {NO_SLACK}")
    (project / "interlock.toml").unlink()
    found = diagnosis.packages(project)
    assert (found.ok, found.detail) == (
        True,
        "extras installed: none; not installed: aws, holidays, oidc, slack, sql",
    )
    bare.undo()
    assert diagnosis.packages(project).detail == "extras installed: aws, holidays, oidc, slack, sql"


def test_a_package_that_is_gone_stops_the_pipeline_and_is_said(
    project: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def start() -> tuple[bool, tuple[str, ...], list[str], bool]:
        """Is it in force, its errors, the events about its config so far, does the clock wait for a tick of it?"""
        catalog._parse.cache_clear()
        catalog._kept.clear()
        catalog._valid.clear()
        holidays_of.cache_clear()
        made = service(project)
        try:
            made.start()
            found = catalog.stored(made.store, "closed-on-holidays")
            assert found is not None
            rows = made.database.read("SELECT type FROM events WHERE type LIKE 'CONFIG_%' ORDER BY at, sk")
            ticking = made.engine.calendar.next_at() is not None
            return found.config is not None, found.errors, [str(type_) for (type_,) in rows], ticking
        finally:
            made.stop()

    assert start() == (True, (), [], True)
    with monkeypatch.context() as bare, caplog.at_level(logging.ERROR):
        bare.setattr(extras, "find_spec", lambda _name: None)
        valid, errors, events, ticking = start()
        # Both the file and what is stored of it are reported, once.
        assert (valid, errors, ticking) == (False, (f"schedule.exclude.holidays: {NO_HOLIDAYS}",), False)
        assert events == ["CONFIG_INVALID", "CONFIG_INVALID"]
        assert start()[2] == events
    valid, errors, events, ticking = start()
    assert (valid, errors, ticking) == (True, (), True)
    assert events.count("CONFIG_RESTORED") == 2


def test_attempts_under_way_keep_a_version_that_needs_the_package(project: Path, bare: pytest.MonkeyPatch) -> None:
    bare.undo()
    made = service(project)
    try:
        assert made.files is not None
        made.files.apply()
        found = catalog.stored(made.store, "closed-on-holidays")
        assert found is not None
        bare.setattr(extras, "find_spec", lambda _name: None)
        holidays_of.cache_clear()
        catalog._parse.cache_clear()
        catalog._kept.clear()
        opened = catalog.opened_with(made.store, "closed-on-holidays", found.version)
        assert opened.id == "closed-on-holidays"
        assert catalog.current(made.store, "closed-on-holidays") is None
    finally:
        made.stop()
