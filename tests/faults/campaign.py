"""A campaign: a real controller under load, one mishap after the other, and after each a look at what must be true.

The same seed has the same mishaps in the same order; what they meet depends on the machine.
"""

import platform
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import psutil

from interlock import __version__
from interlock.embedded.clock import SystemClock
from interlock.model.times import format_instant
from tests.faults import checks, mishaps
from tests.faults.controller import Controller
from tests.faults.disk import SmallDisk, mounted
from tests.faults.mishaps import MISHAPS, Mishap, Scene
from tests.faults.parties import Follower, Receiver, Writers
from tests.faults.workload import Workload

_DISK_BYTES: Final = 256 * 1024 * 1024
_QUIET_SECONDS: Final = 180.0
_WARM_UP_SECONDS: Final = 2.0


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How long mishaps go on, and how much there is to do meanwhile."""

    seed: int
    seconds: float
    followers: int = 3
    writers: int = 4
    slots_per_second: float = 8.0


class Report(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What came of a campaign. `violations` is what must be empty."""

    passed: bool
    violations: list[str]
    plan: Plan
    seconds: float
    mishaps: dict[str, int]
    skipped: list[str]
    acknowledged: int
    answers: dict[str, int]
    runs: int
    starts: int
    events: int
    alerts: int
    alerts_twice: int
    followers: int
    reconnections: int
    restarts: int
    ready_seconds: dict[str, float]
    stop_seconds: dict[str, float]
    usage: dict[str, dict[str, int]]
    machine: dict[str, Any]


class Campaign:
    """One campaign, from an empty folder to the report."""

    def __init__(self, plan: Plan, project: Path, outside: Path, disk: SmallDisk | None) -> None:
        self._plan = plan
        self._receiver = Receiver()
        self._workload = Workload(project, outside, self._receiver.url)
        self._controller = Controller(project)
        self._writers = Writers(
            self._controller.url, self._workload, threads=plan.writers, per_second=plan.slots_per_second
        )
        self._followers: list[Follower] = []
        chance = random.Random(plan.seed)
        self._scene = Scene(self._controller, self._writers, self._receiver, disk, outside, chance)
        self._done: Counter[str] = Counter()
        self._violations: list[str] = []
        self._usage: dict[str, dict[str, int]] = {}

    def run(self, say: Callable[[str], None]) -> Report:
        """Play it, and tell what came of it."""
        begun = time.monotonic()
        since = format_instant(SystemClock().now())
        try:
            self._controller.start()
            self._followers = [Follower(self._controller.url, since) for _ in range(self._plan.followers)]
            self._writers.start()
            time.sleep(_WARM_UP_SECONDS)
            self._usage["begin"] = self._controller.usage()
            self._strike_until(begun + self._plan.seconds, say)
            self._writers.stop()
            self._await_quiet(say)
            self._usage["end"] = self._controller.usage()
            for follower in self._followers:
                follower.stop()
            self._note(mishaps.stopped.__name__, [] if self._controller.stop() == 0 else ["the last stop failed"], say)
            self._check_everything()
            return self._report(time.monotonic() - begun)
        finally:
            self._controller.close()
            self._receiver.close()

    # ------------------------------------------------------------------------------------------------- the mishaps

    def _strike_until(self, end: float, say: Callable[[str], None]) -> None:
        chance = self._scene.chance
        possible = [one for one in MISHAPS if one is not mishaps.full_disk or self._scene.disk is not None]
        weights = [MISHAPS[one] for one in possible]
        while time.monotonic() < end:
            time.sleep(chance.uniform(0.2, 2.0))
            mishap = chance.choices(possible, weights)[0]
            self._strike(mishap, say)

    def _strike(self, mishap: Mishap, say: Callable[[str], None]) -> None:
        acknowledged = list(self._writers.acknowledged)
        found = mishap(self._scene)
        found += checks.lost_writes(self._controller.store, acknowledged)
        found += self._workload.started_twice()
        self._note(mishap.__name__, found, say)

    def _note(self, name: str, found: list[str], say: Callable[[str], None]) -> None:
        self._done[name] += 1
        self._violations += [f"{name}: {one}" for one in found]
        for one in found:
            say(f"VIOLATION after {name}: {one}")

    # ----------------------------------------------------------------------------------------------------- the end

    def _await_quiet(self, say: Callable[[str], None]) -> None:
        """Wait until everything that was acknowledged has come to its end, and everybody knows."""
        end = time.monotonic() + _QUIET_SECONDS
        while time.monotonic() < end:
            stored = checks.read(self._controller.store)
            left = len(checks.unfinished(stored, self._writers.slots))
            behind = sum(len(one.ids) < len(stored.events) for one in self._followers)
            undelivered = len(checks.wrongly_alerted(self._receiver.taken, stored.events))
            if not left and not behind and not undelivered:
                return
            say(f"waiting: {left} runs, {behind} followers, the alerts of {undelivered} pipelines")
            time.sleep(1.0)

    def _check_everything(self) -> None:
        stored = checks.read(self._controller.store)
        found = checks.lost_writes(self._controller.store, self._writers.acknowledged)
        found += self._workload.started_twice()
        found += checks.unfinished(stored, self._writers.slots)
        found += checks.told_twice(stored.events)
        for number, follower in enumerate(self._followers):
            found += checks.wrongly_followed(f"follower {number}", follower.ids, stored.events)
        found += checks.wrongly_alerted(self._receiver.taken, stored.events)
        found += checks.damaged(self._controller.store)
        found += [f"there are {stored.dead_letters} dead letters"] if stored.dead_letters else []
        found += checks.grown(self._usage["begin"], self._usage["end"])
        self._violations += [f"at the end: {one}" for one in found]
        self._stored = stored

    def _report(self, seconds: float) -> Report:
        taken = self._receiver.taken
        return Report(
            passed=not self._violations,
            violations=self._violations[:100],
            plan=self._plan,
            seconds=round(seconds, 1),
            mishaps=dict(self._done),
            skipped=[] if self._scene.disk is not None else ["full_disk: this user may not mount a tmpfs"],
            acknowledged=len(self._writers.acknowledged),
            answers=dict(self._writers.answers),
            runs=len(self._stored.runs),
            starts=sum(1 for _ in self._workload.starts()),
            events=len(self._stored.events),
            alerts=len(set(taken)),
            alerts_twice=len(taken) - len(set(taken)),
            followers=len(self._followers),
            reconnections=sum(one.connections for one in self._followers),
            restarts=len(self._controller.ready_after),
            ready_seconds=_spread(self._controller.ready_after),
            stop_seconds=_spread(self._controller.stopped_after),
            usage=self._usage,
            machine=_machine(),
        )


def play(plan: Plan, say: Callable[[str], None]) -> Report:
    """A campaign in a folder of its own, on a small disk where one can be made."""
    with _places() as (project, outside, disk):
        return Campaign(plan, project, outside, disk).run(say)


@contextmanager
def _places() -> Iterator[tuple[Path, Path, SmallDisk | None]]:
    with ExitStack() as stack:
        outside = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="interlock-faults-")))
        project = outside / "project"
        project.mkdir()
        disk = stack.enter_context(mounted(project, _DISK_BYTES))
        yield project, outside, disk if isinstance(disk, SmallDisk) else None


def _spread(seconds: list[float]) -> dict[str, float]:
    if not seconds:
        return {}
    ordered = sorted(seconds)
    return {"median": round(ordered[len(ordered) // 2], 2), "worst": round(ordered[-1], 2)}


def _machine() -> dict[str, Any]:
    return {
        "interlock": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": psutil.cpu_count(),
        "gigabytes": round(psutil.virtual_memory().total / 1024**3),
    }
