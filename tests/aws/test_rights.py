"""The planned policies against the rights that were used: nothing is denied, and nothing is given that nobody needs."""

import json
from collections.abc import Callable
from typing import Final

import pytest

from tests.aws import rare_rights
from tests.aws.rights import FILE, _plain
from tests.aws.world.cloud import Cloud
from tests.aws.world.rights import Need, allowed, unused
from tests.aws.world.terraform import shipped

# Given, and not seen in the recording; each with the reason, and with the test that proves it.
UNSEEN: Final[dict[str, dict[str, str]]] = {
    "alert-dispatcher": {
        "ThreadsAndDeliveries: dynamodb:DeleteItem": (
            "the first alert that gets through after one that was given up after a day:"
            " tests/control/alerts/test_delivery_records.py"
        ),
    },
}


def _used(role: str) -> set[Need]:
    found: dict[str, list[list[str]]] = json.loads(FILE.read_text(encoding="utf-8"))
    return {Need(*need) for need in found[role]}


@pytest.mark.parametrize("role", sorted(shipped().policies))
def test_everything_that_was_used_is_allowed(role: str) -> None:
    policy = shipped().policies[role]
    assert [need for need in _used(role) if not allowed(policy, need)] == []


@pytest.mark.parametrize("role", sorted(shipped().policies))
def test_nothing_is_given_that_nobody_needs(role: str) -> None:
    """If a right is new, and used: `python -m tests.aws.rights`."""
    found = unused(shipped().policies[role], _used(role))
    assert sorted(found) == sorted(UNSEEN.get(role.removeprefix("test-interlock-"), {}))


def test_the_dispatcher_may_keep_the_thread_of_a_run() -> None:
    """Slack's threads are an Update in the commit that records an alert as sent: denied, it would be sent again."""
    table = "arn:aws:dynamodb:us-east-1:123456789012:table/test-interlock-events"
    assert allowed(shipped().policies["test-interlock-alert-dispatcher"], Need("dynamodb:UpdateItem", table))


@pytest.mark.parametrize("case", rare_rights.ALL, ids=lambda case: case.__name__.replace("_", "-"))
def test_a_rare_case_is_allowed_and_was_recorded(case: Callable[[], Cloud]) -> None:
    cloud = case()
    assert cloud.rights.denied == []
    recorded = {role: _used(role) for role in shipped().policies}
    played = {role: {Need(*_plain(need)) for need in needs} for role, needs in cloud.rights.used.items()}
    assert {role: needs - recorded[role] for role, needs in played.items() if needs - recorded[role]} == {}
