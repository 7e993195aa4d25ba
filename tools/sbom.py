"""Writes what a release is made of: a bill of materials in CycloneDX (JSON), from the metadata of what is installed.

    python -m tools.sbom [--out dist/interlock.cdx.json]

It lists what `pip install 'interlock[all]'` brings, as pinned, with licences and the digests of the lock; what
only tests and builds need is not part of a release. Two runs write the same bytes.
"""

import argparse
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

import msgspec
from packaging.requirements import Requirement

from interlock import __version__

ROOT: Final = Path(__file__).parents[1]
EXTRAS: Final = ("all",)
_LONGEST_NAME: Final = 100
_DIGEST: Final = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def canonical(name: str) -> str:
    """A name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def closure(name: str, extras: Iterable[str]) -> dict[str, tuple[Distribution, list[str]]]:
    """A package and all that it needs here: each with the names of those that it needs itself."""
    found: dict[str, tuple[Distribution, list[str]]] = {}
    waiting: list[tuple[str, frozenset[str]]] = [(canonical(name), frozenset(extras))]
    asked: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        one = waiting.pop()
        if one in asked:
            continue
        asked.add(one)
        name, wanted = one
        package = distribution(name)
        _, needs = found.setdefault(name, (package, []))
        for text in _own_requirements() if name == "interlock" else package.requires or []:
            needed = Requirement(text)
            markers = [needed.marker.evaluate({"extra": extra}) for extra in (*wanted, "")] if needed.marker else [True]
            if any(markers):
                needs.append(canonical(needed.name))
                waiting.append((canonical(needed.name), frozenset(needed.extras)))
    return found


def _own_requirements() -> list[str]:
    """Those of the source, not of what was installed when: an extra may be newer."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    more = [one for extra in EXTRAS for one in project["optional-dependencies"][extra]]
    return [*project["dependencies"], *more]


def digests(lock: str) -> dict[str, list[str]]:
    """The digests of each release in the lock."""
    blocks = re.split(r"^(?=[A-Za-z0-9])", lock, flags=re.MULTILINE)
    return {canonical(block.partition("==")[0]): _DIGEST.findall(block) for block in blocks if "==" in block}


def component(package: Distribution, known: Mapping[str, list[str]]) -> dict[str, Any]:
    """One package."""
    name, version = canonical(package.metadata["Name"]), package.version
    purl = f"pkg:pypi/{name}@{version}"
    made: dict[str, Any] = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    stated = package.metadata.json
    licence = str(stated.get("license", ""))
    if expression := stated.get("license_expression"):
        made["licenses"] = [{"expression": expression}]
    elif licence and len(licence) < _LONGEST_NAME and "\n" not in licence:
        made["licenses"] = [{"license": {"name": licence}}]
    # A release has several files; which of them is installed depends on the machine.
    if known.get(name):
        made["properties"] = [{"name": "interlock:sha256", "value": digest} for digest in known[name]]
    return made


def bill(lock: str) -> dict[str, Any]:
    """The whole document."""
    found = closure("interlock", EXTRAS)
    known = digests(lock)
    refs = {name: f"pkg:pypi/{name}@{package.version}" for name, (package, _) in found.items()}
    own, _ = found["interlock"]
    main = {**component(own, {}), "type": "application", "version": __version__}
    components = [component(package, known) for name, (package, _) in sorted(found.items()) if name != "interlock"]
    dependencies = [
        {"ref": refs[name], "dependsOn": sorted({refs[one] for one in needs})}
        for name, (_, needs) in sorted(found.items())
    ]
    content = msgspec.json.encode([main, components, dependencies])
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, content.decode())}",
        "version": 1,
        "metadata": {"component": main},
        "components": components,
        "dependencies": dependencies,
    }


def main(arguments: list[str]) -> int:
    """Write it."""
    parser = argparse.ArgumentParser(description="Write the bill of materials.")
    parser.add_argument("--out", type=Path, default=ROOT / "dist" / f"interlock-{__version__}.cdx.json")
    given = parser.parse_args(arguments)
    try:
        made = bill((ROOT / "requirements.lock").read_text(encoding="utf-8"))
    except PackageNotFoundError as error:
        print(f"the bill of materials needs everything installed (`make .venv/.stamp`): {error}", file=sys.stderr)
        return 1
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_bytes(msgspec.json.format(msgspec.json.encode(made), indent=2) + b"\n")
    print(f"{given.out.name}: {len(made['components'])} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
