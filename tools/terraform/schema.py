"""The schema that the stub provider serves: of hashicorp/aws, as far as the modules of this repository use it.

    python -m tools.terraform.schema JSII

writes `aws_schema.json`. JSII is the file `.jsii` inside the package of `cdktf-cdktf-provider-aws` on PyPI (a wheel
with a tarball in `_jsii/`), which describes every resource of one version of the provider; 6.25 was the last.
"""

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tools.terraform.offline import ROOT, SCHEMA

_OURS: Final = "@cdktf/provider-aws"
_META: Final = frozenset(
    {"count", "dependsOn", "forEach", "lifecycle", "provider", "provisioners", "connection", "constructNodeMetadata"}
)
_PLAIN: Final = {"string": "string", "number": "number", "boolean": "bool"}
_MAPS: Final = {
    "cdktf.StringMap": ["map", "string"],
    "cdktf.NumberMap": ["map", "number"],
    "cdktf.BooleanMap": ["map", "bool"],
    "cdktf.IResolvable": "bool",
}
_DEEPEST: Final = 7


class _Types:
    """The types of a jsii file, as schemas of blocks."""

    def __init__(self, types: Mapping[str, Any]) -> None:
        self._types = types

    def block(self, name: str, class_: str = "", depth: int = 0) -> dict[str, Any]:
        """The arguments of a type and, of a resource (`class_`), what it knows once it is there."""
        found: dict[str, Any] = {"attributes": {}, "blocks": {}}
        for one in self._types[name].get("properties", []):
            if one["name"] not in _META:
                self._argument(found, one, depth)
        if class_:
            self._computed(found, class_)
        return found

    def _argument(self, found: dict[str, Any], one: Mapping[str, Any], depth: int) -> None:
        name, type_, required = _name(one), _unwrapped(one["type"]), not one.get("optional")
        many = "collection" in type_
        inner = _unwrapped(type_["collection"]["elementtype"]) if many else type_
        given = {"required": required, "optional": not required}
        if not inner.get("fqn", "").startswith(_OURS):
            computed = not required and depth == 0
            found["attributes"][name] = {"type": _type(type_), **given, "computed": computed}
        elif "block" not in one.get("docs", {}).get("summary", ""):
            found["attributes"][name] = {"type": "dynamic", **given, "computed": not required}
        elif depth < _DEEPEST:
            single = name == "timeouts"
            found["blocks"][name] = {
                "nesting": "single" if single else "list",
                "min": int(required and not single),
                "max": 0 if many or single else 1,
                "block": self.block(inner["fqn"], depth=depth + 1),
            }

    def _computed(self, found: dict[str, Any], class_: str) -> None:
        for one in self._types[class_].get("properties", []):
            name = _snake(one["name"])
            known = name in found["attributes"] or name in found["blocks"] or one["name"] in _META
            if known or one.get("static") or one["name"].endswith("Input") or not one.get("immutable"):
                continue
            ours = _unwrapped(one["type"]).get("fqn", "").startswith("@cdktf")
            type_ = "dynamic" if ours else _type(one["type"])
            found["attributes"][name] = {"type": type_, "required": False, "optional": False, "computed": True}
        computed = {"type": "string", "required": False, "optional": True, "computed": True}
        found["attributes"].setdefault("id", computed)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def _name(one: Mapping[str, Any]) -> str:
    """Its name in Terraform, which its documentation ends with."""
    docs = one.get("docs", {})
    found = re.search(r"#([a-z0-9_]+) ", f"{docs.get('remarks', '')} {docs.get('summary', '')} ")
    return found[1] if found else _snake(one["name"])


def _unwrapped(type_: Mapping[str, Any]) -> Mapping[str, Any]:
    if "union" not in type_:
        return type_
    choices = [one for one in type_["union"]["types"] if one.get("fqn") != "cdktf.IResolvable"]
    collections = [one for one in choices if "collection" in one]
    return _unwrapped((collections or choices)[0])


def _type(type_: Mapping[str, Any]) -> Any:
    found = _unwrapped(type_)
    if "primitive" in found:
        return _PLAIN.get(found["primitive"], "dynamic")
    if "collection" in found:
        kind = "list" if found["collection"]["kind"] == "array" else "map"
        return [kind, _type(found["collection"]["elementtype"])]
    return _MAPS.get(found.get("fqn", ""), "dynamic")


def used() -> dict[str, set[str]]:
    """The resources and data sources that the modules of this repository name."""
    files = [*ROOT.glob("deploy/**/*.tf"), *ROOT.glob("examples/**/*.tf")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    return {kind: set(re.findall(rf'^{kind} "(aws_\w+)"', text, re.MULTILINE)) for kind in ("resource", "data")}


def schema(types: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of what is used."""
    read, wanted = _Types(types), used()
    found: dict[str, Any] = {"provider": read.block(f"{_OURS}.provider.AwsProviderConfig"), "resource": {}, "data": {}}
    for name, type_ in types.items():
        if type_.get("base") not in ("cdktf.TerraformResource", "cdktf.TerraformDataSource"):
            continue
        page = re.search(r"docs/(resources|data-sources)/([a-z0-9_]+)", json.dumps(type_.get("docs", {})))
        if page is None or f"{name}Config" not in types:
            continue
        kind, known = ("resource" if page[1] == "resources" else "data"), f"aws_{page[2]}"
        if known in wanted[kind]:
            found[kind][known] = read.block(f"{name}Config", name)
    return found


def text_of(found: Mapping[str, Any]) -> str:
    """A line for each resource, so that a change of one is a change of a line."""

    def plain(value: Any) -> str:
        return json.dumps(value, separators=(",", ":"), sort_keys=True)

    parts = [f'"provider":{plain(found["provider"])}']
    for kind in ("resource", "data"):
        inside = ",\n".join(f'"{name}":{plain(one)}' for name, one in sorted(found[kind].items()))
        parts.append(f'"{kind}":{{\n{inside}\n}}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> int:
    """Write the schema."""
    types = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["types"]
    SCHEMA.write_text(text_of(schema(types)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
