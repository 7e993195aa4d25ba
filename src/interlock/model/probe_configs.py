"""`config` of every kind of probe (SPEC 14): the types are the one list of its keys.

As with `model.job_configs`, the loader checks a config against them, with lines, the probe reads the filled-in config
as the same Struct, and the JSON Schema is made from them.
"""

from typing import Annotated, Any, Final

from msgspec import Meta

from interlock.model.config import ProbeType
from interlock.model.job_configs import AwsConfig, JobConfig, Text, Value


class HttpProbeConfig(JobConfig, frozen=True, kw_only=True):
    """One HTTP request; its JSON answer is the observation."""

    url: Annotated[Text, Meta(description="Where to: http:// or https://")]
    method: Annotated[str, Meta(description="POST, PUT, PATCH, GET or DELETE")] = "POST"
    headers: Annotated[dict[str, str | int | float], Meta(description="More headers")] = {}  # noqa: RUF012 - a Struct copies it
    body: Annotated[
        dict[str, Any] | list[Any] | str | None,
        Meta(description="JSON, or text as it is; default: pipeline, key, date"),
    ] = None


class CommandProbeConfig(JobConfig, frozen=True, kw_only=True):
    """A process on the controller's machine; no shell. JSON on its stdin, the observation as JSON on its stdout."""

    command: Annotated[
        list[str] | str,
        Meta(description="The program and its arguments: a list, or one text that is split into words without a shell"),
    ]
    cwd: Annotated[str, Meta(description="Where it runs; relative to the folder of `interlock.toml`")] = ""
    env: Annotated[
        dict[str, Value],
        Meta(description="More environment variables; PATH, HOME, LANG and TZ are the controller's own"),
    ] = {}  # noqa: RUF012 - a Struct copies it


class SqlProbeConfig(JobConfig, frozen=True, kw_only=True):
    """A query whose one row is the observation."""

    url: Annotated[
        Text, Meta(description="The database, as SQLAlchemy writes it: postgresql+psycopg://user:pw@host/db")
    ]
    query: Annotated[Text, Meta(description="A query that gives exactly one row; its columns become fields")]


class S3ProbeConfig(AwsConfig, frozen=True, kw_only=True):
    """The objects below a prefix: whether there are any, how many, how large, how old."""

    bucket: Annotated[Text, Meta(description="The bucket")]
    prefix: Annotated[str, Meta(description="What the keys begin with; default: all of the bucket")] = ""


class FileProbeConfig(JobConfig, frozen=True, kw_only=True):
    """Files on the controller's machine: whether there are any, how many, how large, how old."""

    path: Annotated[
        Text, Meta(description="A path or glob (`*`, `?`, `[...]`, `**`); relative to the folder of `interlock.toml`")
    ]


PROBE_CONFIGS: Final[dict[ProbeType, type[JobConfig]]] = {
    ProbeType.HTTP: HttpProbeConfig,
    ProbeType.COMMAND: CommandProbeConfig,
    ProbeType.SQL: SqlProbeConfig,
    ProbeType.S3: S3ProbeConfig,
    ProbeType.FILE: FileProbeConfig,
}
