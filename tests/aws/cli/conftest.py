"""The commands on an environment of AWS."""

from collections.abc import Iterator
from pathlib import Path

import botocore.loaders
import botocore.session
import pytest

from interlock.cli import aws_backend
from interlock.embedded import clock
from tests.aws.cli.deployed import ADDRESS, Deployed, deployed, pausing
from tests.cli.stage import Stage

_SETTINGS = (
    "INTERLOCK_URL",
    "INTERLOCK_STORE",
    "INTERLOCK_TOKEN",
    "AWS_PROFILE",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
)
_LOADER = botocore.loaders.create_loader()


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Deployed]:
    """An environment named `test`, and a caller whose credentials are nobody's."""
    for name in (
        "INTERLOCK_URL",
        "INTERLOCK_STORE",
        "INTERLOCK_TOKEN",
        "AWS_PROFILE",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "no-config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "no-credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.chdir(tmp_path)
    # Reading the models of the services takes most of a second for each command.
    monkeypatch.setattr(botocore.session, "create_loader", lambda *given: _LOADER)
    with deployed() as found:
        monkeypatch.setattr(aws_backend, "pause", pausing(found))
        monkeypatch.setattr(clock, "pause", pausing(found))
        yield found


@pytest.fixture
def stage(capsys: pytest.CaptureFixture[str], environment: Deployed) -> Stage:
    """Runs commands on that environment."""
    return Stage(capsys, "--store", ADDRESS)
