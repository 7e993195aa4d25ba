"""What the documentation shows is what the program reads and writes."""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec
import pytest
import yaml

from interlock.cli.init import PROJECT
from interlock.config.documents import Document, read_document
from interlock.config.stored import read_stored
from interlock.control import event_sink, router
from interlock.control.alerts import alert_dispatcher
from interlock.model.config import Calendar, PipelineConfig
from interlock.model.config_descriptions import DESCRIPTIONS
from interlock.model.events import EventType
from interlock.model.job_configs import JOB_CONFIGS
from interlock.model.probe_configs import PROBE_CONFIGS
from interlock.model.run import RunStatus
from interlock.ports.timers import TimerKind

DOCS: Final = Path(__file__).parent.parent / "docs"
PAGES: Final = sorted(DOCS.rglob("*.md"))
GUIDE: Final = "\n".join(page.read_text() for page in sorted((DOCS / "guide").rglob("*.md")))
BLOCK: Final = re.compile(r"^( *)```(\w+)\n(.*?)^\1```", re.DOTALL | re.MULTILINE)
CALENDARS: Final = {name: Calendar(name=name) for name in ("us-federal", "month-end", "closed-days")}


def blocks(language: str) -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for number, found in enumerate(BLOCK.finditer(page.read_text())):
            if found[2] == language:
                yield f"{page.relative_to(DOCS)}[{number}]", found[3]


def whole_pipelines() -> Iterator[tuple[str, str]]:
    for name, text in blocks("yaml"):
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError:
            continue
        if isinstance(value, dict) and {"pipeline", "job"} <= value.keys() and "archetype" not in value:
            yield name, text


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in whole_pipelines()])
def test_every_whole_pipeline_is_valid(text: str) -> None:
    document = read_document("page.yaml", text.encode())
    assert isinstance(document, Document), document
    found = read_stored(document.value, CALENDARS)
    assert isinstance(found, PipelineConfig), [str(one) for one in found]


def test_every_key_of_a_config_is_in_a_guide() -> None:
    wanted = {key for keys in DESCRIPTIONS.values() for key in keys} | {"exclusions", "mode"}
    structs = [*JOB_CONFIGS.values(), *PROBE_CONFIGS.values()]
    wanted |= {field.encode_name for struct in structs for field in msgspec.structs.fields(struct)}
    missing = {key for key in wanted if not re.search(rf"\b{re.escape(key)}\b", GUIDE)}
    assert missing == set()


def test_the_first_pipeline_is_the_one_that_init_writes() -> None:
    assert f"```yaml\n{PROJECT['pipelines/orders.yaml']}```" in (DOCS / "guide" / "concepts.md").read_text()


def test_settings_are_toml() -> None:
    for _, text in blocks("toml"):
        tomllib.loads(text)


def test_the_unit_can_be_installed() -> None:
    (unit,) = (text for _, text in blocks("ini"))
    lines = unit.splitlines()
    assert [line for line in lines if line.startswith("[")] == ["[Unit]", "[Service]", "[Install]"]
    for key in ("User", "EnvironmentFile", "StateDirectory", "ExecStart", "KillMode", "WantedBy"):
        assert any(line.startswith(f"{key}=") for line in lines), key


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is missing")
def test_systemd_has_no_complaint_about_the_unit(tmp_path: Path) -> None:
    (unit,) = (text for _, text in blocks("ini"))
    file = tmp_path / "interlock.service"
    file.write_text(unit.replace("/opt/interlock/.venv/bin/interlock", sys.executable))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(file)], capture_output=True, text=True, check=False, timeout=60
    )
    assert [line for line in done.stderr.splitlines() if "interlock" in line] == []


def test_diagrams_load_nothing_and_are_used() -> None:
    used = "\n".join(page.read_text() for page in PAGES)
    for diagram in (DOCS / "diagrams").iterdir():
        text = diagram.read_text()
        assert "<title" in text
        assert set(re.findall(r"https?://[^\"' ]+", text)) == {"http://www.w3.org/2000/svg"}
        assert f"diagrams/{diagram.name}" in used


def test_event_names_in_the_pages_exist() -> None:
    ours = {
        name
        for page in PAGES
        for name in re.findall(r"`([A-Z]+(?:_[A-Z]+)+)`", page.read_text())
        if re.match(r"(SLA|JOB|POST_RUN|DRY_RUN|CONFIG|PIPELINE|RERUN|TRIGGER|VALIDATION|WATCHDOG|RETRY|SENSOR)_", name)
    }
    statuses = {"JOB_POLL_EXHAUSTED"}
    assert ours - set(EventType) - statuses == set()


def test_the_page_of_the_stream_names_every_change_handler_and_every_timer() -> None:
    rows = [line for line in (DOCS / "stream.md").read_text().splitlines() if line.startswith("| ")]
    for prefix, handler in router._ROUTES:
        if handler.__name__ != "<lambda>":  # a change from which nothing follows
            assert any(f"`{prefix}" in row and f"`{handler.__name__}`" in row for row in rows), handler.__name__
    others: tuple[Callable[..., None], ...] = (
        router.job_logged, router.route, event_sink.handle, alert_dispatcher.handle,
    )  # fmt: skip
    for other in others:
        named = {other.__name__, f"{other.__module__.rpartition('.')[2]}.{other.__name__}"}
        assert any(f"`{name}`" in row for name in named for row in rows), named
    for kind in TimerKind:
        assert any(row.startswith(f"| timer `{kind}`") for row in rows), kind
    for status in RunStatus:
        assert any(row.startswith("| `TRIGGER#") and status in row for row in rows), status
