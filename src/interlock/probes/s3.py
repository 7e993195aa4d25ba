"""Probe `s3`: are there objects below a prefix, how many, how large, and how old."""

import time
from typing import TYPE_CHECKING, Any

from interlock.jobs.aws.clients import AwsClients
from interlock.model.durations import Duration, format_duration
from interlock.model.errors import JobStartError, ProbeError
from interlock.model.probe_configs import S3ProbeConfig
from interlock.ports.probes import ProbeRequest
from interlock.probes.configs import read_config
from interlock.probes.found import Found

if TYPE_CHECKING:
    from collections.abc import Iterator


class S3Probe:
    """Lists objects; `allow_private` as in AddressPolicy, for `endpointUrl`."""

    def __init__(self, *, allow_private: bool | tuple[str, ...] = False) -> None:
        self._clients = AwsClients(allow_private=allow_private)

    def close(self) -> None:
        """Close the idle connections."""
        self._clients.close()

    def look(self, request: ProbeRequest) -> dict[str, Any]:
        """What lies below the prefix; markers of folders do not count. Nothing is an observation as well."""
        from botocore.exceptions import BotoCoreError, ClientError

        config = read_config(request, S3ProbeConfig)
        where = f"s3://{config.bucket}/{config.prefix}"
        deadline, found = time.monotonic() + request.timeout.total_seconds(), Found()
        try:
            for page in self._pages(config):
                for entry in page.get("Contents", ()):
                    if not (entry["Key"].endswith("/") and entry["Size"] == 0):
                        found.add(entry["Size"], entry["LastModified"])
                if page.get("IsTruncated") and time.monotonic() > deadline:
                    took = format_duration(Duration(seconds=request.timeout.total_seconds()))
                    raise ProbeError(f"{where}: {found.count} objects were counted in {took}, and there are more")
        except ClientError as error:
            said = error.response["Error"]
            raise ProbeError(f"{where}: AWS answered {said.get('Code')}: {said.get('Message', '')}") from error
        except BotoCoreError as error:
            raise ProbeError(f"{where}: {error}") from error
        except JobStartError as error:
            raise ProbeError(str(error)) from error
        return found.observation()

    def _pages(self, config: S3ProbeConfig) -> "Iterator[dict[str, Any]]":
        client = self._clients.reading("s3", config)
        pages: Iterator[dict[str, Any]] = iter(
            client.get_paginator("list_objects_v2").paginate(Bucket=config.bucket, Prefix=config.prefix)
        )
        return pages
