"""What is installed, built and published is what was pinned: versions, digests, the bill of materials, the audit."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import msgspec
import pytest
from packaging.requirements import Requirement

from tests.test_repository import ROOT, RUN_TIME, canonical, pins
from tools.audit import Verdict, conclusion, judge
from tools.hashes import digests, files_of, read_pins
from tools.sbom import bill
from tools.sbom import digests as locked_digests

LOCK = (ROOT / "requirements.lock").read_text()
_SHA = "ab" * 32


def test_the_lock_has_every_pin_with_its_digests_and_no_address() -> None:
    """After a change of constraints.txt: `make lock`."""
    assert {canonical(name): version for name, version in read_pins(LOCK).items()} == pins()
    for name, found in locked_digests(LOCK).items():
        assert found, name
        assert len(set(found)) == len(found), name
    for line in LOCK.splitlines():
        assert re.fullmatch(r"#.*|[A-Za-z0-9._-]+==\S+ \\|    --hash=sha256:[0-9a-f]{64}( \\)?", line), line
    assert "://" not in LOCK + (ROOT / "tools/audit.lock").read_text()


def test_the_lock_of_the_audit_has_every_pin() -> None:
    lock = read_pins((ROOT / "tools/audit.lock").read_text())
    assert lock == read_pins((ROOT / "tools/audit.txt").read_text())
    assert "pip_audit" in lock


def test_the_build_backend_is_the_pinned_one() -> None:
    (needed,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    found = Requirement(needed)
    assert str(found.specifier) == f"=={pins()[canonical(found.name)]}"


def test_answers_of_an_index_as_json_and_as_a_page() -> None:
    names = ["h11-0.16.0-py3-none-any.whl", "h11-0.16.0.tar.gz", "h11-0.15.0.tar.gz", "h11-0.16.0.exe"]
    document = {
        "files": [{"filename": name, "hashes": {"sha256": f"{number}" * 64}} for number, name in enumerate(names)]
    }
    links = "".join(f'<a href="../x/{name}#sha256={str(number) * 64}">{name}</a>' for number, name in enumerate(names))
    as_json = files_of(msgspec.json.encode(document), "application/vnd.pypi.simple.v1+json")
    as_page = files_of(f"<html>{links}<a href='../x/{names[0]}'>bare</a></html>".encode(), "text/html")
    assert digests(as_json, "0.16.0") == digests(as_page, "0.16.0") == ["0" * 64, "1" * 64]
    assert digests(as_json, "0.17.0") == []


@pytest.mark.skipif(shutil.which("uv") is None and not (Path(sys.prefix) / "bin/uv").exists(), reason="uv is missing")
def test_a_file_of_another_digest_is_not_installed(tmp_path: Path) -> None:
    """With a wheel of our own, without any index: what `make` relies on."""
    wheel = tmp_path / "files" / "tiny-1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    _write_wheel(wheel)
    uv = shutil.which("uv") or str(Path(sys.prefix) / "bin/uv")
    lock = tmp_path / "requirements.lock"
    command = [uv, "pip", "install", "-q", "--no-index", "--find-links", str(wheel.parent), "--no-cache"]
    command += ["--python", sys.executable, "--target", str(tmp_path / "there"), "-c", str(lock), "tiny"]
    lock.write_text(f"tiny==1.0 \\\n    --hash=sha256:{_SHA}\n")
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    assert "ash mismatch" in refused.stderr
    digest = subprocess.run(["sha256sum", str(wheel)], capture_output=True, text=True, check=True).stdout.split()[0]
    lock.write_text(f"tiny==1.0 \\\n    --hash=sha256:{digest}\n")
    assert subprocess.run(command, check=False).returncode == 0


def _write_wheel(path: Path) -> None:
    import zipfile

    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("tiny.py", "")
        wheel.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        wheel.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("tiny-1.0.dist-info/RECORD", "")


def test_the_bill_of_materials_lists_what_a_release_brings_and_nothing_of_the_tests() -> None:
    made = bill(LOCK)
    assert made == bill(LOCK)
    assert (made["bomFormat"], made["specVersion"], made["metadata"]["component"]["name"]) == (
        "CycloneDX",
        "1.6",
        "interlock",
    )
    names = {one["name"] for one in made["components"]}
    if sys.platform == "linux" and sys.version_info[:2] == (3, 11):
        assert names >= RUN_TIME
    assert names >= {"boto3", "pyjwt", "cryptography", "sqlalchemy"}
    assert not names & {"pytest", "moto", "hypothesis", "faker", "polyfactory", "litestar", "mypy"}
    refs = {one["bom-ref"] for one in made["components"]} | {made["metadata"]["component"]["bom-ref"]}
    for one in made["dependencies"]:
        assert {one["ref"], *one["dependsOn"]} <= refs
    for one in made["components"]:
        assert one["version"] == pins()[one["name"]], one["name"]
        assert one["properties"], one["name"]


def _found(*entries: dict[str, object]) -> bytes:
    return msgspec.json.encode({"dependencies": list(entries)})


@pytest.mark.parametrize(
    ("stdout", "stderr", "offline", "code", "words"),
    [
        (_found({"name": "h11", "version": "0.16.0", "vulns": []}), "", False, 0, "1 releases, none"),
        (
            _found(
                {"name": "h11", "version": "0.14", "vulns": [{"id": "PYSEC-1", "fix_versions": ["0.16"]}]},
                {"name": "idna", "skip_reason": "not found"},
            ),
            "",
            True,
            1,
            "h11==0.14: PYSEC-1, mended in 0.16",
        ),
        (_found({"name": "idna", "skip_reason": "not found"}), "", False, 1, "NOT AUDITED: idna"),
        (b"", "x\nConnectionError: no route\n", False, 1, "cannot be reached"),
        (b"", "ConnectionError: no route", True, 0, "was not audited"),
    ],
)
def test_what_could_not_be_looked_up_is_not_taken_for_sound(
    stdout: bytes, stderr: str, offline: bool, code: int, words: str
) -> None:
    verdict = judge(stdout, stderr)
    found, text = conclusion(verdict, offline=offline)
    assert found == code
    assert words in text


def test_an_audit_of_nothing_is_said_in_few_lines() -> None:
    code, text = conclusion(Verdict(unknown=tuple(f"p{number}" for number in range(50))), offline=False)
    assert code == 1
    assert len(text.splitlines()) == 7
