"""An account of the test's own, and clients that reach nothing else."""

from collections.abc import Iterator
from unittest import mock

import pytest
from botocore import loaders

from interlock.jobs.aws.clients import AwsClients
from tests.jobs.aws.moto_services import REGION, Aws, moto_aws


@pytest.fixture(autouse=True)
def _no_real_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_PROFILE", "AWS_CONFIG_FILE", "AWS_ENDPOINT_URL", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


class _Once(list[str]):
    """Where models are looked for; every session adds the same place."""

    def append(self, place: str) -> None:
        if place not in self:
            super().append(place)


@pytest.fixture(scope="package", autouse=True)
def _models_are_read_once() -> Iterator[None]:
    """boto3 reads the models of its services anew for each session; that is most of the time of these tests."""
    shared = loaders.create_loader()
    shared._search_paths = _Once(shared._search_paths)
    with mock.patch("botocore.session.create_loader", return_value=shared):
        yield


@pytest.fixture
def aws() -> Iterator[Aws]:
    with moto_aws() as found:
        yield found


@pytest.fixture
def clients(aws: Aws) -> Iterator[AwsClients]:
    made = AwsClients()
    yield made
    made.close()
