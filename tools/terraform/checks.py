"""What `make terraform` does: every check of the module that needs no AWS, each by the tool that knows best.

A tool that is not on this machine and cannot be installed is named, and what it would have checked is left out.
"""

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from statelint.linter import Linter

from tools.terraform import cloudformation
from tools.terraform.offline import (
    MODULE,
    ROOT,
    MissingToolError,
    environment_of,
    run_terraform,
    terraform_program,
    write_packages,
)
from tools.terraform.planned import PLANS, PlanError, plan, text_of

EXAMPLE: Final = ROOT / "examples" / "medallion-aws"
ROOT_MODULES: Final = (MODULE, MODULE / "example", EXAMPLE)


class CheckError(Exception):
    """What a tool found."""


def formatted() -> None:
    """`terraform fmt`: every file as Terraform itself would write it."""
    for folder in (ROOT / "deploy", EXAMPLE):
        _run(terraform_program(), "fmt", "-check", "-diff", "-recursive", str(folder))


def valid() -> None:
    """`terraform validate`: the module and its examples fit the provider's schema."""
    for folder in ROOT_MODULES:
        with tempfile.TemporaryDirectory() as data:
            for arguments in (("init", "-input=false", "-backend=false"), ("validate",)):
                done = run_terraform(*arguments, "-no-color", folder=folder, data=Path(data))
                _checked(done)


def tested() -> None:
    """`terraform test`: the module's own tests, on a mocked provider."""
    with tempfile.TemporaryDirectory() as folder:
        data, packages = Path(folder) / "data", write_packages(Path(folder) / "packages")
        _checked(run_terraform("init", "-input=false", "-no-color", data=data))
        given = {"dist_path": str(packages)}
        _checked(run_terraform("test", "-no-color", data=data, variables=given))


def planned() -> None:
    """The committed plans are what is planned, and a second plan changes nothing."""
    for name, path in PLANS.items():
        try:
            text = text_of(plan(name))
        except PlanError as error:
            raise CheckError(str(error)) from error
        if text != path.read_text(encoding="utf-8"):
            raise CheckError(f"{path.relative_to(ROOT)} is another plan: python -m tools.terraform.planned")


def values_fit_aws() -> None:
    """`cfn-lint`: planned values against CloudFormation's schemas."""
    lint_templates([cloudformation.template(resources) for resources in _plans()])


def lint_templates(templates: list[dict[str, Any]]) -> None:
    """Templates under cfn-lint; CheckError with its findings."""
    program = environment_of("cfn-lint") / "bin" / "cfn-lint"
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"template-{number}.json" for number in range(len(templates))]
        for path, template in zip(paths, templates, strict=True):
            path.write_text(json.dumps(template), encoding="utf-8")
        _run(str(program), "-r", "us-east-1", "--format", "parseable", "-t", *map(str, paths))


def lifecycle_is_sound() -> None:
    """`statelint`: the state machine as it is planned."""
    for resources in _plans():
        definition = json.loads(resources["aws_sfn_state_machine.pipeline"]["definition"])
        if problems := Linter().validate(definition):
            raise CheckError("\n".join(map(str, problems)))


def policies_are_sound() -> None:
    """`parliament`: actions exist, resources fit them."""
    python = environment_of("parliament") / "bin" / "python"
    _run(str(python), "-W", "ignore", str(Path(__file__).parent / "policies.py"), *map(str, PLANS.values()))


def scanned() -> None:
    """`checkov`: its findings are mended, or answered beside the resource."""
    program = environment_of("checkov") / "bin" / "checkov"
    folders = [part for folder in (MODULE, EXAMPLE) for part in ("-d", str(folder))]
    _run(str(program), *folders, "--framework", "terraform", "--compact", "--quiet", "--skip-download")


CHECKS: Final[Mapping[str, Callable[[], None]]] = {
    "fmt": formatted,
    "validate": valid,
    "test": tested,
    "plan": planned,
    "cfn-lint": values_fit_aws,
    "statelint": lifecycle_is_sound,
    "parliament": policies_are_sound,
    "checkov": scanned,
}


def main() -> int:
    """Every check, a line each; 1 if one of them found something."""
    failed = 0
    for name, check in CHECKS.items():
        try:
            check()
        except MissingToolError as error:
            print(f"{name:<12} left out: {error}", flush=True)
        except CheckError as error:
            failed = 1
            print(f"{name:<12} FAILED\n{error}", flush=True)
        else:
            print(f"{name:<12} ok", flush=True)
    return failed


def _plans() -> Iterator[dict[str, Any]]:
    for path in PLANS.values():
        yield json.loads(path.read_text(encoding="utf-8"))["resources"]


def _run(*command: str) -> None:
    _checked(subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT))


def _checked(done: subprocess.CompletedProcess[str]) -> None:
    if done.returncode:
        raise CheckError((done.stdout + done.stderr).strip())
