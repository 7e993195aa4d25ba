"""Scripted probes: what each of them answers, from when on."""

from collections.abc import Mapping, Sequence
from typing import Any

from interlock.model.errors import ProbeError
from interlock.ports.clock import Clock
from interlock.ports.probes import ProbeRequest
from interlock.simulation.scenario import TimedLook


class ScriptedProbes:
    """`ports.probes.Prober` of a scenario. A probe without a script is never looked at: steps write its sensor."""

    def __init__(self, scripts: Mapping[str, Mapping[str, Sequence[TimedLook]]], clock: Clock) -> None:
        self._scripts = scripts
        self._clock = clock

    def answers(self, pipeline: str, key: str) -> bool:
        """Does the scenario say what it answers?"""
        return key in self._scripts.get(pipeline, {})

    def look(self, request: ProbeRequest) -> dict[str, Any]:
        """The latest answer whose time has come; the first holds from the start."""
        now = self._clock.now()
        script = self._scripts[request.pipeline][request.key]
        found = [one.look for one in script if one.at <= now][-1]
        if found.data is None:
            raise ProbeError(found.error)
        return dict(found.data)
