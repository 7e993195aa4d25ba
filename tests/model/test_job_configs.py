"""The types of `job.config` and the table of SPEC 15 are the same list."""

import msgspec
import pytest

from interlock.model.config import JobType
from interlock.model.job_configs import JOB_CONFIGS

AWS = {"region", "profile", "roleArn", "endpointUrl"}
# The keys of SPEC 15; a star marks what is required.
KEYS = {
    "command": "command* cwd env timeout",
    "http": "url* method headers body timeout expect callback jobIdPath poll auth idempotent",
    "airflow": "url* dagId* conf auth apiVersion",
    "glue": "jobName* arguments workerType numberOfWorkers timeoutMinutes falseSuccessCheck",
    "emr": "clusterId* stepName jar arguments* actionOnFailure",
    "emr-serverless": "applicationId* executionRoleArn* jobDriver* jobName configurationOverrides timeoutMinutes",
    "step-function": "stateMachineArn* input",
    "databricks": "host* jobId jobName submit parameters auth",
    "lambda": "functionName* payload qualifier mode",
    "external": "",
}


@pytest.mark.parametrize("type_", JobType)
def test_every_type_of_job_has_the_keys_of_the_table(type_: JobType) -> None:
    words = KEYS[type_].split()
    fields = msgspec.structs.fields(JOB_CONFIGS[type_])
    on_aws = type_ in ("glue", "emr", "emr-serverless", "step-function", "lambda")

    assert {field.encode_name for field in fields} == {word.rstrip("*") for word in words} | (AWS if on_aws else set())
    assert {field.encode_name for field in fields if field.required} == {
        word.rstrip("*") for word in words if word.endswith("*")
    }
