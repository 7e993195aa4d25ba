"""The kinds of probes there are: which module looks, what it needs, and how its looks get their secrets.

Nothing is imported before it is needed. What a kind needs and is not installed is known without importing it.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from msgspec.structs import replace

from interlock.decide.literal_secrets import echoes, literal_values
from interlock.decide.masking import Masks
from interlock.decide.templates import resolve
from interlock.extras import AWS, SQL, Extra
from interlock.jobs.registry import close_runner
from interlock.model.config import ProbeType
from interlock.model.errors import InterlockError, ProbeError
from interlock.ports.job_targets import RunAs
from interlock.ports.probes import ProbeRequest
from interlock.ports.secrets import Secrets

# What a kind cannot do without.
_NEEDED: Final[Mapping[ProbeType, Extra]] = {ProbeType.SQL: SQL, ProbeType.S3: AWS}


class Kind(Protocol):
    """One kind of probe. A kind that holds something open has a `close()`."""

    def look(self, request: ProbeRequest) -> dict[str, Any]:
        """The observation now; raises ProbeError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeSettings:
    """What an installation gives to its probes."""

    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    allow_private: bool | tuple[str, ...] = False
    working_folder: Path | None = None
    run_as: RunAs | None = None


def why_unavailable(type_: ProbeType) -> str:
    """What keeps this installation from looking, and what to do; "" if nothing is known to."""
    needed = _NEEDED.get(type_)
    return "" if needed is None else needed.why_missing(f"probes of type {type_}")


def missing_probes() -> dict[ProbeType, str]:
    """The kinds that this installation cannot look with, and what to install."""
    return {type_: problem for type_ in ProbeType if (problem := why_unavailable(type_))}


class Probes:
    """`ports.probes.Prober`: every kind, made with its first look; secrets are looked up for each look."""

    def __init__(self, settings: ProbeSettings, secrets: Secrets) -> None:
        self._settings = settings
        self._secrets = secrets
        self._lock = threading.Lock()
        self._kinds: dict[ProbeType, Kind] = {}

    def answers(self, pipeline: str, key: str) -> bool:
        """Every probe of every pipeline can be asked."""
        return True

    def look(self, request: ProbeRequest) -> dict[str, Any]:
        """The observation now. Neither it nor an error ever holds a secret."""
        # What a server was sent it may repeat; a query or a path is what an error is about.
        sent = echoes if request.type is ProbeType.HTTP else literal_values
        used: list[str] = list(sent(request.config))
        literal = len(used)
        try:
            config = resolve(request.config, lambda name: _noted(self._secrets.get(name), used))
            found = self._kind(request.type).look(replace(request, config=config))
        except ProbeError as error:
            raise ProbeError(Masks(used).hide(str(error))) from None
        except InterlockError as error:
            raise ProbeError(Masks(used).hide(str(error))) from None
        except Exception as error:  # noqa: BLE001 - whatever a driver raises: the probe has failed, and nothing else
            raise ProbeError(Masks(used).hide(f"{type(error).__name__}: {error}")) from None
        return _without(found, Masks(used[literal:])) if len(used) > literal else found

    def close(self) -> None:
        """End what is under way, and close what is open."""
        with self._lock:
            kinds = list(self._kinds.values())
        for kind in kinds:
            close_runner(kind)

    def _kind(self, type_: ProbeType) -> Kind:
        with self._lock:
            if type_ not in self._kinds:
                problem = why_unavailable(type_)
                if problem:
                    raise ProbeError(problem)
                self._kinds[type_] = _MAKERS[type_](self._settings)
            return self._kinds[type_]


def _noted(secret: str, used: list[str]) -> str:
    used.append(secret)
    return secret


def _without(value: Any, masks: Masks) -> Any:
    if isinstance(value, str):
        return masks.hide(value)
    if isinstance(value, dict):
        return {masks.hide(name): _without(inner, masks) for name, inner in value.items()}
    return [_without(inner, masks) for inner in value] if isinstance(value, list) else value


def _http(settings: ProbeSettings) -> Kind:
    from interlock.probes.http import HttpProbe

    return HttpProbe(allow_private=settings.allow_private)


def _command(settings: ProbeSettings) -> Kind:
    from interlock.probes.command import CommandProbe

    return CommandProbe(settings.environment, settings.working_folder, settings.run_as)


def _sql(_settings: ProbeSettings) -> Kind:
    from interlock.probes.sql import SqlProbe

    return SqlProbe()


def _s3(settings: ProbeSettings) -> Kind:
    from interlock.probes.s3 import S3Probe

    return S3Probe(allow_private=settings.allow_private)


def _file(settings: ProbeSettings) -> Kind:
    from interlock.probes.file import FileProbe

    return FileProbe(settings.working_folder)


_MAKERS: Final[Mapping[ProbeType, Callable[[ProbeSettings], Kind]]] = {
    ProbeType.HTTP: _http,
    ProbeType.COMMAND: _command,
    ProbeType.SQL: _sql,
    ProbeType.S3: _s3,
    ProbeType.FILE: _file,
}
