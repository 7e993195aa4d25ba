"""What a function imports: the modules of the project by reading them, and the packages that those name.

Also imports inside functions count (targets and SDKs are loaded when they are first needed), except what is left out
below with its reason. Imports for type checkers alone do not.
"""

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from tools.terraform.offline import ROOT

SOURCES: Final = ROOT / "src"
PROJECT: Final = "interlock"

RUNTIME: Final = frozenset({"boto3", "botocore", "s3transfer", "jmespath", "urllib3"})
"""What Lambda has already."""

# Whatever a function does, it is not this.
_NEVER: Final = (
    "interlock.client",  # the SDK, which `import interlock` offers to those who ask
    "interlock.cli",
    "interlock.api",
    "interlock.embedded",
    "interlock.jobs.command",  # commands, and probes that read files or databases, need a machine of their own
    "interlock.probes.command",
    "interlock.probes.file",
    "interlock.probes.sql",
    "rich",  # colours of a terminal
)
# Only the orchestrator asks probes; it and the stream-router (a rerun, the end of a job) call the targets of jobs.
_NO_PROBES: Final = ("interlock.probes",)
# The event-sink decides who hears of an event, the alert-dispatcher tells them.
_NO_ROUTING: Final = ("interlock.aws.alerts", "interlock.control.alerts.alert_channels")
_NO_CHANNELS: Final = (
    "interlock.aws.channels",
    "interlock.aws.dispatching",
    "interlock.alerts.slack",
    "interlock.alerts.webhook",
)
_NO_ALERTS: Final = (*_NO_ROUTING, *_NO_CHANNELS)
_NO_CALENDARS: Final = ("holidays",)
LEFT_OUT: Final[Mapping[str, tuple[str, ...]]] = {
    "stream-router": (*_NO_PROBES, *_NO_ALERTS),
    "orchestrator": _NO_ALERTS,
    "sla-monitor": (*_NO_PROBES, *_NO_ALERTS),
    "watchdog": (*_NO_PROBES, *_NO_ALERTS),
    "event-sink": (*_NO_PROBES, *_NO_CHANNELS, *_NO_CALENDARS),
    "alert-dispatcher": (*_NO_PROBES, *_NO_CALENDARS),
}
CALLS_JOBS: Final = frozenset({"orchestrator", "stream-router"})

# A module that is loaded by its name: `interlock.jobs.aws.glue:TARGET`.
_NAMED: Final = re.compile(r"(interlock(?:\.\w+)+)(?::\w+)?")


@dataclass
class Imports:
    """Modules of the project by name, and top-level names of packages of others."""

    modules: dict[str, Path] = field(default_factory=dict)
    packages: set[str] = field(default_factory=set)


def handler_module(function: str) -> str:
    """The module that Lambda loads."""
    return f"interlock.aws.lambdas.{function.replace('-', '_')}"


def imports_of(function: str) -> Imports:
    """Everything that a function may import."""
    if path_of(handler_module(function)) is None:
        raise ImportError(f"there is no {handler_module(function)}: the function {function} cannot be packaged")
    left_out = (*_NEVER, *LEFT_OUT[function])
    found, pending = Imports(), [handler_module(function)]
    while pending:
        name = pending.pop()
        if any(name == one or name.startswith(f"{one}.") for one in left_out):
            continue
        top, *_ = name.split(".")
        if top != PROJECT:
            if top not in sys.stdlib_module_names and top not in RUNTIME:
                found.packages.add(top)
            if top == "zoneinfo":
                found.packages.add("tzdata")  # the machine of a function need not have one
            continue
        parts = name.split(".")
        for module in (".".join(parts[:length]) for length in range(1, len(parts) + 1)):
            path = path_of(module)
            if path is not None and module not in found.modules:
                found.modules[module] = path
                pending += _imported(path)
                pending += _named(path) if function in CALLS_JOBS else ()
    return found


def path_of(module: str) -> Path | None:
    """The file of a module of the project; None for a name inside one."""
    where = SOURCES / module.replace(".", "/")
    for path in (where / "__init__.py", where.with_suffix(".py")):
        if path.is_file():
            return path
    return None


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imported_at_once(path: Path) -> Iterator[str]:
    """What a module imports when it is loaded: without that it cannot be."""
    yield from _imports(_tree(path), skip=(ast.FunctionDef, ast.AsyncFunctionDef))


def _imported(path: Path) -> Iterator[str]:
    yield from _imports(_tree(path))


def _imports(tree: ast.Module, skip: tuple[type[ast.AST], ...] = ()) -> Iterator[str]:
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if skip and isinstance(node, skip):
            continue
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            pending += node.orelse
        elif isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None, "imports are absolute"
            yield node.module
            yield from (f"{node.module}.{one.name}" for one in node.names)
        else:
            pending += ast.iter_child_nodes(node)


def _named(path: Path) -> Iterator[str]:
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            named = _NAMED.fullmatch(node.value)
            if named is not None and path_of(named[1]) is not None:
                yield named[1]
