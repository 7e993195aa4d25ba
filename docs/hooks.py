"""Pages made from the program itself when the documentation is built: the config keys and the event catalogue."""

from typing import Any

import msgspec
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from interlock.config.schema import pipeline_schema
from interlock.model.events import CATALOGUE


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages before the navigation is made."""
    files.append(File.generated(config, "reference/config.md", content=config_page(pipeline_schema())))
    files.append(File.generated(config, "reference/events.md", content=events_page()))
    return files


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
90 days, and published in their order per pipeline. Subscribers filter with EventBridge patterns.

| type | severity | when | fields |
|---|---|---|---|
{rows}
"""


def config_page(schema: dict[str, Any]) -> str:
    """Every key of a pipeline's config, from the JSON Schema that editors use."""
    definitions: dict[str, Any] = schema.get("$defs", {})
    parts = ["# Config reference", "", _INTRODUCTION]
    root = _resolve(schema, definitions)
    parts += _section("A pipeline", root, definitions)
    for name, definition in definitions.items():
        if definition.get("properties") and definition is not root:
            parts += _section(name, definition, definitions)
    return "\n".join(parts) + "\n"


_INTRODUCTION = """Made from the same types that read the files. `interlock schema` prints the JSON Schema: point your
editor at it. Durations are written `1h30m`, `45s`, `500ms`, `2d` or `PT2H`. Unknown keys are errors.
"""


def _resolve(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    reference = str(schema.get("$ref", ""))
    return definitions.get(reference.rpartition("/")[2], schema)


def _section(name: str, definition: dict[str, Any], definitions: dict[str, Any]) -> list[str]:
    required = set(definition.get("required", ()))
    lines = [
        "",
        f"## {name}",
        "",
        str(definition.get("description", "")).strip(),
        "",
        "| key | type | default |",
        "|---|---|---|",
    ]
    for key, property_ in definition.get("properties", {}).items():
        default = "required" if key in required else _shown(property_)
        lines.append(f"| `{key}` | {_type(property_, definitions)} | {default} |")
    return lines


def _shown(property_: dict[str, Any]) -> str:
    if "default" not in property_:
        return ""
    return f"`{msgspec.json.encode(property_['default']).decode()}`"


def _type(property_: dict[str, Any], definitions: dict[str, Any]) -> str:
    if "$ref" in property_:
        name = str(property_["$ref"]).rpartition("/")[2]
        known = definitions.get(name, {})
        return f"[{name}](#{name.lower()})" if known.get("properties") else _type(known, definitions)
    if "anyOf" in property_:
        kinds = [_type(one, definitions) for one in property_["anyOf"]]
        return " or ".join(dict.fromkeys(kind for kind in kinds if kind != "null"))
    if "enum" in property_:
        return ", ".join(f"`{one}`" for one in property_["enum"])
    if property_.get("type") == "array":
        return f"list of {_type(property_.get('items', {}), definitions)}"
    kind = str(property_.get("description") or property_.get("type", "any value"))
    bounds = [f"{word} {property_[key]}" for key, word in (("minimum", "from"), ("maximum", "to")) if key in property_]
    return " ".join([kind.replace("|", "\\|"), *bounds])
