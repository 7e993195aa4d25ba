"""The one route that must be fast: `PUT pipelines/{id}/sensors/{key}`, without a route and without a thread.

Plain writes take a shorter way (`plain_writes`); the others, and all that are refused, come here. The same checks and
the same answers as `sensors.write_sensor`, which describes the route (and serves it when a query is given). What takes
time is the commit; the connection waits for it as a future, so that many connections share one commit and none holds a
thread. The config is read here, on the loop: a read of a few pages that are in memory.
"""

import asyncio
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from interlock.api.auth import PRINCIPAL, Principal, authenticate, why_not
from interlock.api.credentials import credentials_of
from interlock.api.problems import ProblemError, RequestError, judge
from interlock.api.state import AppState
from interlock.control import writing
from interlock.embedded.access.tokens import Scope
from interlock.model.errors import UnknownPipelineError

TEMPLATE: Final = "/api/v1/pipelines/{pipeline}/sensors/{key}"
_ADDRESS: Final = re.compile(rb"/api/v1/pipelines/([^/]+)/sensors/(.+)")

_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


def is_sensor_write(scope: Mapping[str, Any]) -> bool:
    """Is this a request for here?"""
    if scope["method"] != "PUT" or scope.get("query_string"):
        return False
    return _ADDRESS.fullmatch(scope.get("raw_path") or b"") is not None


class SensorWrites:
    """Writes sensors for one controller."""

    def __init__(self, state: AppState) -> None:
        self._service = state.service
        self._state = state

    async def write(self, scope: Mapping[str, Any], headers: Mapping[bytes, bytes], body: bytes) -> bytes:
        """The answer's body, once the observation is durable. Raises what refuses it."""
        caller = self._caller(scope, headers)
        found = _ADDRESS.fullmatch(scope["raw_path"])
        if found is None:
            raise RequestError(HTTPStatus.NOT_FOUND, "not-found", "this is not the address of a sensor")
        pipeline, key = (unquote(part.decode("latin-1"), errors="replace") for part in found.groups())
        data = _observation(body)
        service = self._service
        try:
            caller.check_stored(Scope.SENSOR_WRITE, service.store, pipeline)
            put, written = writing.prepare_sensor(caller.writing_sensors(service), pipeline, key, data, by=caller.name)
        except UnknownPipelineError as error:
            # Finding the nearest names takes long enough to hold up every other connection.
            names = caller.may(Scope.READ)
            raise await asyncio.to_thread(judge, error, names=names) from error
        await asyncio.wrap_future(service.submit(put))
        return msgspec.json.encode(written)

    def _caller(self, scope: Mapping[str, Any], headers: Mapping[bytes, bytes]) -> Principal:
        shown = credentials_of(scope, headers)
        caller = authenticate(self._service, shown)
        if caller is None:
            raise self._state.logins.refusal(shown, why_not(self._service, shown))
        scope["state"][PRINCIPAL] = caller
        caller.check(Scope.SENSOR_WRITE)
        self._state.rates.take(caller.name)
        return caller


def _observation(body: bytes) -> dict[str, Any]:
    try:
        return _decode(body)
    except msgspec.ValidationError as error:
        wrong = [ProblemError(path="data", message=str(error))]
        raise RequestError(
            HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-request", f"data: {error}", errors=wrong
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RequestError(HTTPStatus.BAD_REQUEST, "malformed", f"the body is not JSON: {error}") from error
    except RecursionError as error:
        raise RequestError(HTTPStatus.BAD_REQUEST, "malformed", "the body is nested far too deep") from error
