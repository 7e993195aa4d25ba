"""Pages made from the program itself when the documentation is built: config keys, event catalogue, cost on AWS."""

import sys
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

import msgspec
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from msgspec import inspect

from interlock.config.decode import encode_duration
from interlock.model.config import Calendar, JobType, PipelineConfig
from interlock.model.config_descriptions import DESCRIPTIONS
from interlock.model.events import CATALOGUE
from interlock.model.job_configs import JOB_CONFIGS
from interlock.model.probe_configs import PROBE_CONFIGS


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages before the navigation is made."""
    files.append(File.generated(config, "reference/config.md", content=config_page()))
    files.append(File.generated(config, "reference/events.md", content=events_page()))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: object) -> str:
    """The cost page is made of what is measured now, at the prices of now."""
    if page.file.src_uri != "guide/aws/cost.md":
        return markdown
    sys.path.insert(0, str(Path(__file__).parent.parent))  # mkdocs runs from anywhere
    from tools.costs import with_tables

    return with_tables(markdown)


# -------------------------------------------------------------------------------------------------------- events


def events_page() -> str:
    """Every event type: severity, when, fields."""
    rows = "\n".join(
        f"| `{type_}` | {entry.severity} | {entry.when} | {', '.join(f'`{name}`' for name in entry.fields)} |"
        for type_, entry in CATALOGUE.items()
    )
    return f"""# Event catalogue

Every event has the form

```json
{{"source": "interlock", "detail-type": "JOB_TRIGGERED",
 "detail": {{"pipelineId": "...", "scheduleId": "...", "date": "...", "message": "...", "timestamp": "...",
            "severity": "info", "detail": {{}}}}}}
```

The fields named here are those of the inner `detail`. Events are committed with the change they tell of, kept for
90 days, and published in their order per pipeline. Subscribers filter with EventBridge patterns; a pattern in
`[[alerts]]` that names an unknown type or field is an error at the start.

| type | severity | when | fields |
|---|---|---|---|
{rows}
"""


# -------------------------------------------------------------------------------------------------------- config

_INTRODUCTION = """Made from the types that read the files. `interlock validate` checks them, `interlock schema` prints
the JSON Schema: point your editor at it. Unknown keys are errors, with a "did you mean".

A **duration** is written `1h30m`, `45s`, `500ms`, `2d` or `PT2H`, always with its unit. A **time** is `HH:MM`; where
`:MM` is allowed, it is for hourly runs. In a job's config a template such as `${DATE}` may stand in place of any text,
number, boolean or duration.

Two keys have another way to write them: a top-level `exclusions: {days, dates, calendar}` is `schedule.exclude`, and
`schedule.calendar` is `schedule.exclude.calendar`.
"""
# What the types leave open and the loader asks for.
_REQUIRED = {
    (PipelineConfig, "job"): "**required**",
    (PipelineConfig, "validation"): "**required**, unless `after` is given",
}
_JOBS = "## Jobs"


def config_page() -> str:
    """Every key of a pipeline's config, one section per mapping, in the order in which they are met."""
    sections = _Sections()
    sections.visit(PipelineConfig, "")
    parts = ["# Config reference", "", _INTRODUCTION, *sections.lines]
    parts += ["", "## Calendars", "", "A file in `calendars/`.", "", *_table(Calendar, "")]
    parts += ["", _JOBS, "", "`job.config` by `job.type`."]
    for type_ in JobType:
        struct = JOB_CONFIGS[type_]
        jobs = _Sections()
        jobs.visit(struct, f"job.config of {type_}")
        parts += jobs.lines
    parts += ["", "## Probes", "", "`config` of a probe by its `type`."]
    for kind, probe in PROBE_CONFIGS.items():
        probes = _Sections()
        probes.visit(probe, f"probes[].config of {kind}")
        parts += probes.lines
    return "\n".join(parts) + "\n"


class _Sections:
    """Sections for a type and for the types its fields have, each once."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._seen: set[type] = set()

    def visit(self, struct: type[msgspec.Struct], path: str) -> None:
        if struct in self._seen:
            return
        self._seen.add(struct)
        said = cleandoc(struct.__doc__ or "") if path else "The keys at the top of a file."
        self.lines += ["", f"## {path or 'A pipeline'}", "", said, ""]
        found = inspect.type_info(struct)
        assert isinstance(found, inspect.StructType)
        if not found.fields:
            return
        self.lines += _table(struct, path)
        for field in found.fields:
            for inner, listed in _structs(field.type):
                below = f"{path}.{field.encode_name}" if path else field.encode_name
                tag = f" (type: {inner.__struct_config__.tag})" if inner.__struct_config__.tag else ""
                self.visit(inner, below + ("[]" if listed else "") + tag)


def _table(struct: type[msgspec.Struct], path: str) -> list[str]:
    found = inspect.type_info(struct)
    assert isinstance(found, inspect.StructType)
    rows = ["| key | | type | default |", "|---|---|---|---|"]
    for field in found.fields:
        default = _REQUIRED.get((struct, field.encode_name)) or ("**required**" if field.required else _default(field))
        described = _cell(_description(struct, field))
        rows.append(f"| `{field.encode_name}` | {described} | {_cell(_type(field.type))} | {default} |")
    return rows


def _description(struct: type[msgspec.Struct], field: inspect.Field) -> str:
    described = DESCRIPTIONS.get(struct, {}).get(field.encode_name)
    return described or next(_descriptions(field.type), "")


def _descriptions(type_: inspect.Type) -> Iterator[str]:
    if isinstance(type_, inspect.Metadata):
        described = (type_.extra_json_schema or {}).get("description")
        if described:
            yield str(described)
        yield from _descriptions(type_.type)
    elif isinstance(type_, inspect.UnionType):
        for one in type_.types:
            yield from _descriptions(one)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _structs(type_: inspect.Type, *, listed: bool = False) -> Iterator[tuple[type[msgspec.Struct], bool]]:
    """The mappings that a field may hold, and whether it holds a list of them."""
    match type_:
        case inspect.Metadata():
            yield from _structs(type_.type, listed=listed)
        case inspect.UnionType():
            for one in type_.types:
                yield from _structs(one, listed=listed)
        case inspect.ListType():
            yield from _structs(type_.item_type, listed=True)
        case inspect.StructType():
            yield type_.cls, listed


def _default(field: inspect.Field) -> str:
    default = field.default if field.default is not msgspec.NODEFAULT else None
    if default is None and field.default_factory is not msgspec.NODEFAULT:
        return ""
    plain = msgspec.to_builtins(default, enc_hook=encode_duration)
    if plain in (None, "", {}, []):
        return ""
    return f"`{plain if isinstance(plain, str) else msgspec.json.encode(plain).decode()}`"


def _type(type_: inspect.Type) -> str:
    match type_:
        case inspect.Metadata():
            return _type(type_.type)
        case inspect.UnionType():
            kinds = [_type(one) for one in type_.types if not isinstance(one, inspect.NoneType)]
            return " or ".join(dict.fromkeys(kinds))
        case inspect.StructType():
            return "mapping"
        case inspect.ListType():
            return f"list of {_type(type_.item_type)}"
        case inspect.EnumType():
            return ", ".join(f"`{one.value}`" for one in type_.cls)
        case inspect.LiteralType():
            return ", ".join(f"`{one}`" for one in type_.values)
        case inspect.CustomType():
            return "duration"
        case inspect.DictType():
            return "mapping"
        case inspect.AnyType():
            return "any value"
        case _:
            return _scalar(type_)


def _scalar(type_: inspect.Type) -> str:
    match type_:
        case inspect.BoolType():
            return "`true`, `false`"
        case inspect.IntType() | inspect.FloatType():
            low, high = type_.ge, type_.le
            bounds = f" {low} to {high}" if high is not None else f" from {low}" if low is not None else ""
            return f"number{bounds}"
        case _:
            return "text"
