"""`interlock plan`: what would change, and when; and which store a command means."""

import json
import re
from pathlib import Path

import pytest

from interlock.cli.store_access import find_target
from tests.cli.test_main import run
from tests.cli.test_simulate import PIPELINE

SECRET = """
pipeline: {id: api}
validation: {rules: [{key: a, check: exists}]}
sla: {deadline: "10:00", expectedDuration: 30m}
job: {type: http, config: {url: "https://example.com/", auth: {type: bearer, token: first}}}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("INTERLOCK_STORE", raising=False)
    monkeypatch.delenv("INTERLOCK_URL", raising=False)
    for name in ("pipelines", "calendars"):
        (tmp_path / name).mkdir()
    (tmp_path / "pipelines/gold.yaml").write_text(PIPELINE)
    (tmp_path / "calendars/closed.yaml").write_text('{name: closed, dates: ["2026-12-25"]}')
    return tmp_path


def test_without_a_store_everything_is_new_and_none_is_made(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    outcome = run(capsys, "plan", ".")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert lines[0].startswith("no store at sqlite:///")
    assert lines[1:3] == ["+ calendar closed  new", "+ gold  new"]
    assert lines[3].startswith("    next start:   20")
    assert lines[3].split()[3] == "08:00Z,"
    assert [line.split()[1:4:2] for line in lines[4:6]] == [["warning:", "09:30Z"], ["breach:", "10:00Z"]]
    assert lines[-1] == "1 new, 0 changed, 0 unchanged"
    assert list(project.glob("interlock.db*")) == []


def test_what_changed_is_named_key_by_key(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    run(capsys, "apply", ".")
    assert "0 new, 0 changed, 1 unchanged" in run(capsys, "plan", ".").out
    (project / "pipelines/gold.yaml").write_text(
        PIPELINE.replace("1000", "2000").replace(", expectedDuration: 30m", "")
    )
    (project / "pipelines/silver.yaml").write_text(PIPELINE.replace("gold", "silver"))
    outcome = run(capsys, "plan", ".")
    lines = outcome.out.splitlines()
    assert "~ gold  changed" in lines
    assert "    validation.rules[0].value: 1000 -> 2000" in lines
    assert '    sla.expectedDuration: removed "30m"' in lines
    assert "+ silver  new" in lines
    assert "no expectedDuration" in outcome.err


def test_what_is_not_in_the_files_would_be_removed(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    (project / "pipelines/old.yaml").write_text(PIPELINE.replace("gold", "old"))
    run(capsys, "apply", ".")
    (project / "pipelines/old.yaml").unlink()
    outcome = run(capsys, "plan", ".")
    assert "- old  would be removed with --prune" in outcome.out.splitlines()
    assert outcome.out.splitlines()[-1] == "0 new, 0 changed, 1 unchanged, 1 not in these files"


def test_a_changed_secret_is_a_change_that_is_not_shown(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    (project / "pipelines/api.yaml").write_text(SECRET)
    run(capsys, "apply", ".")
    (project / "pipelines/api.yaml").write_text(SECRET.replace("first", "second"))
    outcome = run(capsys, "plan", ".")
    assert "~ api  changed\n    job.config.auth.token: changed, and not shown\n" in outcome.out
    assert "second" not in outcome.out + outcome.err


def test_json(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    run(capsys, "apply", ".")
    (project / "pipelines/gold.yaml").write_text(PIPELINE.replace("1000", "2000"))
    report = json.loads(run(capsys, "plan", ".", "--json").out)
    (gold,) = report["pipelines"]
    assert (gold["id"], gold["kind"]) == ("gold", "changed")
    assert gold["changes"] == [{"path": "validation.rules[0].value", "old": 1000, "new": 2000}]
    assert gold["next"][0]["startAt"].endswith("T08:00:00Z")
    assert gold["next"][0]["breachAt"].endswith("T10:00:00Z")


def test_times_are_in_the_zone_of_the_schedule_and_in_utc(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    zoned = PIPELINE.replace('cron: "0 8 * * *"', 'cron: "0 8 * * *", timezone: Asia/Tokyo')
    (project / "pipelines/gold.yaml").write_text(zoned)
    start = next(line for line in run(capsys, "plan", ".").out.splitlines() if "next start" in line)
    assert " 08:00 JST (" in start
    assert " 23:00Z), for " in start


def test_errors_of_configs_come_first(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    (project / "pipelines/bad.yaml").write_text(PIPELINE.replace("gold", "bad").replace("gte", "gtee"))
    outcome = run(capsys, "plan", ".")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith("pipelines/bad.yaml:5 validation.rules[0].check: ")
    assert outcome.err.splitlines()[-1] == "1 error: nothing was done"


@pytest.mark.parametrize("command", ["init", "plan", "apply", "why", "simulate", "stpa"])
def test_every_command_has_help_with_an_example(capsys: pytest.CaptureFixture[str], command: str) -> None:
    outcome = run(capsys, command, "--help")
    assert outcome.code == 0
    assert f"Example: interlock {command}" in outcome.out


# ----------------------------------------------------------------------------------------- which store is meant


def test_the_first_that_says_something_decides(project: Path) -> None:
    below = project / "deep/er"
    below.mkdir(parents=True)
    assert str(find_target(folder=below, environment={})) == f"sqlite:///{below}/interlock.db"
    (project / "interlock.toml").write_text('store = "sqlite:///state/il.db"\n')
    assert find_target(folder=below, environment={}).path == project / "state/il.db"
    environment = {"INTERLOCK_STORE": "sqlite:////var/il.db"}
    assert find_target(folder=below, environment=environment).path == Path("/var/il.db")
    assert find_target(folder=below, environment={"INTERLOCK_URL": "http://h:1/"}).url == "http://h:1"
    assert find_target("sqlite:///x.db", folder=below, environment=environment).path == below / "x.db"
    assert find_target(None, "https://h", folder=below, environment=environment).url == "https://h"


@pytest.mark.parametrize(
    ("text", "words"), [("store = 5\n", "store is 5"), ("store =\n", "cannot be read"), ("\xff", "cannot be read")]
)
def test_a_broken_settings_file_is_told(
    capsys: pytest.CaptureFixture[str], project: Path, text: str, words: str
) -> None:
    (project / "interlock.toml").write_bytes(text.encode("latin-1"))
    outcome = run(capsys, "plan", ".")
    assert outcome.code == 1
    assert "interlock.toml" in outcome.err
    assert words in outcome.err


def test_a_file_that_is_no_store_is_refused(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    (project / "other.db").write_text("this is not a database at all, only text" * 50)
    outcome = run(capsys, "plan", ".", "--store", "sqlite:///other.db")
    assert outcome.code == 1
    assert "not a SQLite database" in outcome.err


ARCHETYPE = """\
schedule: {cron: "0 8 * * *"}
sla: {deadline: "10:00", expectedDuration: 30m}
job:
  type: http
  config: {url: "https://example.com/", auth: {type: bearer, token: hunter2}}
  maxRetries: 3
"""
USER = """\
pipeline: {id: api}
archetype: nightly
validation: {rules: [{key: a, check: exists}]}
job: {maxRetries: 1}
"""


@pytest.fixture
def merged(project: Path) -> Path:
    (project / "archetypes").mkdir()
    (project / "archetypes/nightly.yaml").write_text(ARCHETYPE)
    (project / "pipelines/api.yaml").write_text(USER)
    return project


def config_lines(out: str) -> list[str]:
    lines = [line.strip() for line in out.splitlines()]
    begin = lines.index("config, merged with archetypes/nightly.yaml:")
    return lines[begin + 1 : begin + 13]


@pytest.mark.usefixtures("merged")
def test_a_merged_config_is_shown_with_where_each_value_came_from(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "plan", ".").out
    assert [line.split("  ")[0] for line in config_lines(out)] == [
        'pipeline.id: "api"',
        'validation.rules: [{"key":"a","check":"exists"}]',
        'job.type: "http"',
        'job.config.url: "https://example.com/"',
        'job.config.auth.type: "bearer"',
        'job.config.auth.token: "***"',
        "job.maxRetries: 1",
        'schedule.cron: "0 8 * * *"',
        'sla.deadline: "10:00"',
        'sla.expectedDuration: "30m"',
        'archetype: "nightly"',
        "+ gold",
    ]
    places = {line.split("  ")[0]: line.rpartition("  ")[2] for line in config_lines(out)}
    assert places['pipeline.id: "api"'] == "pipelines/api.yaml:1"
    assert places['job.type: "http"'] == "archetypes/nightly.yaml:4"
    assert places["job.maxRetries: 1"] == "pipelines/api.yaml:4, in place of archetypes/nightly.yaml:6"
    assert "hunter2" not in out


def test_a_merged_config_that_stays_as_it_is_is_shown_when_its_file_is_named(
    capsys: pytest.CaptureFixture[str], merged: Path
) -> None:
    run(capsys, "apply", ".")
    assert "merged with" not in run(capsys, "plan", ".").out
    assert config_lines(run(capsys, "plan", "pipelines/api.yaml").out)
    (merged / "archetypes/nightly.yaml").write_text(ARCHETYPE.replace("30m", "45m"))
    changed = run(capsys, "plan", ".").out
    assert '    sla.expectedDuration: "30m" -> "45m"' in changed.splitlines()
    assert config_lines(changed)


@pytest.mark.usefixtures("merged")
def test_a_merged_config_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    api, gold = json.loads(run(capsys, "plan", ".", "--json").out)["pipelines"]
    assert api["archetype"] == "archetypes/nightly.yaml"
    retries = next(one for one in api["config"] if one["path"] == "job.maxRetries")
    assert retries == {
        "path": "job.maxRetries",
        "value": 1,
        "file": "pipelines/api.yaml",
        "line": 4,
        "over": "archetypes/nightly.yaml:6",
    }
    assert "config" not in gold


def test_errors_of_an_archetype_end_a_plan_with_their_own_lines(
    capsys: pytest.CaptureFixture[str], merged: Path
) -> None:
    (merged / "archetypes/nightly.yaml").write_text(ARCHETYPE.replace("maxRetries: 3", "maxRetires: 3"))
    outcome = run(capsys, "plan", ".")
    assert outcome.code == 1
    assert "archetypes/nightly.yaml:6 job.maxRetires: unknown key" in outcome.err


def test_the_archetype_of_the_guide_is_merged_as_it_says(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[2] / "docs/guide/archetypes.md").read_text()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INTERLOCK_STORE", "sqlite:///none.db")
    for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL):
        file = tmp_path / block.splitlines()[0].removeprefix("# ")
        file.parent.mkdir()
        file.write_text(block)
    shown = run(capsys, "plan", "pipelines/orders-nightly.yaml").out
    printed = page.split("config, merged with")[1].partition("```")[0]
    expected = [line.split() for line in printed.splitlines()[1:] if line.strip() and "..." not in line]
    assert len(expected) == 4
    assert all(words in [line.split() for line in shown.splitlines()] for words in expected)
