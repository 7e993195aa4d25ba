"""Asks whether any pinned release has a known vulnerability: `pip-audit`, in an environment of its own.

    python -m tools.audit [requirements.lock] [--offline]

A release that nobody could look up is not a release without vulnerabilities: where the advisory service cannot be
reached, this says so and fails, unless it is told `--offline` (`make release AUDIT=offline`).
"""

import argparse
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any, Final

import msgspec

ROOT: Final = Path(__file__).parents[1]
PINS: Final = ROOT / "tools" / "audit.lock"
PLACE: Final = ROOT / ".venv" / "audit"
_SECONDS: Final = 600


class Verdict(msgspec.Struct, frozen=True):
    """What came out: vulnerabilities, and what could not be looked up, each in a line."""

    vulnerable: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    looked_up: int = 0


def judge(stdout: bytes, stderr: str) -> Verdict:
    """What `pip-audit --format json` says."""
    try:
        document: dict[str, Any] = msgspec.json.decode(stdout)
        entries = document["dependencies"]
    except (msgspec.DecodeError, KeyError, TypeError):
        last = next((line for line in reversed(stderr.splitlines()) if line.strip()), "no answer")
        return Verdict(unknown=(f"everything: {last.strip()[:300]}",))
    vulnerable, unknown = [], []
    for one in entries:
        if "skip_reason" in one:
            unknown.append(f"{one['name']}: {one['skip_reason']}")
        for found in one.get("vulns", []):
            fixed = ", ".join(found.get("fix_versions", [])) or "no release"
            vulnerable.append(f"{one['name']}=={one['version']}: {found['id']}, mended in {fixed}")
    return Verdict(tuple(vulnerable), tuple(unknown), len(entries) - len(unknown))


def conclusion(verdict: Verdict, *, offline: bool) -> tuple[int, str]:
    """The exit code, and what to say."""
    lines = [f"vulnerable: {one}" for one in verdict.vulnerable]
    if verdict.unknown:
        shown = [*verdict.unknown[:5], *([f"and {len(verdict.unknown) - 5} more"] if len(verdict.unknown) > 5 else [])]
        lines += [f"NOT AUDITED: {one}" for one in shown]
    if verdict.vulnerable:
        return 1, "\n".join([*lines, "audit: failed"])
    if not verdict.unknown:
        return 0, f"audit: {verdict.looked_up} releases, none with a known vulnerability"
    if offline:
        return 0, "\n".join([*lines, "audit: SKIPPED, as told (AUDIT=offline): this release was not audited"])
    advice = "audit: failed: the advisory service cannot be reached; try again, or make release AUDIT=offline"
    return 1, "\n".join([*lines, advice])


def run(lock: Path) -> Verdict:
    """Have `pip-audit` look up every release of a lock."""
    python = PLACE / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    try:
        if not python.exists():
            venv.create(PLACE, with_pip=True)
        subprocess.run(
            [*pip, "--require-hashes", "--no-deps", "-r", str(PINS)], check=True, timeout=_SECONDS, capture_output=True
        )
        done = subprocess.run(
            [
                str(PLACE / "bin" / "pip-audit"),
                *("--requirement", str(lock), "--disable-pip", "--no-deps"),
                *("--format", "json", "--progress-spinner", "off", "--timeout", "30"),
            ],
            check=False,
            timeout=_SECONDS,
            capture_output=True,
        )
    except (subprocess.SubprocessError, OSError) as error:
        return Verdict(unknown=(f"everything: pip-audit cannot be run: {error}",))
    return judge(done.stdout, done.stderr.decode("utf-8", "replace"))


def main(arguments: list[str]) -> int:
    """Audit, and say what was found."""
    parser = argparse.ArgumentParser(description="Look up known vulnerabilities of what is pinned.")
    parser.add_argument("lock", type=Path, nargs="?", default=ROOT / "requirements.lock")
    parser.add_argument("--offline", action="store_true", help="go on where the advisory service cannot be reached")
    given = parser.parse_args(arguments)
    code, text = conclusion(run(given.lock), offline=given.offline)
    print(text, file=sys.stderr if code else sys.stdout)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
