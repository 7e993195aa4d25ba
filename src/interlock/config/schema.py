"""The JSON Schema of a pipeline file, for editors: made from the model's own types, with the accepted aliases.

It accepts what the loader accepts, as far as a schema can tell. A pipeline with an archetype gets what it lacks from
there, so then nothing is required of its own file. (msgspec's own generator cannot write the default of a duration.)
"""

from collections.abc import Iterable
from inspect import cleandoc
from typing import Any, Final

import msgspec
from msgspec import inspect

from interlock.config.decode import encode_duration
from interlock.model.config import Check, Mode, PipelineConfig, Weekday
from interlock.model.config_descriptions import DESCRIPTIONS
from interlock.model.job_configs import JOB_CONFIGS
from interlock.model.probe_configs import PROBE_CONFIGS
from interlock.ports.job_types import known_types

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_NUMBER: Final = r"[0-9]+(\.[0-9]+)?"
_DURATION: Final = {
    "type": "string",
    "description": "A duration: 1h30m, 45s, 500ms, 2d or PT2H",
    "pattern": rf"^\s*(({_NUMBER}(us|µs|ms|s|m|h|d))+|P([0-9]+W)?({_NUMBER}D)?"
    rf"(T({_NUMBER}H)?({_NUMBER}M)?({_NUMBER}S)?)?)\s*$",
}
_TEMPLATE: Final = {"type": "string", "pattern": r"\$\{", "description": "A template, filled in for each run"}
_SHORTEST_WEEKDAY: Final = 3
_MERGED_FROM_ARCHETYPE: Final = {"pipeline": "Info", "validation": "Validation", "job": "Job"}
_LIMITS: Final = {
    "ge": "minimum",
    "le": "maximum",
    "pattern": "pattern",
}

Schema = dict[str, Any]


def pipeline_schema() -> Schema:
    """The schema of a pipeline file."""
    defs: Schema = {}
    _schema(inspect.type_info(PipelineConfig), defs)
    root: Schema = {**defs.pop("PipelineConfig"), "description": "When a pipeline may run, and what it then starts."}
    defs["Check"] = _any_case(defs["Check"], (check.value for check in Check))
    defs["Mode"] = _any_case(defs["Mode"], (mode.value for mode in Mode))
    defs["Weekday"] = _any_case(defs["Weekday"], (day.value for day in Weekday), shortest=_SHORTEST_WEEKDAY)
    defs["Job"]["properties"]["type"] = {"description": "The system that the job lives in", "enum": known_types()}
    _add_aliases(root, defs)
    needed = _add_job_configs(defs)
    _add_probe_configs(defs)
    _require_unless_archetype(root, defs, needed)
    return {"$schema": DIALECT, "title": "Interlock pipeline", **root, "$defs": dict(sorted(defs.items()))}


def _schema(type_: inspect.Type, defs: Schema) -> Schema:
    match type_:
        case inspect.Metadata():
            return {**_schema(type_.type, defs), **(type_.extra_json_schema or {})}
        case inspect.UnionType():
            return {"anyOf": [_schema(one, defs) for one in type_.types]}
        case inspect.StructType() | inspect.EnumType():
            return _reference(type_, defs)
        case inspect.ListType():
            least = {"minItems": type_.min_length} if type_.min_length else {}
            return {"type": "array", "items": _schema(type_.item_type, defs), **least}
        case inspect.LiteralType():
            return {"enum": list(type_.values)}
        case inspect.CustomType():
            return dict(_DURATION)
        case inspect.DictType():
            return {"type": "object", **({"minProperties": type_.min_length} if type_.min_length else {})}
        case inspect.AnyType():
            return {}
        case _:
            return _scalar(type_)


def _scalar(type_: inspect.Type) -> Schema:
    match type_:
        case inspect.StrType():
            least = {"minLength": type_.min_length} if type_.min_length else {}
            return {"type": "string", **least, **_limits(type_)}
        case inspect.IntType():
            return {"type": "integer", **_limits(type_)}
        case inspect.FloatType():
            return {"type": "number", **_limits(type_)}
        case inspect.BoolType():
            return {"type": "boolean"}
        case inspect.NoneType():
            return {"type": "null"}
        case _:
            raise NotImplementedError(f"the model uses {type_}, which has no schema here")


def _limits(type_: inspect.StrType | inspect.IntType | inspect.FloatType) -> Schema:
    given = ((keyword, getattr(type_, name, None)) for name, keyword in _LIMITS.items())
    return {keyword: limit for keyword, limit in given if limit is not None}


def _reference(type_: inspect.StructType | inspect.EnumType, defs: Schema) -> Schema:
    name = type_.cls.__name__
    if name not in defs:
        described = {"description": cleandoc(type_.cls.__doc__ or "")}
        if isinstance(type_, inspect.EnumType):
            defs[name] = {**described, "enum": [member.value for member in type_.cls]}
        else:
            defs[name] = {**described, **_mapping(type_, defs)}
    return {"$ref": f"#/$defs/{name}"}


def _mapping(type_: inspect.StructType, defs: Schema) -> Schema:
    required = [field.encode_name for field in type_.fields if field.required]
    tag = {type_.tag_field: {"const": type_.tag}} if type_.tag_field is not None else {}
    return {
        "type": "object",
        "properties": {**tag, **{field.encode_name: _described(type_, field, defs) for field in type_.fields}},
        "additionalProperties": False,
        **({"required": [*tag, *required]} if tag or required else {}),
    }


def _described(type_: inspect.StructType, field: inspect.Field, defs: Schema) -> Schema:
    description = DESCRIPTIONS.get(type_.cls, {}).get(field.encode_name)
    return {**_property(field, defs), **({"description": description} if description else {})}


def _property(field: inspect.Field, defs: Schema) -> Schema:
    schema = _schema(field.type, defs)
    # A default that is nothing, or all defaults again, tells nobody anything.
    default = msgspec.to_builtins(field.default, enc_hook=encode_duration) if _has_default(field) else None
    return schema if default in (None, "", {}) else {**schema, "default": default}


def _has_default(field: inspect.Field) -> bool:
    return field.default is not msgspec.NODEFAULT


def _add_aliases(root: Schema, defs: Schema) -> None:
    exclude = defs["Schedule"]["properties"]["exclude"]
    root["properties"]["exclusions"] = {**exclude, "description": "Another way to write schedule.exclude"}
    calendar = {"type": "string", "description": "Another way to write exclude.calendar"}
    defs["Schedule"]["properties"]["calendar"] = calendar
    validation = defs["Validation"]["properties"]
    validation["mode"] = {**validation["trigger"], "description": "Another way to write trigger"}


def _add_job_configs(defs: Schema) -> list[Schema]:
    """`job.config` by `job.type`. What a type's config must have is returned: an archetype may give it."""
    job, needed = defs["Job"], []
    job["allOf"] = []
    for type_, struct in JOB_CONFIGS.items():
        own: Schema = {}
        reference = _schema(inspect.type_info(struct), own)
        required = own[struct.__name__].pop("required", [])
        defs.update({name: _or_template(schema) for name, schema in own.items()})
        of_type = {"properties": {"type": {"const": str(type_)}}, "required": ["type"]}
        job["allOf"].append({"if": of_type, "then": {"properties": {"config": reference}}})
        if required:
            then = {"required": ["config"], "properties": {"config": {"required": required}}}
            needed.append({"if": of_type, "then": then})
    return needed


def _add_probe_configs(defs: Schema) -> None:
    """The `config` of a probe by its `type`."""
    probe = defs["Probe"]
    probe["allOf"] = []
    for type_, struct in PROBE_CONFIGS.items():
        own: Schema = {}
        reference = _schema(inspect.type_info(struct), own)
        defs.update({name: _or_template(schema) for name, schema in own.items()})
        then = {"required": ["config"], "properties": {"config": reference}}
        probe["allOf"].append(
            {"if": {"properties": {"type": {"const": str(type_)}}, "required": ["type"]}, "then": then}
        )


def _or_template(schema: Schema) -> Schema:
    """In a job's config a template may stand for every number, boolean, duration and word."""
    if "properties" in schema:
        return {**schema, "properties": {name: _or_template(inner) for name, inner in schema["properties"].items()}}
    if "anyOf" in schema:
        return {**schema, "anyOf": [*(_or_template(one) for one in schema["anyOf"])]}
    if "items" in schema:
        return {**schema, "items": _or_template(schema["items"])}
    strict = {key: value for key, value in schema.items() if key not in ("description", "default")}
    if not strict or "$ref" in strict or "const" in strict or strict.get("type") in ("object", "null"):
        return schema
    if strict == {"type": "string"}:
        return schema
    outer = {key: value for key, value in schema.items() if key not in strict}
    return {**outer, "anyOf": [strict, dict(_TEMPLATE)]}


def _require_unless_archetype(root: Schema, defs: Schema, needed: list[Schema]) -> None:
    inner = {name: {"required": defs[type_].pop("required")} for name, type_ in _MERGED_FROM_ARCHETYPE.items()}
    inner["job"]["allOf"] = needed
    required = [name for name in root.pop("required") if name != "validation"]
    root["if"] = {"required": ["archetype"]}
    root["else"] = {
        "required": [*required, "job"],
        "properties": inner,
        "anyOf": [{"required": ["validation"]}, {"required": ["after"]}],  # `after` alone has rules of its own
    }


def _any_case(schema: Schema, words: Iterable[str], *, shortest: int | None = None) -> Schema:
    """Completion offers the words as they are; the pattern accepts them in any case, and abbreviated."""
    listed = list(words)
    pattern = "|".join(_pattern(word, shortest or len(word)) for word in listed)
    return {
        "description": schema["description"],
        "anyOf": [{"enum": listed}, {"type": "string", "pattern": f"^({pattern})$"}],
    }


def _pattern(word: str, shortest: int) -> str:
    letters = [f"[{letter.lower()}{letter.upper()}]" if letter.isalpha() else letter for letter in word]
    optional = "".join(f"({letter}" for letter in letters[shortest:]) + ")?" * (len(letters) - shortest)
    return "".join(letters[:shortest]) + optional
