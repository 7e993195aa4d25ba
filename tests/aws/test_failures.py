"""Which error of ours a refusal of AWS becomes."""

from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from interlock.aws import failures
from interlock.model.errors import StoreError, ThrottledError, UnavailableError


def _error(code: str, **more: Any) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}, **more}, "UpdateItem")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (_error("ProvisionedThroughputExceededException"), ThrottledError),
        (_error("TransactionConflictException"), ThrottledError),
        (_error("InternalServerError"), UnavailableError),
        (EndpointConnectionError(endpoint_url="http://127.0.0.1"), UnavailableError),
        (_error("Odd"), StoreError),
    ],
    ids=lambda value: str(getattr(value, "__name__", value))[:60],
)
def test_throttling_has_a_name_of_its_own_for_the_lifecycle_to_retry(error: Exception, kind: type[Exception]) -> None:
    assert type(failures.translated(error, "writing")) is kind


def test_a_transaction_that_collided_counts_as_throttled() -> None:
    reasons = [{"Code": "None"}, {"Code": "TransactionConflict"}]
    error = _error("TransactionCanceledException", CancellationReasons=reasons)
    assert type(failures.passing(error, "committing")) is ThrottledError
