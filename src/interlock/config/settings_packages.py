"""What `interlock.toml` asks for and is not installed: which key, on which line, and what to install."""

from collections.abc import Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any

from interlock.config.alert_routes import ChannelKind
from interlock.config.literals import line_of
from interlock.config.problems import Path, Problem, format_path
from interlock.extras import SLACK


def find_missing_packages(file: FilePath, text: str, settings: Mapping[str, Any]) -> Iterator[Problem]:
    """Of the settings of a file, valid or not: an alert that nobody can send is an error before the first is due."""
    missing = SLACK.why_missing("alerts to Slack")
    alerts = settings.get("alerts")
    if not missing or not isinstance(alerts, list):
        return
    for index, route in enumerate(alerts):
        if isinstance(route, Mapping) and route.get("channel") == ChannelKind.SLACK:
            path: Path = ("alerts", index, "channel")
            yield Problem(str(file), line_of(text, settings, path), format_path(path), missing)
