"""The lifecycle definition as the embedded interpreter runs it: the same file as on AWS, its placeholders filled in."""

import re
from importlib.resources import files
from typing import Any, Final

import msgspec

from interlock.control.context import Settings
from interlock.embedded.asl.interpreter import Machine

ORCHESTRATOR: Final = "orchestrator"
SLA_MONITOR: Final = "sla-monitor"
# A `$` also begins every JSONPath, so string.Template will not do.
_PLACEHOLDER: Final = re.compile(r"\$\{(\w+)\}")


def lifecycle_document(values: dict[str, str]) -> dict[str, Any]:
    """`lifecycle.asl.json` with its `${...}` placeholders replaced."""
    text = files("interlock.control").joinpath("lifecycle.asl.json").read_text(encoding="utf-8")
    return msgspec.json.decode(_PLACEHOLDER.sub(lambda found: values[found[1]], text), type=dict[str, Any])


def load_lifecycle(settings: Settings) -> Machine:
    """The machine that every attempt runs on."""
    return Machine.load(
        lifecycle_document(
            {
                "orchestrator_arn": ORCHESTRATOR,
                "sla_monitor_arn": SLA_MONITOR,
                "control_table": "control",
                "sfn_timeout_seconds": str(int(settings.execution_timeout.total_seconds())),
                "trigger_max_attempts": str(settings.trigger_max_attempts),
            }
        )
    )
