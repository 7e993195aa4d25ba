"""Files and folders of configs to the model: every error of every file at once, and never an exception.

One pass over the files, each on its own; then a look at the set they form. A config with an error anywhere is left out:
an invalid config is never run.
"""

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path as FilePath

import msgspec

from interlock.config.aliases import normalise_calendar
from interlock.config.cascades import check_upstreams, find_cycles
from interlock.config.decode import decode
from interlock.config.documents import Document
from interlock.config.folders import Place, config_files, find_place, read_file
from interlock.config.origins import Origin, origins
from interlock.config.problems import Finding, Problem, Severity
from interlock.config.semantics import check_calendar
from interlock.config.sources import Merged, merge
from interlock.config.stored import Checked, decode_and_check
from interlock.config.suggestions import did_you_mean
from interlock.config.versions import config_version
from interlock.config.warnings import Abilities, find_missing, find_warnings
from interlock.decide.values import show
from interlock.model.config import Calendar, PipelineConfig


class Loaded(msgspec.Struct, frozen=True):
    """A valid config; `document` is what is stored of it: plain, archetype merged, aliases resolved."""

    config: PipelineConfig
    document: dict[str, object]
    version: str
    file: str
    merged: Merged

    @property
    def archetype(self) -> str:
        """The file of its archetype; "" when it has none."""
        return self.merged.sources[1].document.file if len(self.merged.sources) > 1 else ""

    def origins(self) -> list[Origin]:
        """Each of its values, and where it was written."""
        return origins(self.merged)


class LoadResult(msgspec.Struct, frozen=True):
    """What was found: `pipelines` counts the files of pipelines, valid or not; `invalid` names those that are not.

    `rejected`: per file of a pipeline what keeps it from running, also what stands in its archetype.
    `digests`: per file that was read its SHA-256, so that others can tell whether it is still the same.
    """

    configs: tuple[Loaded, ...]
    calendars: Mapping[str, Calendar]
    problems: tuple[Problem, ...]
    pipelines: int
    invalid: tuple[str, ...] = ()
    rejected: Mapping[str, tuple[Problem, ...]] = {}
    digests: Mapping[str, str] = {}

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The problems that keep configs from running."""
        return tuple(problem for problem in self.problems if problem.severity is Severity.ERROR)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """The problems that do not."""
        return tuple(problem for problem in self.problems if problem.severity is Severity.WARNING)


def load_paths(
    paths: Sequence[FilePath],
    *,
    abilities: Abilities | None = None,
    refusal: Callable[[FilePath], str] = lambda _: "",
) -> LoadResult:
    """Load files and folders as one set of pipelines, for an installation of these abilities.

    `refusal` says of a file why it is not obeyed, or "".
    """
    load = _Load(abilities, refusal)
    for path in paths:
        load.read_place(path)
    load.check_set()
    load.check_unused()
    return load.result()


class _Candidate(msgspec.Struct):
    """A pipeline file on its way; `config` is None once an error was found. `checked` is what the rest is judged by.

    `errors`: all that are its own, in whichever file they stand; in order, each once.
    """

    merged: Merged
    whole: bool
    checked: Checked | None = None
    config: PipelineConfig | None = None
    errors: dict[Problem, None] = {}


class _Load:
    """The state of one load."""

    def __init__(self, abilities: Abilities | None, refusal: Callable[[FilePath], str]) -> None:
        self._abilities = abilities
        self._refusal = refusal
        self.calendars: dict[str, Calendar] = {}
        self._calendar_files: dict[str, str] = {}
        self._archetypes: dict[FilePath, dict[str, Document | None]] = {}
        self._whole: set[FilePath] = set()
        self._calendar_names: dict[FilePath, frozenset[str]] = {}
        self._seen: set[FilePath] = set()
        self._folders: dict[FilePath, FilePath] = {}
        self._candidates: list[_Candidate] = []
        self._unread: set[str] = set()
        self._digests: dict[str, str] = {}
        self._problems: dict[Problem, None] = {}  # in order, each once: an archetype's error concerns many pipelines

    def read_place(self, path: FilePath) -> None:
        """Read everything a path stands for."""
        try:
            place = find_place(path)
            calendars = self._read_calendars(place.calendars)
            archetypes = self._read_archetypes(place.archetypes)
        except OSError as error:
            self._report(Problem(str(path), None, "", f"cannot be read: {error.strerror or error}"))
            return
        if place.whole and place.archetypes is not None:
            self._whole.add(place.archetypes)
        if not place.files:
            self._report(Problem(str(path), None, "", "there is no pipeline (*.yaml, *.yml, *.json) in this folder"))
        for file in place.files:
            real = self._real(file)
            if real not in self._seen:
                self._seen.add(real)
                self._read_pipeline(file, place, calendars, archetypes)

    def _real(self, file: FilePath) -> FilePath:
        """Where a file really lies. Of many in a folder, the folder is asked once."""
        if file.is_symlink():
            return file.resolve()
        if file.parent not in self._folders:
            self._folders[file.parent] = file.parent.resolve()
        return self._folders[file.parent] / file.name

    def _read_pipeline(
        self, file: FilePath, place: Place, calendars: frozenset[str], archetypes: Mapping[str, Document | None]
    ) -> None:
        document = self._read(file)
        if not isinstance(document, Document):
            self._report(*document)
            self._unread.add(file.stem)
            return
        self._judge_pipeline(document, place, calendars, archetypes)
        document.forget_lines()

    def _judge_pipeline(
        self, document: Document, place: Place, calendars: frozenset[str], archetypes: Mapping[str, Document | None]
    ) -> None:
        archetype, finding = _archetype_of(document, archetypes)
        merged = merge(document, archetype)
        candidate = _Candidate(merged, place.whole)
        self._candidates.append(candidate)
        self._report_of(candidate, *merged.problems())
        checked = decode_and_check(merged.document, calendars)
        if finding is not None:
            # Without its archetype a config lacks who knows what: only what is there can be judged.
            present = tuple(one for one in checked.findings if not one.needs)
            self._report_of(candidate, *merged.locate_all((finding, *present)))
            return
        candidate.checked = checked
        self._report_of(candidate, *merged.locate_all(checked.findings))
        if checked.config is not None and not checked.findings and not merged.problems():
            missing = find_missing(checked.config, self._abilities)
            self._report_of(candidate, *(merged.locate(one) for one in missing))
            candidate.config = checked.config if not missing else None
            warnings = find_warnings(checked.config, self._abilities, merged.document)
            self._report(*(merged.locate(one) for one in warnings))

    def _read(self, file: FilePath) -> Document | tuple[Problem, ...]:
        refused = self._refusal(file)
        if refused:
            return (Problem(str(file), None, "", f"is not obeyed: {refused}"),)
        document = read_file(file)
        if isinstance(document, Document):
            self._digests[document.file] = sha256(document.data).hexdigest()
        return document

    def _read_calendars(self, folder: FilePath | None) -> frozenset[str]:
        """The names of a folder's calendars. A broken calendar counts: its own error is enough."""
        if folder is None:
            return frozenset()
        if folder not in self._calendar_names:
            names: set[str] = set()
            for file in config_files(folder):
                document = self._read(file)
                if isinstance(document, Document):
                    names.add(self._read_calendar(document, file.stem))
                else:
                    self._report(*document)
                    names.add(file.stem)
            self._calendar_names[folder] = frozenset(names)
        return self._calendar_names[folder]

    def _read_calendar(self, document: Document, stem: str) -> str:
        calendar = decode(normalise_calendar(document.value), Calendar)
        merged = merge(document)
        if isinstance(calendar, tuple):
            self._report(*document.problems, *merged.locate_all(calendar))
            name = document.value.get("name")
            return name if isinstance(name, str) else stem
        self._report(*document.problems, *merged.locate_all(check_calendar(calendar)))
        self.calendars.setdefault(calendar.name, calendar)
        first = self._calendar_files.setdefault(calendar.name, document.file)
        if first != document.file:
            message = f"{show(calendar.name)} is the name of the calendar in {first} already"
            self._report(merged.locate(Finding(("name",), message)))
        return calendar.name

    def _read_archetypes(self, folder: FilePath | None) -> Mapping[str, Document | None]:
        """A folder's archetypes by name; None for one that cannot be read."""
        if folder is None:
            return {}
        if folder not in self._archetypes:
            found: dict[str, Document | None] = {}
            for file in config_files(folder):
                document = self._read(file)
                found[file.stem] = document if isinstance(document, Document) else None
                if not isinstance(document, Document):
                    self._report(*document)
                elif "archetype" in document.value:
                    message = "an archetype has no archetype of its own: copy what it needs"
                    self._report(merge(document).locate(Finding(("archetype",), message)))
            self._archetypes[folder] = found
        return self._archetypes[folder]

    def check_unused(self) -> None:
        """Errors of archetypes that no pipeline names: of the others they were found with the pipelines.

        Where a single file is loaded, nobody knows what the other pipelines name.
        """
        used = {source.document.file for one in self._candidates for source in one.merged.sources[1:]}
        for folder in self._whole:
            for document in self._archetypes[folder].values():
                if document is None or document.file in used:
                    continue
                merged = merge(document)
                self._report(*merged.problems())
                # It need not be whole: only what is there can be judged.
                found = decode_and_check(merged.document, frozenset(self.calendars)).findings
                self._report(*merged.locate_all(one for one in found if not one.needs))

    def check_set(self) -> None:
        """What only shows when all pipelines are seen together."""
        places: dict[str, list[_Candidate]] = {}
        for candidate in self._candidates:
            id_ = _id_of(candidate.merged.document)
            if id_ is not None:
                places.setdefault(id_, []).append(candidate)
        for id_, candidates in places.items():
            self._check_unique(id_, candidates)
        known = self._unread | places.keys()
        by_id = {one.checked.config.id: one for one in self._candidates if one.checked and one.checked.config}
        configs = {id_: one.checked.config for id_, one in by_id.items() if one.checked and one.checked.config}
        for id_, candidate in by_id.items():
            self._check_upstreams(candidate, configs[id_], configs, known)
        for cycle in find_cycles(configs):
            problem = by_id[cycle.members[0]].merged.locate(cycle.finding())
            for member in cycle.members:
                self._report_of(by_id[member], problem)
                by_id[member].config = None

    def _check_unique(self, id_: str, candidates: list[_Candidate]) -> None:
        if len(candidates) == 1:
            return
        places = [one.merged.locate(Finding(("pipeline", "id"), "")) for one in candidates]
        for candidate, place in zip(candidates, places, strict=True):
            others = ", ".join(f"{other.file}:{other.line}" for other in places if other is not place)
            message = f"{show(id_)} is the id of another pipeline too: {others}"
            self._report_of(candidate, msgspec.structs.replace(place, message=message))
            candidate.config = None

    def _check_upstreams(
        self, candidate: _Candidate, config: PipelineConfig, configs: Mapping[str, PipelineConfig], known: set[str]
    ) -> None:
        assert candidate.checked is not None
        unknown = Severity.ERROR if candidate.whole else Severity.WARNING
        for finding in candidate.checked.certain(check_upstreams(config, configs, known, unknown=unknown)):
            self._report_of(candidate, candidate.merged.locate(finding))
            if finding.severity is Severity.ERROR:
                candidate.config = None

    def _report_of(self, candidate: _Candidate, *problems: Problem) -> None:
        candidate.errors.update(dict.fromkeys(one for one in problems if one.severity is Severity.ERROR))
        self._report(*problems)

    def _report(self, *problems: Problem) -> None:
        self._problems.update(dict.fromkeys(problems))

    def result(self) -> LoadResult:
        """Everything, in the order of files and lines."""
        configs = tuple(
            Loaded(one.config, one.merged.document, config_version(one.merged.document), one.merged.file, one.merged)
            for one in self._candidates
            if one.config is not None
        )
        problems = sorted(self._problems, key=lambda problem: (problem.file, problem.line or 0))
        broken = [one for one in self._candidates if one.config is None]
        invalid = {_id_of(one.merged.document) or FilePath(one.merged.file).stem for one in broken} | self._unread
        rejected = {one.merged.file: tuple(one.errors) for one in broken}
        return LoadResult(
            configs,
            self.calendars,
            tuple(problems),
            len(self._seen),
            tuple(sorted(invalid)),
            rejected,
            dict(sorted(self._digests.items())),
        )


def _archetype_of(
    document: Document, archetypes: Mapping[str, Document | None]
) -> tuple[Document | None, Finding | None]:
    """The archetype that a pipeline names, or why it has to do without."""
    name = document.value.get("archetype")
    if not isinstance(name, str):
        return None, None  # none, or not a name: the decoder says so
    if name not in archetypes:
        message = f"there is no archetype {show(name)} in archetypes/{did_you_mean(name, archetypes)}"
        return None, Finding(("archetype",), message)
    archetype = archetypes[name]
    if archetype is None:
        return None, Finding(("archetype",), f"the archetype {show(name)} cannot be read: see its own errors")
    return archetype, None


def _id_of(document: Mapping[str, object]) -> str | None:
    """The id of a pipeline, also of one that is otherwise wrong."""
    pipeline = document.get("pipeline")
    id_ = pipeline.get("id") if isinstance(pipeline, dict) else None
    return id_ if isinstance(id_, str) else None
