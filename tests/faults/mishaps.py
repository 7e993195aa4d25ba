"""What can happen to a controller in a campaign. Each ends with a controller that is ready again."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from tests.faults import checks
from tests.faults.controller import Controller, Log
from tests.faults.disk import SmallDisk
from tests.faults.parties import Receiver, Writers

_LOGS: Final = (Log.FILE, Log.FILE, Log.FILE, Log.GONE, Log.STALLED)
_GRACE_SECONDS: Final = 8.0 + 3.0
_IN_FLIGHT_SECONDS: Final = 0.5


class Scene(NamedTuple):
    """Everything that a mishap may touch."""

    controller: Controller
    writers: Writers
    receiver: Receiver
    disk: SmallDisk | None
    outside: Path
    chance: random.Random

    def start_again(self) -> None:
        self.controller.start(self.chance.choice(_LOGS))


# A mishap answers with what it found to be wrong.
Mishap = Callable[[Scene], list[str]]


def killed(scene: Scene) -> list[str]:
    """`kill -9`, and at once the next controller."""
    scene.controller.kill()
    scene.start_again()
    return []


def killed_again_and_again(scene: Scene) -> list[str]:
    """Killed as soon as it is ready, three times."""
    for _ in range(3):
        scene.controller.kill()
        scene.start_again()
    return []


def stopped(scene: Scene) -> list[str]:
    """SIGTERM under load: in order, and within the grace."""
    code = scene.controller.stop()
    took = scene.controller.stopped_after[-1]
    scene.start_again()
    found = [] if code == 0 else [f"SIGTERM: exit code {code}"]
    return found if took <= _GRACE_SECONDS else [*found, f"SIGTERM: it took {took:.1f} s to end"]


def frozen(scene: Scene) -> list[str]:
    """SIGSTOP for some seconds."""
    scene.controller.freeze(scene.chance.uniform(0.5, 4.0))
    scene.controller.await_ready()
    return []


def full_disk(scene: Scene) -> list[str]:
    """No byte is free for a while; now and then the controller is killed meanwhile."""
    assert scene.disk is not None
    scene.disk.fill()
    time.sleep(scene.chance.uniform(0.5, 2.5))
    die = scene.chance.random() < 0.3
    if die:
        scene.controller.kill()
    scene.disk.clear()
    if die:
        scene.start_again()
    else:
        scene.controller.await_ready()
    return []


def moved_away(scene: Scene) -> list[str]:
    """The store's files have another name for a while: nothing is acknowledged, and it goes on when they are back."""
    store = scene.controller.store
    files = [one for one in (store, Path(f"{store}-wal"), Path(f"{store}-shm")) if one.exists()]
    for file in files:
        file.rename(file.with_name(f"away-{file.name}"))
    try:
        # What was committed just before is answered just after.
        time.sleep(_IN_FLIGHT_SECONDS)
        before = len(scene.writers.acknowledged)
        ready = scene.controller.is_ready()
        time.sleep(scene.chance.uniform(0.2, 1.0))
        acknowledged = len(scene.writers.acknowledged) - before
    finally:
        for file in files:
            file.with_name(f"away-{file.name}").rename(file)
    scene.controller.await_ready()
    found = [f"{acknowledged} writes were acknowledged while the store was away"] if acknowledged else []
    return [*found, "it was ready while the store was away"] if ready else found


def receiver_down(scene: Scene) -> list[str]:
    """Nobody takes alerts for some seconds."""
    scene.receiver.down = True
    time.sleep(scene.chance.uniform(1.0, 4.0))
    scene.receiver.down = False
    return []


def backed_up(scene: Scene) -> list[str]:
    """A backup under load has everything that was acknowledged before it began."""
    before = list(scene.writers.acknowledged)
    target = scene.outside / "backup.db"
    store = f"sqlite:///{scene.controller.store}"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")}
    done = subprocess.run(
        [sys.executable, "-m", "interlock", "backup", str(target), "--store", store],
        cwd=scene.outside,
        env=clean,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return [f"backup: {done.stderr.strip()}"]
    found = [f"backup: {one}" for one in checks.lost_writes(target, before)]
    target.unlink()
    Path(f"{target}.manifest.json").unlink()
    return found


# How often each happens, compared with the others.
MISHAPS: Final[dict[Mishap, int]] = {
    killed: 8,
    killed_again_and_again: 2,
    stopped: 3,
    frozen: 2,
    full_disk: 3,
    moved_away: 2,
    receiver_down: 2,
    backed_up: 1,
}
