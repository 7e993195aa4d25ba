"""The guide of AWS says what the module does: variables, rights, alarms."""

import re

import pytest

from tests.aws import planned
from tools.terraform.documents import GUIDE, TABLES, with_table
from tools.terraform.offline import MODULE


@pytest.mark.parametrize("name", list(TABLES))
def test_a_table_is_that_of_the_module(name: str) -> None:
    path, make = TABLES[name]
    text = path.read_text(encoding="utf-8")
    assert with_table(text, name, make()) == text, "run: python -m tools.terraform.documents"


def test_every_variable_says_what_it_is_and_what_it_may_be() -> None:
    text = (MODULE / "variables.tf").read_text(encoding="utf-8")
    blocks = re.findall(r'^variable "(\w+)" \{\n(.*?)^\}', text, re.MULTILINE | re.DOTALL)
    # What may be anything: a folder, a list of addresses, yes or no.
    free = {"pipelines_root", "allow_private_addresses"}
    for name, body in blocks:
        assert "description = " in body, name
        assert "validation {" in body or name in free or "= bool" in body, name
    table = TABLES["variables"][1]()
    assert all(f"| `{name}` |" in table for name, _ in blocks)


def test_the_runbook_has_every_alarm() -> None:
    text = (GUIDE / "runbook.md").read_text(encoding="utf-8")
    for address, values in planned.resources().items():
        if address.startswith("aws_cloudwatch_metric_alarm."):
            name = values["alarm_name"].removeprefix("test-interlock-")
            assert f"`{name}`" in text, name
