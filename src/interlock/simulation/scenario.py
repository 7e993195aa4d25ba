"""Scenario files (SPEC 18): what is written in them, read with every error at once, each with its line."""

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from interlock.config.cascades import check_upstreams, find_cycles
from interlock.config.decode import decode
from interlock.config.documents import Document, read_document
from interlock.config.loader import load_paths
from interlock.config.problems import Problem, Severity, format_path
from interlock.config.semantics import check_calendar
from interlock.config.stored import read_stored
from interlock.model.config import Calendar, PipelineConfig
from interlock.model.durations import Duration, parse_duration
from interlock.model.errors import InterlockError, InvalidValueError
from interlock.model.events import EventType
from interlock.model.events import Severity as EventSeverity
from interlock.model.run import FailureCategory, FinalReason, RunStatus
from interlock.model.times import parse_instant

_STEP_KINDS: Final = ("sensor", "rerun", "job", "cancel", "apply", "remove", "calendar", "crash")


class ScenarioError(InterlockError):
    """A scenario that cannot be played; the problems say why, all of them."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    pass


class ScriptedJob(_Part, frozen=True, kw_only=True):
    """What the job of one attempt does. `times`: a refusal of only so many tries, then the next entry applies."""

    after: Duration = Duration(minutes=1)
    result: Literal["success", "fail", "timeout", "hang", "refuse"] = "success"
    category: FailureCategory | None = None
    error: str = ""
    times: Annotated[int, Meta(ge=1)] | None = None


class ScriptedLook(_Part, frozen=True, kw_only=True):
    """What a probe answers from `at` on (the first entry: from the start): an observation, or an error."""

    at: str | None = None
    data: dict[str, Any] | None = None
    error: str = ""


class Step(_Part, frozen=True, kw_only=True):
    """Something that happens from outside: exactly one of sensor, rerun, job, cancel, apply, remove, calendar, crash.

    `apply`: a config, or `{file: ...}`, as it is from now on. `remove`: a pipeline that is deleted. `calendar`: a
    named calendar as it is from now on.
    """

    at: str
    sensor: str | None = None
    data: dict[str, Any] | None = None
    ttl: int | None = None
    rerun: str | None = None
    job: str | None = None
    cancel: str | None = None
    date: str | None = None
    schedule: str | None = None
    reason: str = ""
    force: bool = False
    result: Literal["success", "fail", "timeout"] | None = None
    category: FailureCategory | None = None
    error: str = ""
    attempt: int | None = None
    apply: dict[str, Any] | None = None
    remove: str | None = None
    calendar: Calendar | None = None
    crash: bool = False


class ExpectedEvent(_Part, frozen=True, kw_only=True):
    """An event, by what is known of it. `detail`: fields that its detail must have, with these values."""

    type: EventType
    pipeline: str | None = None
    schedule: str | None = None
    date: str | None = None
    at: str | None = None
    severity: EventSeverity | None = None
    detail: dict[str, Any] = {}


class ExpectedCount(ExpectedEvent, frozen=True, kw_only=True):
    """How many such events."""

    n: Annotated[int, Meta(ge=0)]


class ExpectedRun(_Part, frozen=True, kw_only=True):
    """How a run stands at the end; without `status` it must not exist."""

    pipeline: str
    date: str
    schedule: str | None = None
    status: RunStatus | None = None
    attempt: int | None = None
    reason: FinalReason | None = None


class Expectations(_Part, frozen=True, kw_only=True):
    """What must and must not happen."""

    events: list[ExpectedEvent] = []
    never: list[ExpectedEvent] = []
    counts: list[ExpectedCount] = []
    runs: list[ExpectedRun] = []


class _File(_Part, frozen=True, kw_only=True):
    name: str = ""
    description: str = ""
    start: str
    until: str
    pipelines: Annotated[list[dict[str, Any]], Meta(min_length=1)]
    calendars: list[dict[str, Any]] = []
    pools: dict[str, Annotated[int, Meta(ge=1)]] = {}
    jobs: dict[str, list[ScriptedJob]] = {}
    probes: dict[str, dict[str, list[ScriptedLook]]] = {}
    steps: list[Step] = []
    expect: Expectations = Expectations()


class Pipeline(msgspec.Struct, frozen=True):
    """A pipeline as it is applied."""

    config: PipelineConfig
    document: dict[str, Any]


class TimedStep(msgspec.Struct, frozen=True):
    """A step at its instant. `applied`: the configs of an apply step."""

    at: datetime
    step: Step
    applied: tuple[Pipeline, ...] = ()


class TimedLook(msgspec.Struct, frozen=True):
    """What a probe answers from an instant on."""

    at: datetime
    look: ScriptedLook


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario, ready to play. Expected events carry their instants."""

    name: str
    file: str
    start: datetime
    until: datetime
    pipelines: tuple[Pipeline, ...]
    calendars: tuple[Calendar, ...]
    pools: dict[str, int]
    jobs: dict[str, list[ScriptedJob]]
    probes: dict[str, dict[str, tuple[TimedLook, ...]]]
    steps: tuple[TimedStep, ...]
    expect: Expectations


def instant(text: str, start: datetime | None) -> datetime:
    """`2026-03-02T08:30:00Z`, or `+15m` from the start."""
    if text.startswith("+") and start is not None:
        return start + parse_duration(text[1:])
    found = parse_instant(text)
    if found is None:
        raise InvalidValueError(f"{text!r} is not a time: write 2026-03-02T08:30:00Z" + (" or +15m" if start else ""))
    return found


def load_scenario(path: Path) -> Scenario:
    """Read a scenario file; raises ScenarioError with all that is wrong."""
    try:
        data = path.read_bytes()
    except OSError as error:
        problem = Problem(str(path), None, "", f"cannot be read: {error.strerror}")
        raise ScenarioError((problem,)) from error
    document = read_document(str(path), data)
    if not isinstance(document, Document):
        raise ScenarioError(document)
    return _Reader(document, path.parent).read()


class _Reader:
    """Collects every problem of one file."""

    def __init__(self, document: Document, folder: Path) -> None:
        self._document = document
        self._folder = folder
        self._problems: list[Problem] = list(document.problems)
        self._inline: dict[tuple[str | int, ...], Pipeline] = {}
        self._of_files: list[Pipeline] = []

    def read(self) -> Scenario:
        raw = decode(self._document.value, _File)
        if not isinstance(raw, _File):
            self._problems += [self._problem(finding.path, finding.message) for finding in raw]
            raise ScenarioError(tuple(self._problems))
        start = self._instant(("start",), raw.start, None)
        until = self._instant(("until",), raw.until, start)
        if start is not None and until is not None and until < start:
            self._add(("until",), "is before start")
        calendars = self._calendars(raw)
        pipelines = self._pipelines(raw, calendars)
        steps = self._steps(raw, start, calendars)
        probes = self._probes(raw, start)
        self._check_set()
        self._known_pipelines(raw, {one.config.id for one in self._everything()})
        self._expected_times(raw, start)
        if self._problems or start is None or until is None:
            raise ScenarioError(tuple(self._problems))
        return Scenario(
            name=raw.name or Path(self._document.file).stem,
            file=self._document.file,
            start=start,
            until=until,
            pipelines=tuple(pipelines),
            calendars=tuple(calendars.values()),
            pools=raw.pools,
            jobs=raw.jobs,
            probes=probes,
            steps=steps,
            expect=raw.expect,
        )

    def _problem(self, path: tuple[str | int, ...], message: str) -> Problem:
        _, line = self._document.place(path)
        return Problem(self._document.file, line, format_path(path), message)

    def _add(self, path: tuple[str | int, ...], message: str) -> None:
        self._problems.append(self._problem(path, message))

    def _instant(self, path: tuple[str | int, ...], text: str, start: datetime | None) -> datetime | None:
        try:
            return instant(text, start)
        except InvalidValueError as error:
            self._add(path, str(error))
            return None

    def _calendars(self, raw: _File) -> dict[str, Calendar]:
        found: dict[str, Calendar] = {}
        for index, entry in enumerate(raw.calendars):
            value: object = entry
            if "file" in entry:
                loaded = self._file(("calendars", index), str(entry["file"]))
                value = loaded.value if loaded is not None else None
            calendar = decode(value, Calendar) if value is not None else ()
            findings = check_calendar(calendar) if isinstance(calendar, Calendar) else calendar
            if isinstance(calendar, Calendar):
                found[calendar.name] = calendar
            for finding in findings:
                if finding.severity is Severity.ERROR:
                    self._add(("calendars", index, *finding.path), finding.message)
        return found

    def _file(self, path: tuple[str | int, ...], name: str) -> Document | None:
        try:
            found = read_document(name, (self._folder / name).read_bytes())
        except OSError as error:
            self._add(path, f"{name}: cannot be read: {error.strerror}")
            return None
        if isinstance(found, Document):
            return found
        self._problems += found
        return None

    def _pipelines(self, raw: _File, calendars: dict[str, Calendar]) -> list[Pipeline]:
        found = (self._pipeline(("pipelines", index), one, calendars) for index, one in enumerate(raw.pipelines))
        return [pipeline for pipelines in found for pipeline in pipelines]

    def _pipeline(
        self, path: tuple[str | int, ...], entry: dict[str, Any], calendars: dict[str, Calendar]
    ) -> list[Pipeline]:
        """The configs of one entry: an inline one, or those of a file."""
        if set(entry) == {"file"}:
            found = self._pipeline_file(path, str(entry["file"]), calendars)
            self._of_files += found
            return found
        if entry.get("archetype") is not None:
            message = "a config inside a scenario has no archetypes beside it: write it out, or name its file"
            self._add((*path, "archetype"), message)
        config = read_stored(entry, calendars)
        if isinstance(config, PipelineConfig):
            self._inline[path] = Pipeline(config, entry)
            return [self._inline[path]]
        for problem in config:
            line = self._document.place(path)[1]
            place = f"{format_path(path)}.{problem.path}"
            self._problems.append(Problem(self._document.file, line, place, problem.message))
        return []

    def _pipeline_file(self, path: tuple[str | int, ...], name: str, calendars: dict[str, Calendar]) -> list[Pipeline]:
        target = self._folder / name
        if not target.is_file():
            self._add(path, f"{name}: there is no such file beside this scenario")
            return []
        loaded = load_paths([target])
        self._problems += [problem for problem in loaded.problems if problem.severity is Severity.ERROR]
        for calendar in loaded.calendars.values():
            calendars.setdefault(calendar.name, calendar)
        return [Pipeline(one.config, one.document) for one in loaded.configs]

    def _check_set(self) -> None:
        """What `validate` finds when it sees all pipelines together. A scenario may leave an upstream out."""
        first = {path: one for path, one in self._inline.items() if path[0] == "pipelines"}
        files = {one.config.id: one.config for one in self._of_files}
        configs = files | {one.config.id: one.config for one in self._inline.values()}
        seen = dict.fromkeys(files, "a file")
        for path, one in first.items():
            place = seen.setdefault(one.config.id, format_path(path))
            if place != format_path(path):
                self._add((*path, "pipeline", "id"), f"{one.config.id!r} is the id of another pipeline too: {place}")
        for path, one in self._inline.items():
            for finding in check_upstreams(one.config, configs, configs.keys(), unknown=Severity.WARNING):
                if finding.severity is Severity.ERROR:
                    self._add((*path, *finding.path), finding.message)
        by_id = {one.config.id: path for path, one in self._inline.items()}
        for cycle in find_cycles(configs):
            finding = cycle.finding()
            self._add((*by_id.get(cycle.members[0], ("pipelines",)), *finding.path), finding.message)

    def _everything(self) -> list[Pipeline]:
        """Every config of the scenario, also those of `apply` steps."""
        return [*self._inline.values(), *self._of_files]

    def _known_pipelines(self, raw: _File, known: set[str]) -> None:
        if self._problems:
            return
        for name in raw.jobs:
            if name not in known:
                self._add(("jobs", name), f"there is no pipeline {name!r} in this scenario")
        probes = {(one.config.id, probe.key) for one in self._everything() for probe in one.config.probes}
        for name, scripts in raw.probes.items():
            for key in scripts:
                if (name, key) not in probes:
                    self._add(("probes", name, key), f"no pipeline {name!r} of this scenario has a probe {key!r}")
        for index, step in enumerate(raw.steps):
            named = step.rerun or step.job or step.cancel or step.remove or (step.sensor or "").partition("/")[0]
            if named and named not in known:
                self._add(("steps", index), f"there is no pipeline {named!r} in this scenario")

    def _steps(self, raw: _File, start: datetime | None, calendars: dict[str, Calendar]) -> tuple[TimedStep, ...]:
        steps: list[TimedStep] = []
        for index, step in enumerate(raw.steps):
            self._check_step(index, step)
            at = self._instant(("steps", index, "at"), step.at, start)
            path = ("steps", index, "apply")
            applied = self._pipeline(path, step.apply, calendars) if step.apply is not None else []
            if at is not None:
                steps.append(TimedStep(at, step, tuple(applied)))
        # Stable: steps of one instant stay in file order.
        return tuple(sorted(steps, key=lambda one: one.at))

    def _probes(self, raw: _File, start: datetime | None) -> dict[str, dict[str, tuple[TimedLook, ...]]]:
        return {
            name: {key: self._looks(("probes", name, key), looks, start) for key, looks in scripts.items()}
            for name, scripts in raw.probes.items()
        }

    def _looks(
        self, path: tuple[str | int, ...], looks: list[ScriptedLook], start: datetime | None
    ) -> tuple[TimedLook, ...]:
        found: list[TimedLook] = []
        if not looks:
            self._add(path, "a probe has at least one answer: {data: {...}} or {error: ...}")
        for index, look in enumerate(looks):
            here = (*path, index)
            if (look.data is None) == (not look.error):
                self._add(here, "an answer of a probe is {data: {...}} or {error: ...}")
            if (look.at is None) != (index == 0):
                self._add(here, "the first answer is from the start on, without `at`; each later one needs its `at`")
            at = start if look.at is None else self._instant((*here, "at"), look.at, start)
            if at is not None and found and at <= found[-1].at:
                self._add((*here, "at"), "is not after the answer before it")
            if at is not None:
                found.append(TimedLook(at, look))
        return tuple(found)

    def _check_step(self, index: int, step: Step) -> None:
        path = ("steps", index)
        kinds = [name for name in _STEP_KINDS if getattr(step, name) not in (None, False)]
        if len(kinds) != 1:
            known, has = ", ".join(_STEP_KINDS), ", ".join(kinds) or "none"
            self._add(path, f"a step is one of {known}; this one has {has}")
        if step.sensor is not None and ("/" not in step.sensor or step.data is None):
            self._add(path, "a sensor step is written {at, sensor: pipeline/key, data: {...}}")
        if (step.rerun is not None or step.job is not None) and step.date is None:
            self._add(path, "a rerun or job step needs a date")
        if step.job is not None and step.result is None:
            self._add(path, "a job step needs a result: success, fail or timeout")

    def _expected_times(self, raw: _File, start: datetime | None) -> None:
        groups: dict[str, list[ExpectedEvent]] = {
            "events": raw.expect.events,
            "never": raw.expect.never,
            "counts": list(raw.expect.counts),
        }
        for name, group in groups.items():
            for index, expected in enumerate(group):
                if expected.at is not None:
                    self._instant(("expect", name, index, "at"), expected.at, start)


def inline_scenario(**fields: Any) -> Scenario:
    """A scenario made in code: the same checks, no file."""
    document = read_document("scenario.json", msgspec.json.encode(fields))
    if not isinstance(document, Document):
        raise ScenarioError(document)
    return _Reader(document, Path()).read()
