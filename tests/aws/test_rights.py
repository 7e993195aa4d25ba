"""The planned policies against the rights that were used: nothing is denied, and nothing is given that nobody needs."""

import json
from typing import Final

import pytest

from tests.aws.rights import FILE
from tests.aws.world.rights import Need, allowed, unused
from tests.aws.world.terraform import shipped

# Given, and not seen in the recording; each with the reason.
UNSEEN: Final[dict[str, dict[str, str]]] = {}


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
