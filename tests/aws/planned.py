"""What the Terraform module plans: the committed plan (`python -m tools.terraform.planned` writes it)."""

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

_FOLDER: Final = Path(__file__).parent


@cache
def resources(name: str = "plan") -> dict[str, dict[str, Any]]:
    """By address: the planned values. `plan-everything` has every option on."""
    found = json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    planned: dict[str, dict[str, Any]] = found["resources"]
    return planned


def stream_filters(table: str) -> list[dict[str, Any]]:
    """The filters of the mapping of a table's stream."""
    mapping = resources()[f'aws_lambda_event_source_mapping.stream["{table}"]']
    return [json.loads(one["pattern"]) for one in mapping["filter_criteria"][0]["filter"]]
