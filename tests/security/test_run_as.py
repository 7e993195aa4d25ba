"""`[jobs] run_as`: commands as another user, of a controller that is root, and of one that may switch users."""

import grp
import json
import os
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.jobs.command.run_as import find_user
from interlock.model.errors import InterlockError
from tests.api.running import ROOT, Process, pipeline, serving, until
from tests.security.commands import as_root, interlock, refused

V1 = "/api/v1"
USER = "nobody"


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that everybody may enter: pytest shuts its own, again and again."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def project(folder: Path, *commands: tuple[str, list[str]], run_as: str = USER) -> None:
    """A project with one pipeline per command."""
    (folder / "interlock.toml").write_text(f'[jobs]\nrun_as = "{run_as}"\n')
    (folder / "pipelines").mkdir(exist_ok=True)
    for name, command in commands:
        document: dict[str, Any] = pipeline(
            name,
            schedule={"trigger": {"key": "up", "check": "exists"}},
            validation={"rules": [{"key": "up", "check": "exists"}]},
            job={"type": "command", "config": {"command": command}, "maxCodeRetries": 0},
        )
        (folder / f"pipelines/{name}.json").write_text(json.dumps(document))


def run(server: Process, name: str) -> dict[str, Any]:
    """Start it; its run, once it is over."""
    begin(server, name)
    return until(lambda: _ended(server, name), f"the end of {name}")


def begin(server: Process, name: str) -> None:
    until(lambda: server.client.get(f"{V1}/pipelines/{name}").is_success or None, "the pipeline")
    assert server.client.put(f"{V1}/pipelines/{name}/sensors/up", json={"ready": True}).status_code == 200


def _ended(server: Process, name: str) -> dict[str, Any] | None:
    runs = server.client.get(f"{V1}/pipelines/{name}/runs").json()["items"]
    return next((one for one in runs if one["status"] in ("COMPLETED", "FAILED_FINAL")), None)


def output(folder: Path) -> str:
    """What all commands wrote."""
    return "\n".join(path.read_text() for path in sorted((folder / "interlock.db.jobs").glob("*/output.log")))


@as_root
def test_a_command_is_another_user_and_nothing_is_left_of_us(place: Path) -> None:
    script = (
        "id -u; id -g; id -G; umask; echo home=$HOME user=$USER;"
        " grep -E '^Cap(Eff|Prm|Amb)' /proc/self/status; echo again >> /dev/stderr;"
        " cat interlock.db && echo read-the-store; cat /proc/$PPID/environ && echo read-the-parent;"
        " touch made-by-me 2>/dev/null && echo wrote; exit 0"
    )
    project(place, ("who", ["sh", "-c", script]))
    user = pwd.getpwnam(USER)
    with serving(place) as server:
        assert run(server, "who")["status"] == "COMPLETED"
        said = output(place)
        lines = said.splitlines()
        assert lines[:2] == [str(user.pw_uid), str(user.pw_gid)]
        assert set(map(int, lines[2].split())) == set(os.getgrouplist(USER, user.pw_gid))
        assert lines[3] in ("0022", "022")
        assert f"home={user.pw_dir} user={USER}" in said
        assert [line.split()[1] for line in lines if line.startswith("Cap")] == ["0" * 16] * 3
        assert "again" in said
        for word in ("read-the-store", "read-the-parent", "wrote"):
            assert word not in said
        (log,) = (place / "interlock.db.jobs").glob("*/output.log")
        assert (log.stat().st_uid, stat.S_IMODE(log.stat().st_mode)) == (user.pw_uid, 0o600)
        # It is a stranger to the API, too.
        doctor = json.loads(interlock(place, "doctor", "--json").stdout)
        assert [one for one in doctor["checks"] if "ermission" in one["name"] and not one["ok"]] == []


@as_root
def test_it_is_stopped_and_outlives_its_controller(place: Path) -> None:
    project(place, ("long", ["sh", "-c", "trap 'echo asked; exit 3' TERM; echo $$; while :; do sleep 0.05; done"]))
    with serving(place) as first:
        begin(first, "long")
        pid = int(until(lambda: output(place).split() or None, "its number")[0])
        assert os.stat(f"/proc/{pid}").st_uid == pwd.getpwnam(USER).pw_uid
        first.kill()
    with serving(place) as second:
        runs = second.client.get(f"{V1}/pipelines/long/runs").json()["items"]
        assert [one["status"] for one in runs] == ["RUNNING"]
        day = runs[0]["date"]
        asked = second.client.post(f"{V1}/pipelines/long/runs/stream/{day}:cancel", json={"reason": "enough"})
        assert asked.is_success, asked.text
        until(lambda: not Path(f"/proc/{pid}").exists() or None, "its end")
        assert until(lambda: _ended(second, "long"), "the end of the run")["status"] == "FAILED_FINAL"
        assert "asked" in output(place)


@as_root
def test_a_folder_that_the_user_may_not_enter_is_said(place: Path) -> None:
    project(place, ("shut", ["true"]))
    inner = place / "inner"
    inner.mkdir(mode=0o700)
    document = json.loads((place / "pipelines/shut.json").read_text())
    document["job"]["config"]["cwd"] = "inner"
    (place / "pipelines/shut.json").write_text(json.dumps(document))
    with serving(place) as server:
        assert run(server, "shut")["status"] == "FAILED_FINAL"
        events = server.client.get(f"{V1}/events", params={"pipeline": "shut"}).text
        assert "Permission denied" in events
        assert "run_as" in events


@as_root
def test_a_probe_is_that_user_too(place: Path) -> None:
    project(place, ("looked", ["true"]))
    document = json.loads((place / "pipelines/looked.json").read_text())
    look = ["sh", "-c", 'echo "{\\"uid\\": $(id -u), \\"home\\": \\"$HOME\\"}"']
    document["probes"] = [{"key": "who", "type": "command", "config": {"command": look}, "interval": "1m"}]
    (place / "pipelines/looked.json").write_text(json.dumps(document))
    with serving(place) as server:
        until(lambda: server.client.get(f"{V1}/pipelines/looked").is_success or None, "the pipeline")
        done = interlock(place, "probe", "run", "looked", "who", "--json")
        assert done.returncode == 0, done.stderr
        user = pwd.getpwnam(USER)
        assert json.loads(done.stdout)["data"] == {"uid": user.pw_uid, "home": user.pw_dir}


@as_root
def test_who_is_unknown_or_root_is_refused_at_the_start(place: Path) -> None:
    project(place, run_as="no-such-user")
    refused(interlock(place, "serve", "--port", "0"), "there is no user 'no-such-user'")
    with pytest.raises(InterlockError, match="name another user"):
        find_user("root")
    (place / "interlock.toml").write_text("[jobs]\nrun_as = 5\n")
    refused(interlock(place, "serve", "--port", "0"), "5 is not the name of a user")


@as_root
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is missing")
@pytest.mark.parametrize("able", [False, True])
def test_a_controller_that_is_not_root_needs_the_capabilities(place: Path, able: bool) -> None:
    """As a service with `AmbientCapabilities=` would have them: it may switch, and the command keeps none of it."""
    daemon = pwd.getpwnam("daemon")
    capabilities = "+setuid,+setgid,+kill" if able else "-all"
    become = ["setpriv", f"--reuid={daemon.pw_uid}", f"--regid={daemon.pw_gid}", "--clear-groups"]
    become += [f"--inh-caps={capabilities}", f"--ambient-caps={capabilities}"]
    script = (
        "from interlock.jobs.command.run_as import find_user\n"
        "from interlock.model.errors import InterlockError\n"
        "import subprocess, sys\n"
        "from interlock.jobs.command import wrapper\n"
        "try:\n"
        f"    user = find_user({USER!r})\n"
        "except InterlockError as error:\n"
        "    sys.exit(str(error))\n"
        "from interlock.jobs.command.run_as import argument_of\n"
        "wrapper.become_user(argument_of(user))\n"
        "import os\n"
        "os.execv('/bin/sh', ['sh', '-c', 'id -u; grep -E ^CapEff /proc/self/status'])\n"
    )
    path = os.pathsep.join([str(ROOT / "src"), *sys.path])
    done = subprocess.run(
        [*become, sys.executable, "-c", script],
        cwd="/",
        env={"PYTHONPATH": path, "PATH": os.defpath},
        capture_output=True,
        text=True,
        check=False,
    )
    if "ModuleNotFoundError" in done.stderr or "Permission denied" in done.stderr:
        pytest.skip("this Python cannot be read by other users")
    if able:
        assert done.returncode == 0, done.stderr
        assert done.stdout.split() == [str(pwd.getpwnam(USER).pw_uid), "CapEff:", "0" * 16]
    else:
        assert done.returncode == 1
        assert "it lacks CAP_KILL, CAP_SETGID, CAP_SETUID" in done.stderr


def test_groups_without_a_name_do_not_break_it() -> None:
    assert grp.getgrgid(0).gr_name
    if os.geteuid() == 0:
        assert find_user(USER).uid == pwd.getpwnam(USER).pw_uid
