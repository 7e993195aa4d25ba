"""What the tasks of a DAG run wrote, as one text that only grows.

Tasks come in the order in which they were started, each with the log of its latest try. Behind the first task that has
not ended nothing is shown yet, or what comes later would have to be squeezed in before it.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from interlock.jobs.airflow.api import AirflowApi
from interlock.jobs.rest import Answer
from interlock.model.job_configs import AirflowConfig

# What is read of one task's log, and of how many tasks: a log is looked at here, not kept.
_TASK_LIMIT: Final = 1024 * 1024
_MOST_TASKS: Final = 50
_ENDED: Final = frozenset({"success", "failed", "skipped", "upstream_failed", "removed"})
_SKIPPED: Final = ("::group::Log message source details", "::group::Pre Execute")


class Task(msgspec.Struct, frozen=True):
    """A task instance, as far as it matters here."""

    task_id: str
    state: str | None = None
    try_number: int = 0
    map_index: int = -1
    start_date: str | None = None

    @property
    def ended(self) -> bool:
        """Will it change no more?"""
        return self.state in _ENDED

    @property
    def name(self) -> str:
        """Its id, and which of its mapped instances it is."""
        return self.task_id if self.map_index < 0 else f"{self.task_id}[{self.map_index}]"


def tasks_of(api: AirflowApi, config: AirflowConfig, run_id: str, state: str = "") -> list[Task]:
    """The tasks of a run that have begun, in the order of their starts; none when they cannot be had.

    At most a hundred; `state`: of that state alone.
    """
    params = {"limit": "100", **({"state": state} if state else {})}
    answer = api.call(config, "GET", config.dag_id, "dagRuns", run_id, "taskInstances", params=params)
    if not answer.good:
        return []
    found: list[Task] = []
    for one in answer.json().get("task_instances", []):
        try:
            found.append(msgspec.convert(one, Task))
        except msgspec.ValidationError:
            continue  # not a shape we know; the others may be
    begun = [task for task in found if task.start_date and task.try_number > 0]
    return sorted(begun, key=lambda task: (str(task.start_date), task.task_id, task.map_index))


def run_log(api: AirflowApi, config: AirflowConfig, run_id: str) -> str:
    """All that can be shown by now."""
    parts: list[str] = []
    for task in tasks_of(api, config, run_id)[:_MOST_TASKS]:
        parts.append(f"==> {task.name}, try {task.try_number} <==\n{task_log(api, config, run_id, task)}")
        if not task.ended:
            break
    return "".join(parts)


def task_log(api: AirflowApi, config: AirflowConfig, run_id: str, task: Task) -> str:
    """The log of a task's latest try, a line per message, with a newline at its end; "" when there is none."""
    path = (config.dag_id, "dagRuns", run_id, "taskInstances", task.task_id, "logs", str(task.try_number))
    params = {"full_content": "true", "map_index": str(task.map_index)}
    structured = api.version(config) == "v2"
    accept = "application/x-ndjson" if structured else "text/plain"
    answer = api.call(config, "GET", *path, params=params, accept=accept, limit=_TASK_LIMIT)
    if not answer.good:
        return ""
    lines = list(_messages(answer)) if structured else _plain(answer.text)
    return "".join(f"{line}\n" for line in lines)


def _plain(text: str) -> list[str]:
    """The lines of a log of Airflow 2, without its heading: host and files, which are others while the task runs."""
    lines = text.splitlines()
    begin = next((n for n, line in enumerate(lines) if line.startswith("[")), 0)
    return lines[begin:]


def _messages(answer: Answer) -> Iterator[str]:
    """The messages, without where they were read from and what Airflow did before the task: nobody asks for that."""
    skipping = False
    for line in answer.body.splitlines():
        try:
            message = msgspec.json.decode(line)
        except msgspec.DecodeError:
            continue  # the last one, cut off
        if isinstance(message, str):
            yield message
            continue
        event = str(message.get("event", "")) if isinstance(message, dict) else "::"
        if event.startswith("::"):
            skipping = event in _SKIPPED
        elif not skipping:
            yield from _lines(message)


def _lines(message: Mapping[str, Any]) -> Iterator[str]:
    """A structured message as a person reads it: `TIME [level] words`, then the errors that led to it."""
    at, level = message.get("timestamp"), message.get("level")
    yield f"{f'{at} ' if at else ''}{f'[{level}] ' if level else ''}{message.get('event', '')}"
    for error in message.get("error_detail") or []:
        if isinstance(error, dict):
            yield f"{error.get('exc_type', 'error')}: {error.get('exc_value', '')}"
