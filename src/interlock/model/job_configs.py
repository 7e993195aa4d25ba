"""`job.config` of every type of job (SPEC 15): the types are the one list of its keys.

The loader checks a config against them, with lines; the target reads the filled-in config as the same Struct; the JSON
Schema and the reference are made from them. In a file a template (`${...}`) may stand in place of any text, number,
boolean or duration; what a target reads has its templates filled in.
"""

from base64 import b64encode
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from interlock.model.config import JobType
from interlock.model.durations import Duration

HTTP_METHODS: Final = ("POST", "PUT", "PATCH", "GET", "DELETE")

Text = Annotated[str, Meta(min_length=1)]
# What becomes text on its way to the target: a header, a variable, an argument.
Value = str | int | float | bool
Scalar = str | int | float | bool | None


class JobConfig(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    """What all job configs have in common: nothing but their form."""


class _Auth(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, tag_field="type"):
    pass


class BasicAuth(_Auth, frozen=True, kw_only=True, tag="basic"):
    """User name and password, sent with each request."""

    username: Text
    password: str = ""

    @property
    def header(self) -> str:
        """The value of the `Authorization` header."""
        return f"Basic {b64encode(f'{self.username}:{self.password}'.encode()).decode()}"

    @property
    def secrets(self) -> list[str]:
        """What no message may repeat."""
        return [self.password, self.header.removeprefix("Basic ")]


class BearerAuth(_Auth, frozen=True, kw_only=True, tag="bearer"):
    """A token, sent with each request."""

    token: Text

    @property
    def header(self) -> str:
        """The value of the `Authorization` header."""
        return f"Bearer {self.token}"

    @property
    def secrets(self) -> list[str]:
        """What no message may repeat."""
        return [self.token]


class JwtAuth(_Auth, frozen=True, kw_only=True, tag="jwt"):
    """User name and password, exchanged for a token at Airflow's `/auth/token`."""

    username: Text
    password: Text

    @property
    def secrets(self) -> list[str]:
        """What no message may repeat."""
        return [self.password]


class CommandConfig(JobConfig, frozen=True, kw_only=True):
    """A process on the controller's machine; no shell."""

    command: Annotated[
        list[str] | str,
        Meta(description="The program and its arguments: a list, or one text that is split into words without a shell"),
    ]
    cwd: Annotated[str, Meta(description="Where it runs; relative to the folder of `interlock.toml`")] = ""
    env: Annotated[
        dict[str, Value],
        Meta(description="More environment variables; PATH, HOME, LANG and TZ are the controller's own"),
    ] = {}
    timeout: Annotated[Duration, Meta(description="After this long: SIGTERM, ten seconds later SIGKILL; 0s: never")] = (
        Duration(0)
    )


class HttpPoll(JobConfig, frozen=True, kw_only=True):
    """Ask an address how the job is, until it is done or failed."""

    url: Annotated[Text, Meta(description="What to GET; `${JOB_ID}` is the id that `jobIdPath` found")]
    path: Annotated[
        Text, Meta(description="Where the state stands in the JSON answer: a dotted path such as `run.state`")
    ]
    done: Annotated[Scalar | list[Scalar], Meta(description="The value, or values, that mean success")]
    failed: Annotated[Scalar | list[Scalar], Meta(description="The value, or values, that mean failure")] = []
    interval: Annotated[Duration | None, Meta(description="Time between two requests; default: `job.pollInterval`")] = (
        None
    )


class HttpConfig(JobConfig, frozen=True, kw_only=True):
    """One HTTP request; done when it is answered, reported (`callback`), or polled (`poll`)."""

    url: Annotated[Text, Meta(description="Where to: http:// or https://")]
    method: Annotated[str, Meta(description="POST, PUT, PATCH, GET or DELETE")] = "POST"
    headers: Annotated[dict[str, str | int | float], Meta(description="More headers")] = {}
    body: Annotated[
        dict[str, Any] | list[Any] | str | None,
        Meta(description="JSON, or text as it is; default: pipeline, schedule, date, attempt, runId"),
    ] = None
    timeout: Annotated[Duration, Meta(description="How long to wait for the answer")] = Duration(seconds=30)
    expect: Annotated[
        list[Annotated[int, Meta(ge=100, le=599)]], Meta(description="The codes that mean success; default: any 2xx")
    ] = []
    callback: Annotated[bool, Meta(description="An answer means accepted; the end is reported later")] = False
    idempotent: Annotated[
        bool, Meta(description="The target honours `Idempotency-Key`: a lost request is repeated")
    ] = False
    auth: Annotated[BearerAuth | BasicAuth | None, Meta(description="The `Authorization` header")] = None
    job_id_path: Annotated[
        Text | None, Meta(description="Where the target's id of the job stands in its JSON answer: a dotted path")
    ] = None
    poll: Annotated[HttpPoll | None, Meta(description="An answer means accepted; the end is asked for")] = None


class AirflowConfig(JobConfig, frozen=True, kw_only=True):
    """A DAG run."""

    url: Annotated[Text, Meta(description="Airflow's address, without `/api`")]
    dag_id: Annotated[Text, Meta(description="The DAG to run")]
    conf: Annotated[dict[str, Any], Meta(description="The `conf` of the DAG run")] = {}
    auth: Annotated[
        BasicAuth | BearerAuth | JwtAuth | None, Meta(description="Who asks: basic, bearer, or jwt (Airflow 3)")
    ] = None
    api_version: Annotated[
        Literal["auto", "v1", "v2"], Meta(description="v1 is Airflow 2, v2 is Airflow 3; auto finds out")
    ] = "auto"


class AwsConfig(JobConfig, frozen=True, kw_only=True):
    """What every target on AWS takes."""

    region: Annotated[Text | None, Meta(description="Default: the controller's own")] = None
    profile: Annotated[Text | None, Meta(description="A profile of the controller's AWS configuration")] = None
    role_arn: Annotated[Text | None, Meta(description="A role to assume before the call")] = None
    endpoint_url: Annotated[
        Text | None, Meta(description="Another address of the service: a VPC endpoint, a stand-in")
    ] = None


class GlueConfig(AwsConfig, frozen=True, kw_only=True):
    """An AWS Glue job run."""

    job_name: Annotated[Text, Meta(description="The Glue job")]
    arguments: Annotated[
        dict[str, Value], Meta(description="Arguments, beside `--par_day`, `--par_hour` and the run id")
    ] = {}
    worker_type: Annotated[Text | None, Meta(description="G.1X, G.2X, ...; default: the job's own")] = None
    number_of_workers: Annotated[int, Meta(ge=1, description="Default: the job's own")] | None = None
    timeout_minutes: Annotated[int, Meta(ge=1, description="Default: the job's own")] | None = None
    false_success_check: Annotated[
        bool, Meta(description="A success with a failure in its RCA or driver log counts as failed")
    ] = True


class EmrConfig(AwsConfig, frozen=True, kw_only=True):
    """A step of an EMR cluster."""

    cluster_id: Annotated[Text, Meta(description="The cluster, `j-...`")]
    arguments: Annotated[list[str], Meta(min_length=1, description="Such as [spark-submit, s3://bucket/etl.py]")]
    step_name: Annotated[Text | None, Meta(description="Shown in EMR beside the run id; default: the pipeline")] = None
    jar: Annotated[Text, Meta(description="What runs the arguments")] = "command-runner.jar"
    action_on_failure: Annotated[
        Literal["CONTINUE", "CANCEL_AND_WAIT", "TERMINATE_CLUSTER"],
        Meta(description="What the cluster does when the step fails"),
    ] = "CONTINUE"


class EmrServerlessConfig(AwsConfig, frozen=True, kw_only=True):
    """A job run of an EMR Serverless application."""

    application_id: Annotated[Text, Meta(description="The application")]
    execution_role_arn: Annotated[Text, Meta(description="The role that the job runs as")]
    job_driver: Annotated[
        dict[str, Any], Meta(min_length=1, description="`sparkSubmit` or `hive`, as StartJobRun has it")
    ]
    job_name: Annotated[Text | None, Meta(description="Default: the pipeline and its period")] = None
    configuration_overrides: Annotated[dict[str, Any], Meta(description="As StartJobRun has it")] = {}
    timeout_minutes: Annotated[int, Meta(ge=1, description="Default: EMR Serverless' own")] | None = None


class StepFunctionConfig(AwsConfig, frozen=True, kw_only=True):
    """An execution of a state machine."""

    state_machine_arn: Annotated[Text, Meta(description="The state machine")]
    input: Annotated[Any, Meta(description="Its input, JSON; default: pipeline, schedule, date, attempt, runId")] = None


class DatabricksAuth(JobConfig, frozen=True, kw_only=True):
    """A personal access token, or a service principal's id and secret."""

    token: Annotated[Text | None, Meta(description="A personal access token")] = None
    client_id: Annotated[Text | None, Meta(description="A service principal")] = None
    client_secret: Annotated[Text | None, Meta(description="Its OAuth secret")] = None

    @property
    def secrets(self) -> list[str]:
        """What no message may repeat."""
        return [secret for secret in (self.token, self.client_secret) if secret]


class DatabricksConfig(JobConfig, frozen=True, kw_only=True):
    """A run of a Databricks job: an existing one by id or name, or one that is submitted with the run."""

    host: Annotated[Text, Meta(description="The workspace: https://....cloud.databricks.com")]
    job_id: Annotated[int | Text | None, Meta(description="The job's number; or give jobName, or submit")] = None
    job_name: Annotated[Text | None, Meta(description="The job's name, which only one job may have")] = None
    submit: Annotated[dict[str, Any] | None, Meta(description="A one-time run, as `runs/submit` has it")] = None
    parameters: Annotated[dict[str, Any], Meta(description="Job parameters, for jobId and jobName")] = {}
    auth: Annotated[DatabricksAuth | None, Meta(description="`{token}`, or `{clientId, clientSecret}`")] = None


class LambdaConfig(AwsConfig, frozen=True, kw_only=True):
    """An invocation of a Lambda function."""

    function_name: Annotated[Text, Meta(description="Name or ARN")]
    payload: Annotated[Any, Meta(description="JSON; default: pipeline, schedule, date, attempt, runId")] = None
    qualifier: Annotated[Text | None, Meta(description="A version or alias")] = None
    mode: Annotated[
        Literal["sync", "async"],
        Meta(description="sync: its response ends the job; async: it reports its end itself"),
    ] = "sync"


class ExternalConfig(JobConfig, frozen=True, kw_only=True):
    """No keys: somebody else starts the job."""


JOB_CONFIGS: Final[dict[str, type[JobConfig]]] = {
    JobType.COMMAND: CommandConfig,
    JobType.HTTP: HttpConfig,
    JobType.AIRFLOW: AirflowConfig,
    JobType.GLUE: GlueConfig,
    JobType.EMR: EmrConfig,
    JobType.EMR_SERVERLESS: EmrServerlessConfig,
    JobType.STEP_FUNCTION: StepFunctionConfig,
    JobType.DATABRICKS: DatabricksConfig,
    JobType.LAMBDA: LambdaConfig,
    JobType.EXTERNAL: ExternalConfig,
}
