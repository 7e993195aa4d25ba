"""A route's arguments, from what its function's annotations say: read, converted, checked, with all errors at once.

Text becomes what the annotation asks for, as msgspec does it without `strict`; so does a body of JSON.
What is wrong is named by where it is in the request: `query.limit`, `path.pipeline`, `body.sensors[3].key`.
"""

import inspect
import re
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl

import msgspec

from interlock.api.http.declarations import Body, Function, Parameter, Provide, Route
from interlock.api.http.messages import Request
from interlock.api.http.routing import RouteError
from interlock.api.problems import ProblemError, RequestError

# msgspec tells where a value is at the end of its message.
_AT: Final = re.compile(r" - at `\$(?P<path>[^`]*)`$")
_MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class Field:
    """An argument that is text in the request."""

    argument: str
    name: str
    source: str
    type: Any
    default: Any
    description: str
    many: bool

    @property
    def required(self) -> bool:
        """Must it be there?"""
        return self.default is _MISSING

    @property
    def where(self) -> str:
        """Its place in the request."""
        return f"{self.source}.{self.name}"


@dataclass(frozen=True, slots=True)
class _Provided:
    argument: str
    make: Callable[[Request, Mapping[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class BodyField:
    """The argument that is the body."""

    argument: str
    type: Any
    declared: Body
    decode: Callable[[bytes], Any]


@dataclass(slots=True)
class Plan:
    """What a function's arguments are made of. `fields` are those of the functions that provide arguments as well."""

    own: list[Field]
    fields: list[Field]
    body: BodyField | None
    provided: list[_Provided]
    request: str = ""

    async def read(self, request: Request) -> dict[str, Any]:
        """The arguments for a request. Raises a problem that names everything that is wrong."""
        errors: list[ProblemError] = []
        values = dict(self._texts(request, errors)) if self.fields else {}
        body = await self._body(request, errors) if self.body is not None else None
        if errors:
            raise _invalid(errors)
        arguments = self.arguments(request, values)
        if self.body is not None:
            arguments[self.body.argument] = body
        return arguments

    def arguments(self, request: Request, values: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments out of the values of all fields, by their place in the request."""
        made = {field.argument: values[field.where] for field in self.own}
        for one in self.provided:
            made[one.argument] = one.make(request, values)
        if self.request:
            made[self.request] = request
        return made

    def _texts(self, request: Request, errors: list[ProblemError]) -> Iterator[tuple[str, Any]]:
        query = _query(request.scope.get("query_string") or b"")
        for field in self.fields:
            text = _text(field, request, query)
            if text is _MISSING:
                if field.required:
                    errors.append(ProblemError(path=field.where, message="is missing"))
                yield field.where, field.default
                continue
            try:
                yield field.where, msgspec.convert(text, field.type, strict=False)
            except msgspec.ValidationError as error:
                errors.append(_located(field.where, error))

    async def _body(self, request: Request, errors: list[ProblemError]) -> Any:
        assert self.body is not None
        content = await request.body()
        if not content:
            errors.append(ProblemError(path="body", message="is missing: send JSON"))
            return None
        try:
            return self.body.decode(content)
        except msgspec.ValidationError as error:
            _read_json(content)  # which is worse than a wrong value
            errors.append(_located("body", error))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            _read_json(content)
            raise
        return None


def _read_json(content: bytes) -> None:
    """Raise a problem that says why a body is not JSON."""
    try:
        msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RequestError(HTTPStatus.BAD_REQUEST, "malformed", f"the body is not JSON: {error}") from error
    except RecursionError as error:
        raise RequestError(HTTPStatus.BAD_REQUEST, "malformed", "the body is nested far too deep") from error


def _query(raw: bytes) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    if raw:
        for name, value in parse_qsl(raw.decode("latin-1"), keep_blank_values=True, errors="replace"):
            found.setdefault(name, []).append(value)
    return found


def _text(field: Field, request: Request, query: Mapping[str, list[str]]) -> Any:
    match field.source:
        case "path":
            return request.path_values[field.name]
        case "query":
            values = query.get(field.name)
            return _MISSING if values is None else values if field.many else values[-1]
        case _:
            value = request.header(field.name)
            return _MISSING if value is None else value


def _located(where: str, error: msgspec.ValidationError) -> ProblemError:
    message = str(error)
    found = _AT.search(message)
    if found is None:
        return ProblemError(path=where, message=message)
    return ProblemError(path=where + found["path"], message=message[: found.start()])


def _invalid(errors: list[ProblemError]) -> RequestError:
    detail = "; ".join(f"{one.path}: {one.message}" for one in errors)
    return RequestError(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-request", detail, errors=errors)


# ------------------------------------------------------------------------------------- from annotations to a plan


def plan_of(route: Route) -> Plan:
    """The plan of a route. Raises when its address and its function do not fit together."""
    plan = _plan(route.function, route)
    named = {field.name for field in plan.fields if field.source == "path"}
    if named != set(route.places):
        raise RouteError(f"{route.where}: the address has {route.places}, the function takes {sorted(named)}")
    return plan


def _plan(function: Function, route: Route) -> Plan:
    hints = get_type_hints(function, include_extras=True)
    plan = Plan([], [], None, [])
    for name, parameter in inspect.signature(function).parameters.items():
        hint = hints[name]
        if hint is Request:
            plan.request = name
            continue
        kind, marker = _marked(hint)
        match marker:
            case Body():
                plan.body = BodyField(name, kind, marker, msgspec.json.Decoder(kind, strict=False).decode)
            case Provide():
                inner = _plan(marker.make, route)
                plan.provided.append(_Provided(name, _maker(marker.make, inner)))
                plan.fields += inner.fields
            case Parameter():
                default = _MISSING if parameter.default is parameter.empty else parameter.default
                made = _field(name, kind, marker, default)
                plan.own.append(made)
                plan.fields.append(made)
            case _:
                raise RouteError(f"{route.where}: nothing says where {name!r} of {function.__qualname__} comes from")
    return plan


def _maker(make: Function, plan: Plan) -> Callable[[Request, Mapping[str, Any]], Any]:
    return lambda request, values: make(**plan.arguments(request, values))


def _marked(hint: Any) -> tuple[Any, Any]:
    """The type in an annotation, and what it says of where the value comes from."""
    if get_origin(hint) is not Annotated:
        return hint, None
    kind, *marks = get_args(hint)
    return kind, next((one for one in marks if isinstance(one, Body | Parameter | Provide)), None)


def _field(argument: str, kind: Any, declared: Parameter, default: Any) -> Field:
    return Field(
        argument=argument,
        name=declared.name or argument,
        source=declared.source,
        type=_limited(kind, declared),
        default=default,
        description=declared.description,
        many=any(get_origin(one) is list for one in alternatives(kind)),
    )


def _limited(kind: Any, declared: Parameter) -> Any:
    """The type with its limits; msgspec wants them on the type itself, not on `type | None`."""
    longest = declared.max_length if declared.max_items is None else declared.max_items
    if declared.ge is not None or declared.le is not None:
        meta = msgspec.Meta(ge=declared.ge, le=declared.le)
    elif declared.min_length is not None or longest is not None:
        meta = msgspec.Meta(min_length=declared.min_length, max_length=longest)
    else:
        return kind
    made = [one if one is types.NoneType else Annotated[one, meta] for one in alternatives(kind)]
    return Union[tuple(made)]  # noqa: UP007  of a list that is only known here


def alternatives(kind: Any) -> tuple[Any, ...]:
    """The types of a union; the type itself of any other."""
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def default_of(field: Field) -> Any:
    """The default of a field that may be left out, as JSON has it."""
    return None if field.required else msgspec.to_builtins(field.default)
