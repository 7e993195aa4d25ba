"""A definition, read and checked once. What is not in our subset is refused here, never ignored while running.

The Structs are the subset: a state type or a field enters when the lifecycle needs it, and leaves with its last use
(ADR 3). A test compares them with the file.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from interlock.embedded.asl.choice import Condition, compile_condition
from interlock.embedded.asl.paths import ALL, DefinitionError, Json, Path
from interlock.embedded.asl.templates import Template

ROOT: Final = Path("$")
TOKEN_SUFFIX: Final = ".waitForTaskToken"
MAX_SECONDS: Final = 99_999_999

PositiveSeconds = Annotated[int, Meta(ge=1, le=MAX_SECONDS)]
ErrorNames = Annotated[list[str], Meta(min_length=1)]


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="pascal", forbid_unknown_fields=True):
    comment: str = ""


class Retrier(_Part, frozen=True, kw_only=True):
    """How often and how soon an error is tried again."""

    error_equals: ErrorNames
    interval_seconds: PositiveSeconds = 1
    max_attempts: Annotated[int, Meta(ge=0, le=MAX_SECONDS)] = 3
    backoff_rate: Annotated[float, Meta(ge=1)] = 2.0
    max_delay_seconds: Annotated[int, Meta(ge=1, le=31_622_400)] | None = None


class Catcher(_Part, frozen=True, kw_only=True):
    """Where an error leads that is not tried again."""

    error_equals: ErrorNames
    next: str
    result_path: Path = ROOT


class ChoiceRule:
    """A condition, and where it leads."""

    __slots__ = ("condition", "next")

    def __init__(self, rule: Json) -> None:
        if not isinstance(rule, Mapping) or not isinstance(rule.get("Next"), str):
            raise DefinitionError("a choice needs a condition and a Next")
        self.next: Final[str] = rule["Next"]
        self.condition: Final[Condition] = compile_condition(
            {name: value for name, value in rule.items() if name != "Next"}
        )


class _State(_Part, frozen=True, kw_only=True, tag_field="Type"):
    pass


class Task(_State, frozen=True, kw_only=True, tag="Task"):
    """Calls something outside."""

    resource: str
    next: str
    parameters: Template | None = None
    result_path: Path = ROOT
    retry: list[Retrier] = []
    catch: list[Catcher] = []
    timeout_seconds_path: Path | None = None

    @property
    def waits_for_token(self) -> bool:
        """It ends when its token is answered, not when its call returns."""
        return self.resource.endswith(TOKEN_SUFFIX)


class Pass(_State, frozen=True, kw_only=True, tag="Pass"):
    """Reshapes the data."""

    next: str
    input_path: Path = ROOT
    result: Any | UnsetType = UNSET
    parameters: Template | None = None
    result_path: Path = ROOT


class Choice(_State, frozen=True, kw_only=True, tag="Choice"):
    """Goes to the Next of the first rule that holds."""

    choices: Annotated[list[ChoiceRule], Meta(min_length=1)]
    default: str


class Succeed(_State, frozen=True, kw_only=True, tag="Succeed"):
    """Ends well."""


class Fail(_State, frozen=True, kw_only=True, tag="Fail"):
    """Ends badly."""

    error: str
    cause: str


State = Task | Pass | Choice | Succeed | Fail


class _Document(_Part, frozen=True, kw_only=True):
    start_at: str
    states: Annotated[dict[str, dict[str, Any]], Meta(min_length=1)]
    timeout_seconds: PositiveSeconds | None = None


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """A checked definition: every state is known, every transition leads somewhere."""

    start_at: str
    states: Mapping[str, State]
    timeout_seconds: int | None


def load_definition(document: object) -> Definition:
    """Read and check a definition; DefinitionError says what is wrong, and in which state."""
    try:
        wire = msgspec.convert(document, _Document)
    except msgspec.ValidationError as error:
        raise DefinitionError(f"not a state machine this interpreter runs: {error}") from error
    states = {name: _load_state(name, raw) for name, raw in wire.states.items()}
    targets = {("StartAt", wire.start_at)}
    targets |= {(f"state {name!r}", target) for name, state in states.items() for target in _targets(state)}
    for where, target in sorted(targets):
        if target not in states:
            raise DefinitionError(f"{where} leads to {target!r}, which does not exist: add it or name another")
    return Definition(start_at=wire.start_at, states=states, timeout_seconds=wire.timeout_seconds)


def _load_state(name: str, raw: Mapping[str, Json]) -> State:
    try:
        state: State = msgspec.convert(raw, State, dec_hook=_decode)
        _check_state(state)
    except (msgspec.ValidationError, DefinitionError) as error:
        raise DefinitionError(f"state {name!r}: {error}") from error
    return state


def _decode(type_: type, value: object) -> object:
    if type_ is Path and not isinstance(value, str):
        raise DefinitionError(f"a path is expected, not {value!r}")
    return type_(value)


def _check_state(state: State) -> None:
    for path in _result_paths(state):
        if path.context:
            raise DefinitionError(f"ResultPath {path.text!r}: a result cannot be put into the context object")
    if isinstance(state, Task):
        for handlers in (state.retry, state.catch):
            _check_wildcard([one.error_equals for one in handlers])


def _check_wildcard(handlers: list[list[str]]) -> None:
    for position, names in enumerate(handlers):
        if ALL in names and (len(names) > 1 or position + 1 < len(handlers)):
            raise DefinitionError("States.ALL must stand alone, in the last retrier or catcher")


def _result_paths(state: State) -> Iterator[Path]:
    if isinstance(state, Task | Pass):
        yield state.result_path
    if isinstance(state, Task):
        yield from (catcher.result_path for catcher in state.catch)


def _targets(state: State) -> Iterator[str]:
    if isinstance(state, Task | Pass):
        yield state.next
    if isinstance(state, Task):
        yield from (catcher.next for catcher in state.catch)
    if isinstance(state, Choice):
        yield from (rule.next for rule in state.choices)
        yield state.default
