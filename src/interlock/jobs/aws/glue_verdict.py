"""Is a Glue job that "succeeded" believed? Glue says SUCCEEDED when the driver exits cleanly, also after it caught the
exception that its job died of.

Two places tell: the stream in which Glue analyses exceptions (job run insights; there only after a failure), and the
ERROR and FATAL lines that the driver's log4j wrote to its output, where an exception comes with them. Standard error is
not one of them: the JVM writes words such as `OnOutOfMemoryError` there at every start. Where neither can be read,
Glue is believed, with a warning.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from interlock.jobs.aws.errors import code_of, describe
from interlock.jobs.aws.logs import NOT_ALLOWED, NOT_THERE, Match, matching_lines

_DEFAULT_GROUP: Final = "/aws-glue/jobs"
_JOB_FAILED: Final = "GlueExceptionAnalysisJobFailed"
_WORDS: Final = '?"ERROR" ?"FATAL" ?"Exception" ?"Error:" ?"Traceback"'
_QUOTED: Final = 500
_SAME_MOMENT: Final = 1000

_LOG4J: Final = re.compile(
    r"\[?\d{2,4}[-/]\d{2}[-/]\d{2}[ T]\d{2}:\d{2}:\d{2}\S*\s+(?:\[[^\]]*\]\s+)?(TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\b"
)
# The name of an exception's class, or Python's heading of one; the mere word "Exception" is none.
_EXCEPTION: Final = re.compile(r"\b[A-Za-z_$][\w$.]*[\w$](?:Exception|Error)\b|\bTraceback \(most recent call last\)")


class JobLogs(msgspec.Struct, frozen=True):
    """Where a job run logs: pairs of group and stream. Which of them exist depends on Glue's version and the job."""

    analysed: tuple[tuple[str, str], ...]
    output: tuple[tuple[str, str], ...]
    errors: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, run_id: str, group: str, arguments: Mapping[str, str]) -> "JobLogs":
        """From what Glue and the job's arguments say. Glue 5 writes the analysis beside its errors."""
        base = (arguments.get("--custom-logGroup-prefix") or group or _DEFAULT_GROUP).rstrip("/")
        continuous = arguments.get("--continuous-log-logGroup") or f"{base}/logs-v2"
        driver = f"{arguments.get('--custom-logStream-prefix') or run_id}-driver"
        analysis = f"{run_id}-job-insights-rca-driver"
        return cls(
            analysed=((continuous, analysis), (f"{base}/error", analysis)),
            output=((f"{base}/output", run_id), (f"{base}/output", driver), (continuous, driver)),
            errors=((f"{base}/error", run_id), (f"{base}/error", driver)),
        )

    @property
    def written(self) -> tuple[tuple[str, str], ...]:
        """What a person wants to read, the best first."""
        return (*self.output, *self.errors)


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What the logs say: a failure and where it was found, or a warning that nobody could look."""

    failure: str = ""
    source: str = ""
    warning: str = ""


class _Search:
    """Looks into streams; remembers what it could and could not see."""

    def __init__(self, logs: Any) -> None:
        self._logs = logs
        self.read = 0
        self.refused = ""
        self.cut = False

    def lines(self, group: str, stream: str, words: str) -> Iterator[Match]:
        found = matching_lines(self._logs, group, words, stream=stream)
        try:
            yield from found
        except Exception as error:
            code = code_of(error)
            if code in NOT_ALLOWED:
                self.refused = describe(error)
            elif code not in NOT_THERE:
                raise
            return
        self.read += 1
        self.cut = self.cut or found.cut


def judge_logs(logs: Any, where: JobLogs) -> Verdict:
    """Look for a failure in the logs of a job run that Glue calls a success."""
    search = _Search(logs)
    for group, stream in where.analysed:
        for line in search.lines(group, stream, f'"{_JOB_FAILED}"'):
            return Verdict(failure=analysed_reason(line.message), source="exception analysis")
    for group, stream in where.output:
        failure = driver_failure(search.lines(group, stream, _WORDS))
        if failure:
            return Verdict(failure=failure, source="driver log")
    return Verdict(warning=_unseen(search, where))


def _unseen(search: _Search, where: JobLogs) -> str:
    if search.refused:
        return f"Glue's SUCCEEDED could not be checked against the job's logs: {search.refused}"
    if not search.read:
        groups = " or ".join(dict.fromkeys(group for group, _ in where.output))
        return f"Glue's SUCCEEDED could not be checked: the job has no logs in {groups}"
    if search.cut:
        return "Glue's SUCCEEDED was checked against a part of the job's logs: there is more than is searched"
    return ""


def analysed_reason(message: str) -> str:
    """The `Failure Reason` of Glue's analysis; the message itself where it has none."""
    begins = message.find("{")
    try:
        found = msgspec.json.decode(message[begins:] if begins >= 0 else "")
    except msgspec.DecodeError:
        found = None
    reason = found.get("Failure Reason") if isinstance(found, dict) else None
    return _short(reason if isinstance(reason, str) and reason else message)


def driver_failure(lines: Iterable[Match]) -> str:
    """The first ERROR or FATAL line with an exception, in it or in the lines that belong to it; "" without one."""
    error: Match | None = None
    for line in lines:
        logged = _LOG4J.match(line.message)
        if logged is not None:
            error = line if logged[1] in ("ERROR", "FATAL") else None
        elif error is not None and line.timestamp - error.timestamp > _SAME_MOMENT:
            error = None  # something else that the job wrote, later
        if error is not None and _EXCEPTION.search(line.message):
            return _short(error.message if error is line else f"{error.message} {line.message}")
    return ""


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _QUOTED else f"{line[:_QUOTED]}..."
