"""Routes as the application runs them: arguments, all errors at once, answers, streams; and what is not assembled."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Any, Literal

import jsonschema
import msgspec
import pytest

from interlock.api.http import (
    Body,
    Example,
    HeaderParameter,
    PathParameter,
    Provide,
    QueryParameter,
    Request,
    Response,
    Route,
    Stream,
    delete,
    get,
    post,
)
from interlock.api.http.application import Application
from interlock.api.http.messages import Message
from interlock.api.http.openapi import About
from interlock.api.http.routing import RouteError
from interlock.api.problems import RequestError
from interlock.model.errors import InvalidValueError

ABOUT = About(title="Test", version="1", description="", security_schemes={}, security=[])


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A part."""

    part_name: Annotated[str, msgspec.Meta(min_length=1)]
    count: int = 1


class Whole(msgspec.Struct, frozen=True, kw_only=True):
    """Some parts."""

    parts: list[Part]
    kind: Literal["a", "b"] = "a"


class Seen(msgspec.Struct, frozen=True):
    """What a route got."""

    values: dict[str, Any]


class Page(msgspec.Struct, frozen=True):
    """From where to where."""

    cursor: str | None
    limit: int


def page(
    cursor: Annotated[str | None, QueryParameter(name="from", max_length=5)] = None,
    limit: Annotated[int, QueryParameter(ge=1, le=10)] = 3,
) -> Page:
    """Made of two parameters."""
    if cursor == "odd":
        raise InvalidValueError("from: is odd")
    return Page(cursor, limit)


@get("/things/{name:str}", operation_id="readThing")
def read_thing(
    request: Request,
    name: Annotated[str, PathParameter(max_length=8)],
    where: Annotated[Page, Provide(page)],
    tags: Annotated[list[str] | None, QueryParameter(name="tag", max_items=2)] = None,
    loud: Annotated[bool, QueryParameter(name="loud")] = False,
    mark: Annotated[str, HeaderParameter(name="X-Mark", max_length=4)] = "",
) -> Seen:
    """Everything that may be said in an address and a header."""
    values = {"name": name, "tags": tags, "loud": loud, "mark": mark, "where": where, "state": request.app.state}
    return Seen({**values, "thread": threading.current_thread() is not threading.main_thread()})


@post("/things", operation_id="makeThing", status_code=201)
def make_thing(
    data: Annotated[Whole, Body(examples=[Example(summary="one part", value={"parts": [{"partName": "x"}]})])],
    limit: Annotated[int, QueryParameter(ge=1)] = 1,
) -> Whole:
    """The same again."""
    return data


@delete("/things/{name:str}", operation_id="deleteThing", status_code=204)
def delete_thing(name: Annotated[str, PathParameter()]) -> None:
    """Gone."""


@get("/text", operation_id="readText", media_type="text/plain", sync_to_thread=False)
def read_text() -> Response[str]:
    """Text with a header, on the loop."""
    where = "loop" if threading.current_thread() is threading.main_thread() else "thread"
    return Response(where, headers={"X-Odd": "1"}, status_code=203)


closed: list[str] = []


async def chunks() -> AsyncIterator[bytes]:
    """Three, and then it waits."""
    try:
        for one in (b"1", b"2", b"3"):
            yield one
        await asyncio.Event().wait()
    finally:
        closed.append("closed")


@get("/stream", operation_id="stream", media_type="text/event-stream")
async def stream() -> Stream:
    """Never ends by itself."""
    return Stream(chunks(), media_type="text/event-stream", headers={"Cache-Control": "no-store"})


@get("/failing", operation_id="failing")
def failing() -> None:
    """Fails."""
    raise ValueError("a secret")


def app(*routes: Route) -> Application:
    all_routes = routes or (read_thing, make_thing, delete_thing, read_text, stream, failing)
    return Application(
        all_routes, guard=lambda *_: None, state="shared", about=ABOUT, threads=2, thread_name="interlock-test"
    )


async def ask(
    application: Application, method: str, target: str, body: bytes = b"", headers: Sequence[tuple[bytes, bytes]] = ()
) -> list[Message]:
    """What the application sends; the body comes in two parts, and then the client goes."""
    path, _, query = target.partition("?")
    incoming: list[Message] = [
        {"type": "http.request", "body": body[:3], "more_body": True},
        {"type": "http.request", "body": body[3:], "more_body": False},
    ]
    sent: list[Message] = []
    enough = asyncio.Event()

    async def receive() -> Message:
        if incoming:
            return incoming.pop(0)
        await enough.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)
        if len(sent) == 4:
            enough.set()

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": list(headers),
        "state": {},
    }
    await application(scope, receive, send)
    return sent


def answer(method: str, target: str, body: bytes = b"", **headers: str) -> tuple[int, dict[str, str], bytes]:
    given = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    start, *rest = asyncio.run(ask(app(), method, target, body, given))
    shown = {name.decode(): value.decode() for name, value in start["headers"]}
    return start["status"], shown, b"".join(one["body"] for one in rest)


def refusal(method: str, target: str, body: bytes = b"", **headers: str) -> RequestError:
    with pytest.raises(RequestError) as refused:
        answer(method, target, body, **headers)
    return refused.value


def test_arguments_come_from_where_they_are_said_to() -> None:
    status, headers, body = answer("GET", "/things/a%20b?tag=x&tag=y&loud=true&from=z&limit=4&other=1", x_mark="m")
    assert (status, headers["content-type"], headers["content-length"]) == (200, "application/json", str(len(body)))
    assert json.loads(body)["values"] == {
        "name": "a b",
        "tags": ["x", "y"],
        "loud": True,
        "mark": "m",
        "where": {"cursor": "z", "limit": 4},
        "state": "shared",
        "thread": True,
    }


def test_what_is_left_out_has_its_default() -> None:
    values = json.loads(answer("GET", "/things/x")[2])["values"]
    assert (values["tags"], values["loud"], values["mark"]) == (None, False, "")
    assert values["where"] == {"cursor": None, "limit": 3}


def test_the_last_of_several_counts_where_one_is_wanted() -> None:
    assert json.loads(answer("GET", "/things/x?limit=1&limit=2")[2])["values"]["where"]["limit"] == 2


def test_all_that_is_wrong_is_said_at_once_and_where() -> None:
    target = f"/things/{'n' * 9}?limit=0&tag=1&tag=2&tag=3&loud=maybe&from=123456"
    found = refusal("GET", target, x_mark="12345")
    assert (found.status, found.slug) == (422, "invalid-request")
    assert {one.path: one.message for one in found.errors} == {
        "path.name": "Expected `str` of length <= 8",
        "query.from": "Expected `str` of length <= 5",
        "query.limit": "Expected `int` >= 1",
        "query.tag": "Expected `array` of length <= 2",
        "query.loud": "Expected `bool`, got `str`",
        "header.X-Mark": "Expected `str` of length <= 4",
    }
    assert "query.limit: Expected `int` >= 1; " in str(found)


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        (b"", {"body": "is missing: send JSON"}),
        (b"[]", {"body": "Expected `object`, got `array`"}),
        (b"{}", {"body": "Object missing required field `parts`"}),
        (
            b'{"parts": [{"partName": "x"}, {"partName": ""}]}',
            {"body.parts[1].partName": "Expected `str` of length >= 1"},
        ),
        (b'{"parts": [{"partName": "x", "z": 1}]}', {"body.parts[0]": "Object contains unknown field `z`"}),
        (b'{"parts": [], "kind": "c"}', {"body.kind": "Invalid enum value 'c'"}),
    ],
)
def test_what_is_wrong_in_a_body_is_said_with_its_path(body: bytes, paths: dict[str, str]) -> None:
    found = refusal("POST", "/things?limit=0", body)
    assert found.status == 422
    assert {one.path: one.message for one in found.errors} == {"query.limit": "Expected `int` >= 1", **paths}


@pytest.mark.parametrize(
    "body", [b"{", b'{"z": ', b'{"parts": "\xff"}', b"[" * 5000, b'{"parts": [], "z": NaN}', b"{}x"]
)
def test_a_body_that_is_not_json_is_malformed(body: bytes) -> None:
    found = refusal("POST", "/things", body)
    assert (found.status, found.slug) == (400, "malformed")
    assert str(found).startswith("the body is")


def test_answers() -> None:
    status, headers, body = answer("POST", "/things", b'{"parts": [{"partName": "x", "count": "2"}]}')
    assert (status, json.loads(body)) == (201, {"parts": [{"partName": "x", "count": 2}], "kind": "a"})
    assert answer("DELETE", "/things/x") == (204, {}, b"")
    status, headers, body = answer("GET", "/text")
    assert (status, body, headers["x-odd"]) == (203, b"loop", "1")
    assert headers["content-type"] == "text/plain; charset=utf-8"
    assert answer("OPTIONS", "/things/x") == (204, {"allow": "DELETE, GET, OPTIONS"}, b"")


def test_what_fails_is_a_problem_that_tells_nothing() -> None:
    found = refusal("GET", "/failing")
    assert (found.status, found.slug) == (500, "internal")
    assert "secret" not in str(found)
    assert refusal("GET", "/things/x?from=odd").status == 422


def test_a_stream_is_closed_when_its_client_goes() -> None:
    closed.clear()
    status, headers, body = answer("GET", "/stream")
    assert (status, body) == (200, b"123")
    assert headers["content-type"].startswith("text/event-stream")
    assert closed == ["closed"]


def test_a_client_that_goes_before_its_body_gets_nothing() -> None:
    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        raise AssertionError(message)

    scope = {"type": "http", "method": "POST", "path": "/things", "raw_path": b"/things", "headers": [], "state": {}}
    asyncio.run(app()(scope, receive, send))


# ------------------------------------------------------------------------------------------------------- assembling


def test_two_handlers_of_one_address_are_not_assembled() -> None:
    @get("/text", operation_id="other")
    def other() -> None:
        """Another."""

    with pytest.raises(RouteError, match=r"GET /text \(.*read_text\) and GET /text \(.*other\)"):
        app(read_text, other)


def test_two_routes_of_one_name_are_not_assembled() -> None:
    @get("/other", operation_id="readText")
    def other() -> None:
        """Another."""

    with pytest.raises(RouteError, match="two routes have the operation id 'readText'"):
        app(read_text, other)


def test_an_address_and_its_function_have_the_same_parameters() -> None:
    @get("/a/{name:str}")
    def without() -> None:
        """Takes nothing."""

    @get("/a")
    def beyond(name: Annotated[str, PathParameter()]) -> None:
        """Takes more."""

    @get("/a")
    def unsaid(name: str) -> None:
        """Does not say from where."""

    for route, message in ((without, "the address has"), (beyond, "the address has"), (unsaid, "nothing says where")):
        with pytest.raises(RouteError, match=message):
            app(route)


# ------------------------------------------------------------------------------------------------------ description


def test_the_description_is_made_of_the_same_declarations() -> None:
    found = json.loads(app().description())
    jsonschema.Draft202012Validator.check_schema(found["components"]["schemas"]["Whole"])
    thing = found["paths"]["/things/{name}"]["get"]
    assert thing["description"] == "Everything that may be said in an address and a header."
    parameters = {one["name"]: one for one in thing["parameters"]}
    assert list(parameters) == ["name", "from", "limit", "tag", "loud", "X-Mark"]
    assert parameters["limit"] == {
        "name": "limit",
        "in": "query",
        "required": False,
        "schema": {"type": "integer", "minimum": 1, "maximum": 10, "default": 3},
    }
    assert parameters["name"]["required"]
    body = found["paths"]["/things"]["post"]["requestBody"]
    assert body["required"]
    content = body["content"]["application/json"]
    assert content["schema"] == {"$ref": "#/components/schemas/Whole"}
    assert content["examples"] == {"one-part": {"summary": "one part", "value": {"parts": [{"partName": "x"}]}}}
    assert found["paths"]["/things/{name}"]["delete"]["responses"]["204"].keys() == {"description"}
    assert found["components"]["schemas"]["Part"]["additionalProperties"] is False
    assert found["components"]["schemas"]["Seen"]["properties"]["values"]["additionalProperties"] == {}
