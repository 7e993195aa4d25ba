"""The watchdog function: one pass, or slices that it hands out to itself."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from interlock.aws.lambdas import watchdog
from interlock.control.watch import watch_slices
from interlock.control.watch.watch_slices import Slice
from interlock.model.errors import InvalidValueError
from tests.aws.installation import Installation, installation
from tests.conformance.manual_clock import ManualClock


class Lambda:
    """Remembers what it was asked to invoke."""

    def __init__(self) -> None:
        self.invoked: list[tuple[str, str, Any]] = []
        self.down = False

    def invoke(self, *, FunctionName: str, InvocationType: str, Payload: bytes) -> None:  # noqa: N803 - boto3's names
        if self.down:
            raise EndpointConnectionError(endpoint_url="https://lambda")
        self.invoked.append((FunctionName, InvocationType, json.loads(Payload)))


@pytest.fixture
def here() -> Iterator[Installation]:
    with installation(ManualClock()) as found:
        yield found


@pytest.fixture
def functions(here: Installation, monkeypatch: pytest.MonkeyPatch) -> Lambda:
    made = Lambda()
    monkeypatch.setitem(here.clients._made, "lambda", made)
    return made


def complete(here: Installation, part: Slice) -> bool:
    return here.controller.store.get(part.key) is not None


def test_a_small_pass_is_one_slice(here: Installation, functions: Lambda) -> None:
    assert watchdog.handle(here.controller, {"source": "interlock.schedule"}) == {"failed": [], "slices": 1}
    assert functions.invoked == []
    assert complete(here, Slice())


def test_a_large_pass_hands_its_slices_out(
    here: Installation, functions: Lambda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_slices, "slices_for", lambda _: [Slice(number, 4) for number in range(4)])
    assert watchdog.handle(here.controller, {})["slices"] == 4
    name = "test-interlock-watchdog"
    assert functions.invoked == [(name, "Event", {"slice": number, "of": 4}) for number in (1, 2, 3)]
    assert complete(here, Slice(0, 4))
    assert not complete(here, Slice(1, 4))
    watchdog.handle(here.controller, functions.invoked[0][2])
    assert complete(here, Slice(1, 4))


def test_a_slice_that_cannot_be_handed_out_is_looked_at_here(
    here: Installation, functions: Lambda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_slices, "slices_for", lambda _: [Slice(number, 2) for number in range(2)])
    functions.down = True
    watchdog.handle(here.controller, {})
    assert complete(here, Slice(1, 2))


@pytest.mark.parametrize("event", [{"slice": 4, "of": 4}, {"slice": "1", "of": 2}, {"slice": -1}])
def test_a_slice_that_is_none_names_itself(here: Installation, event: dict[str, Any]) -> None:
    with pytest.raises(InvalidValueError, match="no slice"):
        watchdog.handle(here.controller, event)
