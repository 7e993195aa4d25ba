"""The tables of the AWS guide that follow from the module: variables, outputs, rights.

    python -m tools.terraform.documents

writes them between their marks in `docs/guide/aws/`; a test compares.
"""

import json
import re
import sys
from collections.abc import Iterator
from typing import Any, Final

from tools.terraform.offline import MODULE, ROOT
from tools.terraform.planned import PLANS

GUIDE: Final = ROOT / "docs" / "guide" / "aws"
_BLOCK: Final = re.compile(r'^(variable|output) "(\w+)" \{\n(.*?)^\}', re.MULTILINE | re.DOTALL)
_SECTION: Final = re.compile(r"^# -+ (.+)$", re.MULTILINE)
_MARK: Final = "<!-- made by tools/terraform/documents.py: {} -->"


def variables_table() -> str:
    """Every variable by section: name, type, default, what it is."""
    text = (MODULE / "variables.tf").read_text(encoding="utf-8")
    lines: list[str] = []
    parts = _SECTION.split(text)
    for title, part in zip(parts[1::2], parts[2::2], strict=True):
        lines += ["", f"### {title[0].upper()}{title[1:]}", "", "| variable | type | default | |", "|---|---|---|---|"]
        for kind, name, body in _BLOCK.findall(part):
            assert kind == "variable"
            default = _argument(body, "default")
            shown = "required" if default is None else f"`{default}`"
            lines.append(f"| `{name}` | `{_type(body)}` | {shown} | {_cell(_text(body, 'description'))} |")
    return "\n".join(lines).strip()


def outputs_table() -> str:
    """Every output."""
    text = (MODULE / "outputs.tf").read_text(encoding="utf-8")
    rows = [f"| `{name}` | {_cell(_text(body, 'description'))} |" for _, name, body in _BLOCK.findall(text)]
    return "\n".join(["| output | |", "|---|---|", *rows])


def rights_table() -> str:
    """Every role: what it may do, and with what. Opt-in rights are those that only the plan with everything on has."""
    always = {(role, statement["Sid"]) for role, statement in _statements("plan")}
    rows: dict[str, list[str]] = {}
    for role, statement in _statements("plan_everything"):
        actions = ", ".join(f"`{action}`" for action in statement["Action"])
        resources = "<br>".join(f"`{_resource(arn)}`" for arn in statement["Resource"])
        opt_in = "" if (role, statement["Sid"]) in always else "opt-in"
        rows.setdefault(role, []).append(f"| {actions} | {resources} | {opt_in} |")
    lines: list[str] = []
    for role, found in rows.items():
        lines += ["", f"### {role}", "", "| actions | on | |", "|---|---|---|", *found]
    return "\n".join(lines).strip()


TABLES: Final = {
    "variables": (GUIDE / "variables.md", variables_table),
    "outputs": (GUIDE / "variables.md", outputs_table),
    "rights": (GUIDE / "iam.md", rights_table),
}


def with_table(text: str, name: str, table: str) -> str:
    """A page with the table between its marks."""
    begin, end = _MARK.format(name), _MARK.format(f"end of {name}")
    before, found, rest = text.partition(begin)
    inside, closed, after = rest.partition(end)
    assert found, f"the page has no {begin}"
    assert closed, f"the page has no {end} after {inside[:40]!r}"
    return f"{before}{begin}\n\n{table}\n\n{end}{after}"


def main() -> int:
    """Write every table into its page."""
    for name, (path, make) in TABLES.items():
        path.write_text(with_table(path.read_text(encoding="utf-8"), name, make()), encoding="utf-8")
        print(f"wrote {name} into {path.relative_to(ROOT)}")
    return 0


def _statements(plan: str) -> Iterator[tuple[str, dict[str, Any]]]:
    resources = json.loads(PLANS[plan].read_text(encoding="utf-8"))["resources"]
    for address, values in resources.items():
        if address.startswith("aws_iam_role_policy."):
            for statement in json.loads(values["policy"])["Statement"]:
                yield values["role"].removeprefix("test-interlock-"), statement


def _resource(arn: str) -> str:
    """An ARN without what is the same for all: `dynamodb table/E-interlock-control`."""
    if arn == "*":
        return arn
    _, _, service, _, _, name = arn.split(":", 5)
    return f"{service} {name.replace('test-interlock', 'E-interlock')}"


def _argument(body: str, name: str) -> str | None:
    found = re.search(rf"^  {name} += (.+?)$", body, re.MULTILINE)
    return None if found is None else found[1]


def _type(body: str) -> str:
    found = _argument(body, "type") or ""
    return "object" if found.startswith("object(") else found


def _text(body: str, name: str) -> str:
    found = _argument(body, name) or '""'
    return str(json.loads(found)).replace("$${", "${")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
