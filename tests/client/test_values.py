"""What a program hands over: numbers stay numbers, and what JSON cannot say is refused."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from interlock.client import requests
from interlock.client.errors import ClientError
from interlock.client.values import encoded

np: Any = pytest.importorskip("numpy")


def sent(**data: Any) -> Any:
    body = requests.put_sensor("gold", "rows", data, None).body
    assert body is not None
    return msgspec.json.decode(body)


def test_plain_values_are_sent_as_they_are() -> None:
    data = {"count": 5, "ratio": 0.5, "ok": True, "none": None, "list": [1, {"a": "b"}]}
    assert sent(**data) == data
    assert sent(at=datetime(2026, 3, 2, tzinfo=UTC)) == {"at": "2026-03-02T00:00:00Z"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.int64(15432), 15432),
        (np.uint8(7), 7),
        (np.float64(0.25), 0.25),
        (np.float32(0.5), 0.5),
        (np.longdouble(2), 2.0),
        (np.bool_(True), True),
        (np.str_("ready"), "ready"),
        (np.array(5), 5),
        ([np.int64(1), np.float64(2.5)], [1, 2.5]),
        ({"rows": np.int64(1)}, {"rows": 1}),
    ],
)
def test_numpy_scalars_are_numbers(value: Any, expected: Any) -> None:
    found = sent(value=value)["value"]
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), float("-inf"), np.float64("nan"), np.float32("inf"), np.longdouble("nan")]
)
def test_nan_and_infinity_are_refused(value: Any) -> None:
    with pytest.raises(ClientError, match=r"^count is -?(nan|inf), which is not a JSON number"):
        sent(count=value)
    with pytest.raises(ClientError, match=r"^stats\.rows\[1\] is "):
        sent(stats={"rows": [1, value]})
    with pytest.raises(ClientError, match=r"^sensors\[0\]\.data\.count is "):
        requests.batch([requests.Observation(pipeline="gold", key="rows", data={"count": value})])


@pytest.mark.parametrize("value", [object(), np.array([1, 2]), 1j])
def test_what_is_not_json_is_refused(value: Any) -> None:
    with pytest.raises(ClientError, match=r"cannot be sent as JSON: .* is not a JSON value"):
        sent(value=value)


def test_what_is_nested_without_end_is_refused() -> None:
    deep: list[Any] = []
    deep.append(deep)
    with pytest.raises(ClientError, match="cannot be sent as JSON"):
        encoded({"deep": deep})
