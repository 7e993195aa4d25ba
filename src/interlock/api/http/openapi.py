"""The description of all routes, OpenAPI 3.1, out of the same declarations that requests are checked against."""

import inspect
import types
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, get_args, get_origin, get_type_hints

import msgspec

from interlock.api.http.declarations import Example, ResponseSpec, Route
from interlock.api.http.messages import JSON, Response, Stream
from interlock.api.http.parameters import BodyField, Field, Plan, alternatives, default_of

_REFERENCE: Final = "#/components/schemas/{name}"
Document = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What the description says of the API as a whole."""

    title: str
    version: str
    description: str
    security_schemes: Mapping[str, Any]
    security: list[Mapping[str, Any]]


def describe(routes: Mapping[Route, Plan], about: About) -> Document:
    """The whole document."""
    schemas = _Schemas(_types(routes))
    paths: Document = {}
    for route, plan in routes.items():
        paths.setdefault(route.template, {})[route.method.lower()] = _operation(route, plan, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": about.title, "version": about.version, "description": about.description},
        "servers": [{"url": "/"}],
        "security": about.security,
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.components.items())),
            "securitySchemes": dict(about.security_schemes),
        },
    }


def _operation(route: Route, plan: Plan, schemas: "_Schemas") -> Document:
    made: Document = {
        "operationId": route.operation_id,
        "summary": route.summary,
        "description": route.description,
        "tags": list(route.tags),
        "responses": _responses(route, schemas),
    }
    if plan.fields:
        made["parameters"] = [_parameter(field, schemas) for field in plan.fields]
    if plan.body is not None:
        made["requestBody"] = _body(plan.body, schemas)
    if route.security is not None:
        made["security"] = list(route.security)
    return made


def _parameter(field: Field, schemas: "_Schemas") -> Document:
    schema = schemas.of(field.type)
    default = default_of(field)
    if default is not None:
        schema = {**schema, "default": default}
    made = {"name": field.name, "in": field.source, "required": field.required, "schema": schema}
    return {**made, "description": field.description} if field.description else made


def _body(body: BodyField, schemas: "_Schemas") -> Document:
    content: Document = {"schema": schemas.of(body.type)}
    if body.declared.examples:
        content["examples"] = {
            _slug(one): {"summary": one.summary, "value": one.value} for one in body.declared.examples
        }
    made: Document = {"required": True, "content": {JSON: content}}
    return {"description": body.declared.description, **made} if body.declared.description else made


def _slug(example: Example) -> str:
    return "-".join(example.summary.split())


def _responses(route: Route, schemas: "_Schemas") -> Document:
    usual = ResponseSpec(
        data_container=_result(route),
        description=HTTPStatus(route.status_code).description or HTTPStatus(route.status_code).phrase,
        media_type=route.media_type,
    )
    specs = {route.status_code: usual, **route.responses}
    return {str(status): _response(specs[status], schemas) for status in sorted(specs)}


def _response(spec: ResponseSpec, schemas: "_Schemas") -> Document:
    if spec.data_container is None:
        return {"description": spec.description}
    content = {"schema": schemas.of(spec.data_container)}
    return {"description": spec.description, "content": {spec.media_type: content}}


def _result(route: Route) -> Any:
    """The type of what a route answers; None for nothing."""
    kind = get_type_hints(route.function, include_extras=True).get("return")
    if get_origin(kind) is Response:
        (kind,) = get_args(kind)
    if kind is Stream or kind is bytes:
        return str
    return None if kind is types.NoneType else kind


# --------------------------------------------------------------------------------------------------------- schemas


def _types(routes: Mapping[Route, Plan]) -> Iterator[Any]:
    for route, plan in routes.items():
        yield from (field.type for field in plan.fields)
        yield from () if plan.body is None else (plan.body.type,)
        for kind in (_result(route), *(spec.data_container for spec in route.responses.values())):
            yield from _apart(kind)


def _apart(kind: Any) -> tuple[Any, ...]:
    """The types to describe. Of several structs each: together, msgspec could not tell them apart."""
    return () if kind is None else tuple(one for one in alternatives(kind) if one is not types.NoneType)


class _Schemas:
    """The JSON schemas of all types, described together so that each has one name."""

    def __init__(self, kinds: Iterable[Any]) -> None:
        found = list(kinds)
        made, components = msgspec.json.schema_components(found, ref_template=_REFERENCE)
        self._made: dict[Any, Document] = {kind: _cleaned(schema) for kind, schema in zip(found, made, strict=True)}
        self.components: Document = {name: _cleaned(schema) for name, schema in components.items()}

    def of(self, kind: Any) -> Document:
        """The schema of a type."""
        known = self._made.get(kind)
        if known is not None:
            return known
        return {"anyOf": [self._made[one] for one in _apart(kind)]}


def _cleaned(schema: Any) -> Any:
    """As msgspec made it, but in the words of OpenAPI: any object is said to be one, an enum of texts is text.

    Defaults that are empty are left out: a client need not send them, and generated clients would ask for them.
    """
    if isinstance(schema, list):
        return [_cleaned(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {
        key: _part(key, value) for key, value in schema.items() if not (key == "default" and value in (None, [], {}))
    }
    if made.get("type") == "object" and "properties" not in made:
        made.setdefault("additionalProperties", {})
    if "enum" in made and "type" not in made and all(isinstance(one, str) for one in made["enum"]):
        made["type"] = "string"
    if isinstance(made.get("description"), str):
        made["description"] = inspect.cleandoc(made["description"])
    return made


def _part(key: str, value: Any) -> Any:
    match key:
        case "default" | "enum" | "required":
            return value
        case "properties":
            return {name: _cleaned(one) for name, one in value.items()}
        case _:
            return _cleaned(value)
