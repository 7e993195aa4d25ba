"""One table of what AWS's refusals mean, over the errors that boto3 really makes of its answers."""

import pytest
from botocore import exceptions as boto
from botocore.parsers import ResponseParserError

from interlock.jobs.aws.clients import AwsClients
from interlock.jobs.aws.errors import Refusal, asking, category_of, code_of, refusal_of, starting
from interlock.jobs.aws.glue import GlueRunner
from interlock.model.errors import InterlockError, JobStartError, UnavailableError
from interlock.model.job_configs import GlueConfig
from interlock.model.run import FailureCategory
from tests.conformance.manual_clock import ManualClock
from tests.jobs.aws.moto_services import refuse
from tests.jobs.command.trials import request

PERMANENT, TRANSIENT, UNKNOWN = Refusal.PERMANENT, Refusal.TRANSIENT, Refusal.UNKNOWN


@pytest.mark.parametrize(
    ("code", "status", "message", "meaning"),
    [
        ("AccessDeniedException", 400, "not authorized to perform: glue:StartJobRun", PERMANENT),
        ("UnrecognizedClientException", 400, "The security token is invalid", PERMANENT),
        ("EntityNotFoundException", 400, "no such job", PERMANENT),
        ("InvalidInputException", 400, "bad argument", PERMANENT),
        ("ValidationException", 400, "A job flow that is terminated may not be modified", PERMANENT),
        ("SomethingNew", 400, "never heard of it", PERMANENT),
        ("InvalidZipFileException", 502, "not a zip", PERMANENT),
        ("ConcurrentRunsExceededException", 400, "too many", TRANSIENT),
        ("ResourceNumberLimitExceededException", 400, "too many", TRANSIENT),
        ("ValidationException", 400, "Maximum number of active steps exceeded", TRANSIENT),
        ("ThrottlingException", 400, "Rate exceeded", TRANSIENT),
        ("ClientError", 400, "Rate exceeded", TRANSIENT),
        ("TooManyRequestsException", 429, "slow down", TRANSIENT),
        ("SomethingNew", 429, "slow down", TRANSIENT),
        ("ServiceUnavailableException", 503, "later", TRANSIENT),
        ("SomethingNew", 503, "later", TRANSIENT),
        ("ExpiredTokenException", 400, "expired", TRANSIENT),
        ("InternalServiceException", 500, "broke", UNKNOWN),
        ("OperationTimeoutException", 400, "took too long", UNKNOWN),
        ("SomethingNew", 500, "broke", UNKNOWN),
        ("SomethingNew", 504, "gateway", UNKNOWN),
    ],
)
def test_an_answer_of_aws(clients: AwsClients, code: str, status: int, message: str, meaning: Refusal) -> None:
    runner = GlueRunner(clients, ManualClock())
    refuse(clients.starting("glue", GlueConfig(job_name="etl")), "StartJobRun", code, message, status)
    with pytest.raises(InterlockError) as caught:
        runner.start(request(jobName="etl"))
    assert f"Glue job etl: {code}: {message}" in str(caught.value)
    assert code_of(caught.value.__cause__ or caught.value) == code
    match meaning:
        case Refusal.UNKNOWN:
            assert isinstance(caught.value, UnavailableError)
        case _:
            assert isinstance(caught.value, JobStartError)
            assert caught.value.permanent is (meaning is PERMANENT)


@pytest.mark.parametrize(
    ("error", "meaning", "word"),
    [
        (boto.NoCredentialsError(), TRANSIENT, "give the controller a role"),
        (boto.NoRegionError(), PERMANENT, "AWS_REGION"),
        (boto.ProfileNotFound(profile="etl"), PERMANENT, "etl"),
        (boto.ParamValidationError(report="bad"), PERMANENT, "bad"),
        (boto.EndpointConnectionError(endpoint_url="https://x"), TRANSIENT, "https://x"),
        (boto.ConnectTimeoutError(endpoint_url="https://x"), TRANSIENT, "https://x"),
        (boto.ReadTimeoutError(endpoint_url="https://x"), UNKNOWN, "https://x"),
        (boto.ConnectionClosedError(endpoint_url="https://x"), UNKNOWN, "https://x"),
        (ResponseParserError("nonsense"), UNKNOWN, "nonsense"),
    ],
)
def test_an_error_of_boto3_itself(error: Exception, meaning: Refusal, word: str) -> None:
    assert refusal_of(error) is meaning
    with pytest.raises(InterlockError, match="it: ") as caught, starting("it"):
        raise error
    assert word in str(caught.value)
    assert isinstance(caught.value, UnavailableError) is (meaning is UNKNOWN)
    with pytest.raises(UnavailableError), asking("it"):
        raise error


def test_what_is_not_of_aws_is_left_alone() -> None:
    with pytest.raises(ZeroDivisionError), starting("it"):
        _ = 1 / 0
    with pytest.raises(JobStartError, match=r"^no$"), asking("it"):
        raise JobStartError("no", permanent=True)


@pytest.mark.parametrize(
    ("error", "category"),
    [
        ("", FailureCategory.PERMANENT),
        ("AnalysisException: column `a` does not exist", FailureCategory.PERMANENT),
        ("java.io.IOException: No space left on device", FailureCategory.PERMANENT),
        ("ExecutorLostFailure (executor 3 exited)", FailureCategory.TRANSIENT),
        ("Rate exceeded (Service: S3)", FailureCategory.TRANSIENT),
        ("com.amazonaws...: Please reduce your request rate. SlowDown", FailureCategory.TRANSIENT),
        ("io.delta.exceptions.ConcurrentAppendException: files were added", FailureCategory.TRANSIENT),
        ("java.net.SocketTimeoutException: Read timed out", FailureCategory.TRANSIENT),
        ("Insufficient instance capacity", FailureCategory.TRANSIENT),
    ],
)
def test_whose_fault_a_failed_job_is(error: str, category: FailureCategory) -> None:
    assert category_of(error) is category
