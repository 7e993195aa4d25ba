"""The command line as a person meets it: words, exit codes, and no colours in a pipe."""

import json
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from interlock import __version__
from interlock.cli import main as cli
from interlock.cli.main import main
from interlock.config.stored import read_stored
from interlock.config.versions import config_version
from interlock.model.config import PipelineConfig
from interlock.model.errors import InterlockError
from tests.config.test_loader import EXAMPLES, TEN_MISTAKES, valid


class Outcome:
    """What a run of the command printed and how it ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> Outcome:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    captured = capsys.readouterr()
    return Outcome(int(ended.value.code or 0), captured.out, captured.err)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pipelines").mkdir()
    return tmp_path / "pipelines"


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = run(capsys, "--version")
    assert (outcome.code, outcome.out) == (0, f"interlock {__version__}\n")


@pytest.mark.parametrize("arguments", [("--help",), ("-h",), ("validate", "--help"), ("schema", "--help")])
def test_help(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    outcome = run(capsys, *arguments)
    assert outcome.code == 0
    assert outcome.out.startswith("Usage: ")


def options(command: object, *names: str) -> Iterator[tuple[str, set[str]]]:
    """Every command that does something, with its whole name, and the options it takes."""
    if isinstance(command, TyperGroup):
        for name, inner in command.commands.items():
            yield from options(inner, *names, name)
    elif isinstance(command, TyperCommand):
        yield " ".join(names), {word for one in command.params for word in one.opts}


def test_every_command_that_answers_answers_in_json_too() -> None:
    """Left are those that run until they are stopped, and `init`, which leaves files."""
    found = dict(options(get_command(cli.app)))
    assert {"why", "sensor get", "token revoke"} <= found.keys()
    silent = {name for name, taken in found.items() if "--json" not in taken}
    assert silent == {"console", "demo", "init", "open", "serve"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "Usage: "),
        (("nonsense",), "No such command"),
        (("validate",), "Missing argument"),
        (("validate", "--nope", "."), "No such option"),
        (("validate", "gone/for/ever.yaml"), "Path 'gone/for/ever.yaml' does not exist."),
    ],
)
def test_usage_errors_exit_with_2(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str) -> None:
    outcome = run(capsys, *arguments)
    assert outcome.code == 2
    assert words in outcome.err
    assert "Traceback" not in outcome.err


def test_validate_prints_all_ten_mistakes(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    for name, text in TEN_MISTAKES.items():
        (folder / f"{name}.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    outcome = run(capsys, "validate", ".")
    assert outcome.code == 1
    lines = outcome.out.splitlines()
    assert "pipelines/retries.yaml:4 job.maxRetries: 11 is not in 0..10" in lines
    assert len(lines) == 11
    assert lines[-1] == "10 pipelines, 10 errors, 0 warnings"
    assert "\x1b" not in outcome.out


def test_validate_of_valid_configs(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    for name in ("a", "b"):
        (folder / f"{name}.yaml").write_text(valid(name))
    outcome = run(capsys, "validate", ".")
    assert (outcome.code, outcome.out) == (0, "2 pipelines, 0 errors, 0 warnings\n")


def test_the_examples_of_the_documents_can_all_be_run(capsys: pytest.CaptureFixture[str]) -> None:
    """Every system that they start jobs in, and every kind of probe, is known."""
    outcome = run(capsys, "validate", str(EXAMPLES))
    assert (outcome.code, outcome.out) == (0, "8 pipelines, 0 errors, 0 warnings\n")
    report = json.loads(run(capsys, "validate", "--json", str(EXAMPLES)).out)
    assert (report["errors"], report["warnings"]) == ([], [])


def test_warnings_alone_are_no_failure(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (folder / "a.yaml").write_text(valid("a", "sla: {deadline: 10:00}"))
    outcome = run(capsys, "validate", "pipelines/a.yaml")
    assert outcome.code == 0
    assert outcome.out.splitlines() == [
        "pipelines/a.yaml:5 sla: warning: no expectedDuration: there will be no warning before the breach",
        "1 pipeline, 0 errors, 1 warning",
    ]


def test_validate_json(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (folder / "a.yaml").write_text(valid("a", "sla: {deadline: 10:00}"))
    (folder / "b.yaml").write_text(valid("b").replace("external", "[]"))
    outcome = run(capsys, "validate", "--json", ".")
    assert outcome.code == 1
    report = json.loads(outcome.out)
    assert list(report) == ["pipelines", "errors", "warnings", "configs", "calendars", "files"]
    assert report["pipelines"] == 2
    (error,) = report["errors"]
    assert error["message"].startswith("[] is a list, not text")
    assert {**error, "message": ""} == {"file": "pipelines/b.yaml", "line": 4, "path": "job.type", "message": ""}
    assert [warning["path"] for warning in report["warnings"]] == ["sla"]


def test_validate_json_says_what_is_stored_and_of_which_files(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    """The Terraform module stores it, unless the files have changed since."""
    (folder / "a.yaml").write_text(valid("a"))
    calendars = folder.parent / "calendars"
    calendars.mkdir()
    (calendars / "days.yaml").write_text("name: days\ndays: [SAT, SUN]\ndates: ['2026-12-25']\n")
    report = json.loads(run(capsys, "validate", "--json", ".").out)
    (config,) = report["configs"]
    assert (config["id"], config["file"]) == ("a", "pipelines/a.yaml")
    assert config["version"] == config_version(json.loads(config["document"]))
    assert isinstance(read_stored(json.loads(config["document"]), {}), PipelineConfig)
    assert report["calendars"] == [
        {"name": "days", "days": ["saturday", "sunday"], "dates": ["2026-12-25"], "description": ""}
    ]
    assert report["files"] == [
        {"path": str(one.relative_to(folder.parent)), "sha256": sha256(one.read_bytes()).hexdigest()}
        for one in (calendars / "days.yaml", folder / "a.yaml")
    ]


def test_text_that_looks_like_markup_is_printed_as_it_is(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (folder / "a.yaml").write_text(valid("a", "'[red]x[/red]': 1", "':smile:': " + "y" * 300))
    outcome = run(capsys, "validate", ".")
    assert outcome.out.splitlines() == [
        "pipelines/a.yaml:5 [red]x[/red]: unknown key",
        "pipelines/a.yaml:6 :smile:: unknown key",
        "1 pipeline, 2 errors, 0 warnings",
    ]


@pytest.mark.parametrize("arguments", [("schema",), ("schema", "--json")])
def test_schema(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    outcome = run(capsys, *arguments)
    assert outcome.code == 0
    assert json.loads(outcome.out)["title"] == "Interlock pipeline"


def test_an_error_of_ours_is_a_message(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_arguments: object) -> None:
        raise InterlockError("the store is not there: create it with `interlock init`")

    monkeypatch.setattr(cli, "app", fail)
    outcome = run(capsys, "anything")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == "Error: the store is not there: create it with `interlock init`\n"


def test_the_version_needs_no_yaml_and_no_rich() -> None:
    script = (
        "import sys\n"
        "from interlock.cli.main import main\n"
        "try:\n    main(['--version'])\n"
        "except SystemExit:\n"
        "    print(sorted({'yaml', 'rich', 'holidays', 'httpx', 'interlock.config'} & set(sys.modules)))\n"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines() == [f"interlock {__version__}", "[]"]


def test_a_pool_without_a_size_is_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "init", str(tmp_path / "project")).code == 0
    file = tmp_path / "project/pipelines/orders.yaml"
    file.write_text(file.read_text().replace("job:\n", "job:\n  pool: warehouse\n"))
    outcome = run(capsys, "validate", str(tmp_path / "project"))
    assert outcome.code == 0
    assert "job.pool: warning: warehouse is not in [pools] of interlock.toml" in outcome.out
    with (tmp_path / "project/interlock.toml").open("a") as settings:
        settings.write("\n[pools]\nwarehouse = 2\n")
    assert "job.pool" not in run(capsys, "validate", str(tmp_path / "project")).out
