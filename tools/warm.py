"""Tests that have been collected already, run in a fork for each change of the code (`tools/mutants.py`).

A process of its own takes seconds until its first test: it imports the program and collects. Here one process does so
once, and each change is put into a fork of it: functions get the code of the changed text. A change outside of
functions (a constant of a module, a default value) has taken effect before the fork, so it is not judged here, nor is
any other change of which this module cannot be certain: the answer is then "unknown", and the caller starts a process
of its own.

The process is pytest with this module as its plugin. Requests and answers are lines of JSON on two pipes.
"""

import contextlib
import functools
import gc
import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Final, Literal

import pytest

_PIPES: Final = "INTERLOCK_WARM_PIPES"
_READY: Final = "ready\n"
Answer = Literal["passed", "failed", "timed out", "unknown"]

# ------------------------------------------------------------------------------------------------ changed code

# A piece of code by its qualified name, and its number among those of that name.
Key = tuple[str, int]


def replacements(sound: str, changed: str, file: str) -> dict[CodeType, CodeType] | None:
    """The code of each function of the sound text and what takes its place; None where that would not be the change."""
    before, after = _codes(sound, file), _codes(changed, file)
    if before.keys() != after.keys() or len(set(before.values())) != len(before):
        return None
    found = {}
    for key, code in before.items():
        other = after[key]
        if not code.co_flags & CO_OPTIMIZED:
            if _own(code) != _own(other):
                return None
        elif code.co_freevars != other.co_freevars:
            return None
        else:
            found[code] = other
    return found


def _codes(source: str, file: str) -> dict[Key, CodeType]:
    numbers: Counter[str] = Counter()
    found: dict[Key, CodeType] = {}
    for code in _nested(compile(source, file, "exec", dont_inherit=True)):
        found[code.co_qualname, numbers[code.co_qualname]] = code
        numbers[code.co_qualname] += 1
    return found


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def _own(code: CodeType) -> tuple[object, ...]:
    """What a module or a class does when it is imported, but for its functions and the lines it stands on."""
    constants = tuple((type(value), value) for value in code.co_consts if not isinstance(value, CodeType))
    return code.co_code, code.co_names, constants


# --------------------------------------------------------------------------------------------- the warm process


class _Warm:
    """The plugin: instead of running the collected tests, answers requests to run some of them."""

    def __init__(self, source: Path, requests: int, answers: int) -> None:
        self._source, self._requests, self._answers = source, requests, answers
        self._failed = ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed:
            return None  # what could not be collected is pytest's to say
        items = {item.nodeid: item for item in session.items}
        functions = self._functions()
        caches = [thing for thing in gc.get_objects() if isinstance(thing, functools._lru_cache_wrapper)]
        gc.collect()
        gc.freeze()
        with os.fdopen(self._requests, encoding="utf-8") as requests, os.fdopen(self._answers, "wb", 0) as answers:
            answers.write(_READY.encode())
            for line in requests:
                request = json.loads(line)
                answer = self._answer(request, items, functions, caches)
                answers.write(json.dumps(answer).encode() + b"\n")
        return True

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed = report.nodeid

    def _functions(self) -> dict[str, list[FunctionType]]:
        found: dict[str, list[FunctionType]] = {}
        for thing in gc.get_objects():
            if isinstance(thing, FunctionType) and thing.__code__.co_filename.startswith(str(self._source)):
                found.setdefault(thing.__code__.co_filename, []).append(thing)
        return found

    def _answer(
        self,
        request: Mapping[str, Any],
        items: Mapping[str, pytest.Item],
        functions: Mapping[str, list[FunctionType]],
        caches: Iterable[Any],
    ) -> tuple[Answer, str, int]:
        chosen = list(chosen_items(request["tests"], items))[: request["most"]]
        if not chosen:
            return "unknown", "", 0
        live = functions.get(request["file"], [])
        new = replacements(request["sound"], request["changed"], request["file"])
        if new is None or any(function.__code__ not in new for function in live):
            return "unknown", "", 0
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            self._run(chosen, live, new, caches, writing)
        os.close(writing)
        return _ended(child, reading, request["limit"])

    def _run(
        self,
        chosen: Sequence[pytest.Item],
        live: Iterable[FunctionType],
        new: Mapping[CodeType, CodeType],
        caches: Iterable[Any],
        writing: int,
    ) -> None:
        """In the fork: put the change in, run the tests until one fails, and end."""
        os.setsid()
        by, number = "", 0
        try:
            for function in live:
                function.__code__ = new[function.__code__]
            for cache in caches:
                cache.cache_clear()
            while not by and number < len(chosen):
                item = chosen[number]
                number += 1
                following = chosen[number] if number < len(chosen) else None
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                by = self._failed
        except BaseException as error:  # noqa: BLE001 whatever ends the tests is a failure of theirs
            by = f"ended by {error!r}"[:500]
        os.write(writing, json.dumps([by, number]).encode() + b"\n")
        os._exit(0)


def chosen_items(names: Iterable[str], items: Mapping[str, pytest.Item]) -> Iterator[pytest.Item]:
    """The collected tests by their names, each once; a name may be that of a file or a folder, too."""
    seen: set[str] = set()
    for name in names:
        below = (f"{name}::", f"{name}/", f"{name}[")
        found = [name] if name in items else [test for test in items if test.startswith(below)]
        for test in found:
            if test not in seen:
                seen.add(test)
                yield items[test]


def _ended(child: int, reading: int, limit: float) -> tuple[Answer, str, int]:
    """Wait for the fork, and leave nothing behind that it has started."""
    with os.fdopen(reading, "rb") as words:
        in_time, _, _ = select.select([words], [], [], limit)
        said = words.readline() if in_time else b""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
    if not in_time:
        return "timed out", "", 0
    by, number = json.loads(said or '["ended without a word", null]')
    return ("failed", by, number) if by else ("passed", "", number)


# ------------------------------------------------------------------------------------------------- its client


class WarmTests:
    """The tests of a copy of the source, collected once. Ends with `close`."""

    def __init__(self, tests: Sequence[str], source: Path, root: Path, environment: Mapping[str, str]) -> None:
        (there, requests), (answers, back) = os.pipe(), os.pipe()
        # Names in it become paths of sockets, which must be short.
        self._files = source.parent / "t"
        self._files.mkdir()
        log = source.parent / "warm.log"
        command = [
            sys.executable,
            "-m",
            "tools.warm",
            str(source),
            "-q",
            "-n",
            "0",
            "-m",
            "not slow",
            "-o",
            "timeout=60",
        ]
        own = {_PIPES: f"{there} {back}", "PYTEST_DEBUG_TEMPROOT": str(self._files), "TMPDIR": str(self._files)}
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [*command, "-o", "timeout=60", "-p", "no:cacheprovider", "--no-header", *tests],
                cwd=root,
                env={**environment, **own},
                pass_fds=(there, back),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        os.close(there)
        os.close(back)
        self._requests = os.fdopen(requests, "w", encoding="utf-8")
        self._answers = os.fdopen(answers, encoding="utf-8")
        if self._answers.readline() != _READY:
            self.close()
            raise RuntimeError(f"the tests cannot be collected:\n{log.read_text(encoding='utf-8')[-2000:]}")

    def run(self, tests: Sequence[str], limit: float, *, most: int | None = None) -> tuple[Answer, str, int]:
        """Run these tests, or the first `most` of them, as the code stands."""
        return self._asked({"tests": tests, "limit": limit, "most": most, "file": "", "sound": "", "changed": ""})

    def run_changed(
        self, tests: Sequence[str], limit: float, file: Path, sound: str, changed: str
    ) -> tuple[Answer, str, int]:
        """Run these tests with a file's text changed; also the first that failed, and its number."""
        request = {"tests": tests, "limit": limit, "most": None, "file": str(file), "sound": sound, "changed": changed}
        return self._asked(request)

    def _asked(self, request: Mapping[str, object]) -> tuple[Answer, str, int]:
        self._requests.write(json.dumps(request) + "\n")
        self._requests.flush()
        answer, by, number = json.loads(self._answers.readline() or '["unknown", "", 0]')
        for left in self._files.iterdir():
            shutil.rmtree(left, ignore_errors=True)
        return answer, by, number

    def close(self) -> None:
        """End the process."""
        self._requests.close()
        self._process.wait()
        self._answers.close()


def main(arguments: Sequence[str]) -> int:
    """Be the warm process."""
    source, *options = arguments
    requests, answers = map(int, os.environ.pop(_PIPES).split())
    return int(pytest.main(list(options), plugins=[_Warm(Path(source), requests, answers)]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
