"""Terraform without the provider registry, and the tools that check what it plans, each in its own environment."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
MODULE: Final = ROOT / "deploy" / "terraform"
SCHEMA: Final = Path(__file__).parent / "aws_schema.json"
FUNCTIONS: Final = ("stream-router", "orchestrator", "sla-monitor", "watchdog", "event-sink", "alert-dispatcher")

REQUIREMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "terraform": ("tf==1.2.0", "grpcio==1.85.1", "protobuf==5.29.6"),
    "cfn-lint": ("cfn-lint==1.58.0",),
    "parliament": ("parliament==1.6.4", "setuptools<81"),
    "checkov": ("checkov==3.2.530",),
    "lambda": ("awslambdaric==4.2.2", "boto3"),
}
"""What each environment holds. They are apart because they do not agree about their own dependencies."""


class MissingToolError(Exception):
    """A tool that is not on this machine and could not be installed: what needs it is left out, with a notice."""


def terraform_program() -> str:
    """The terraform on this machine."""
    found = shutil.which("terraform")
    if found is None:
        raise MissingToolError("terraform is not on this machine: see developer.hashicorp.com/terraform/install")
    return found


def environment_of(name: str) -> Path:
    """The Python environment of a tool, made when it is first needed, under `.venv-tools/`."""
    folder = ROOT / ".venv-tools" / name
    stamp, wanted = folder / "requirements", "\n".join(REQUIREMENTS[name])
    folder.parent.mkdir(exist_ok=True)
    with (folder.parent / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.is_file() or stamp.read_text(encoding="utf-8") != wanted:
            _make(folder, REQUIREMENTS[name])
            stamp.write_text(wanted, encoding="utf-8")
    return folder


def _make(folder: Path, requirements: tuple[str, ...]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    python, uv = folder / "bin" / "python", Path(sys.executable).parent / "uv"
    ways = [[str(python), "-m", "pip", "install", "--disable-pip-version-check", *requirements]]
    if uv.is_file():
        ways.insert(0, [str(uv), "pip", "install", "--python", str(python), *requirements])
    done = subprocess.run([sys.executable, "-m", "venv", str(folder)], capture_output=True, text=True, check=False)
    for way in ways if done.returncode == 0 else ():
        done = subprocess.run([*way, "-q"], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return
    last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no reason given"]
    raise MissingToolError(f"{', '.join(requirements)} could not be installed: {last[0]}")


def run_terraform(
    *arguments: str, folder: Path = MODULE, data: Path, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run terraform in a folder against the stub provider. `data` takes what it would leave behind there."""
    program, python = terraform_program(), environment_of("terraform") / "bin" / "python"
    given = {f"TF_VAR_{name}": value for name, value in (variables or {}).items()}
    environment = {
        **os.environ,
        **given,
        "TF_DATA_DIR": str(data),
        "TF_CLI_CONFIG_FILE": os.devnull,
        "TF_IN_AUTOMATION": "1",
        "CHECKPOINT_DISABLE": "1",
    }
    stub = str(Path(__file__).parent / "stub_provider.py")
    command = [str(python), stub, str(SCHEMA), program, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def write_packages(folder: Path) -> Path:
    """Packages without content, for plans: Terraform looks at their names and digests only."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in FUNCTIONS:
        with zipfile.ZipFile(folder / f"{name}.zip", "w") as package:
            package.writestr(zipfile.ZipInfo("nothing"), "")
    manifest = {"version": "0.0.0", "source": "0" * 16, "python": "3.13"}
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return folder
