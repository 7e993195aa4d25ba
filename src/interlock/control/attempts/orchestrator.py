"""orchestrator: what the states of the lifecycle do. One function per mode; each may be called again at any time.

A state may run twice (a crash after its commit and before the execution's own record), so every mode first looks at
what the run says and only then acts. A mode that finds its attempt over, or another attempt open, answers `superseded`.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from interlock.control import catalog, pools, probing, readiness, records
from interlock.control.attempts import cancelling, completion, parts, passing, starting
from interlock.control.context import Control
from interlock.decide import transitions
from interlock.decide.rules import Verdict
from interlock.decide.verdicts import Verdicts, read_verdicts, remember, with_history, write_verdicts
from interlock.logs import get_logger
from interlock.model import keys
from interlock.model.config import PipelineConfig
from interlock.model.errors import InterlockError
from interlock.model.events import EventType
from interlock.model.keys import RunKey
from interlock.model.run import Active, FinalReason, JobEvent, JobRecord, Run, RunStatus
from interlock.model.sensor import Sensor
from interlock.ports.jobs import JobState, JobStatus
from interlock.ports.store import Matches, Put, Require, Write

log = get_logger(__name__)

Output = dict[str, Any]
SUPERSEDED: Final = "superseded"
# A job that was asked to stop ends soon.
_STOPPING_POLL: Final = timedelta(seconds=10)


class Task(msgspec.Struct, frozen=True, rename="camel"):
    """The input of every mode."""

    mode: str
    pipeline: str
    schedule: str
    date: str
    attempt: int
    wake_seq: str = ""
    execution: str = ""
    error: Any = None

    @property
    def key(self) -> RunKey:
        """The run it is about."""
        return RunKey(self.pipeline, self.schedule, self.date)


def handle(control: Control, payload: Mapping[str, Any]) -> Output:
    """The entry point of the lifecycle's tasks."""
    task = msgspec.convert(payload, Task)
    mode = _MODES.get(task.mode)
    if mode is None:
        raise InterlockError(f"the orchestrator has no mode {task.mode!r}: it has {', '.join(_MODES)}")
    return mode(control, task)


def _run_of(control: Control, task: Task) -> Run | None:
    """The run, while this attempt is its latest."""
    run = records.get_run(control.store, task.key)
    return run if run is not None and run.attempt == task.attempt else None


def _config_of(control: Control, run: Run) -> PipelineConfig:
    return catalog.opened_with(control.store, run.pipeline, run.config_version)


def _active(control: Control, task: Task) -> Active:
    """The wake-up record of the attempt; one that is gone was never woken."""
    return records.get_active(control.store, task.key) or Active(attempt=task.attempt, wake_seq=0)


def _wake_seq(control: Control, task: Task) -> int:
    return _active(control, task).wake_seq


def seconds_until(now: datetime, *instants: datetime) -> int:
    """Whole seconds until the first of the instants, rounded up, at least 1: Step Functions waits whole seconds."""
    left = min(instants) - now
    return max(1, -(-left // timedelta(seconds=1)))


# ----------------------------------------------------------------------------------------------------- evaluate


def evaluate(control: Control, task: Task) -> Output:
    """Evaluate the rules; remember what passed, or say how long to wait."""
    active = _active(control, task)
    then: list[Callable[[], None]] = []
    looked: list[RunKey] = []

    def decide() -> tuple[Output, list[Write]]:
        then.clear()
        run = _run_of(control, task)
        if run is None or not run.active or run.status is RunStatus.FAILED:
            return {"status": SUPERSEDED}, []
        if run.passed_at is not None:
            return {"status": "passed"}, []
        config = _config_of(control, run)
        if control.look_first is not None and config.probes and not looked:
            looked.append(run.key)
            control.look_first(control, run)
        now = control.now()
        names = [one.key for one in readiness.all_readings(config, run.schedule)]
        sensors = readiness.gather(control.store, config, run.key, names)
        verdict = readiness.verdict(config, run.key, sensors, now)
        before = read_verdicts(active.rules if active.attempt == run.attempt else "")
        known = remember(before, verdict.results, verdict.summary(), now)
        facts = _Facts(verdict, known, sensors, now, active.wake_seq)
        looks = _looks(control, config, run, facts) if verdict.passed else {}
        pool = pools.pool_of(control, config.job)
        if verdict.passed and not looks:
            entry = _enter(control, pool, run, facts)
            if pool is not None and entry.joined:
                then.append(partial(pools.look_again, control, pool, run.key))
            return _ready(control, config, run, facts, entry)
        left = [] if pool is None else pools.leave(control, pool, run)
        if pool is not None and left:
            # The slot that it was called to goes to the next in line.
            then.append(partial(pools.wake_next, control, pool))
        return _wait(config, run, facts, looks), left

    answer = records.settle_commit(control, decide)
    for follow_up in then:
        follow_up()
    return answer


class _Facts(msgspec.Struct, frozen=True):
    """One evaluation: what it found, when, and what it had seen of the wake-ups before."""

    verdict: Verdict
    known: Verdicts
    sensors: dict[str, Sensor]
    now: datetime
    seen: int

    def waiting(self, seconds: int, summary: str = "") -> Output:
        """The input of the wait: for how long, which wake-ups were seen, and what to remember of the rules."""
        known = replace(self.known, summary=summary) if summary else self.known
        return {
            "status": "waiting",
            "wakeSeq": str(self.seen),
            "waitSeconds": seconds,
            "rules": write_verdicts(known),
        }


def _enter(control: Control, pool: str | None, run: Run, facts: _Facts) -> pools.Entry:
    if pool is None:
        return pools.Entry(run.slot, [])
    return pools.enter(control, pool, run, passing.breach_of(control, run), facts.now)


def _ready(
    control: Control, config: PipelineConfig, run: Run, facts: _Facts, entry: pools.Entry
) -> tuple[Output, list[Write]]:
    """The rules pass: the job is started, once its pool has a slot for it."""
    if entry.slot is None:
        # Not bound by the window: it is the pool that is full, not the data that is missing.
        every, pool = config.schedule_of(run.schedule).evaluation.interval, pools.pool_of(control, config.job)
        wait = seconds_until(facts.now, facts.now + every)
        return facts.waiting(wait, f"the rules pass; waits for a slot of the pool {pool}"), entry.writes
    verdict = replace(facts.verdict, results=tuple(with_history(facts.verdict.results, facts.known)))
    passed, also = passing.passed(control, config, run, verdict, facts.sensors, facts.now, slot=entry.slot)
    return {"status": "passed"}, [records.put_run(passed, run), *also, *entry.writes]


def _looks(control: Control, config: PipelineConfig, run: Run, facts: _Facts) -> dict[str, datetime]:
    """The looks of probes that the verdict hangs on, and until when each is awaited; when the window closes, none."""
    if facts.now >= _closes(config, run):
        return {}
    looks = probing.awaited(control, config, run, facts.now)
    if not looks or readiness.verdict(config, run.key, probing.without(facts.sensors, looks), facts.now).passed:
        return {}
    return looks


def _closes(config: PipelineConfig, run: Run) -> datetime:
    return run.opened_at + config.schedule_of(run.schedule).evaluation.window


def _wait(config: PipelineConfig, run: Run, facts: _Facts, looks: Mapping[str, datetime]) -> Output:
    closes = _closes(config, run)
    if facts.now >= closes:
        return {"status": "closed", "wakeSeq": str(facts.seen)}
    every = config.schedule_of(run.schedule).evaluation.interval
    waiting = f"the rules pass; waits for the probe {', '.join(looks)} to look again" if looks else ""
    return facts.waiting(seconds_until(facts.now, closes, facts.now + every, *looks.values()), waiting)


def validation_exhausted(control: Control, task: Task) -> Output:
    """The window closed. A write that came after the last evaluation (wakeSeq moved on) is looked at first."""

    def decide() -> tuple[Output, list[Write]]:
        run = _run_of(control, task)
        if run is None or not run.active:
            return _exhausted_or_superseded(run), []
        if run.status is not RunStatus.PENDING or run.passed_at is not None:
            return {"status": "again"}, []
        active = _active(control, task)
        if str(active.wake_seq) != task.wake_seq:
            return {"status": "again"}, []
        return {"status": "exhausted"}, _exhaust(control, run, active)

    return records.settle_commit(control, decide)


def _exhausted_or_superseded(run: Run | None) -> Output:
    done = run is not None and run.final_reason is FinalReason.VALIDATION_EXHAUSTED
    return {"status": "exhausted" if done else SUPERSEDED}


def _exhaust(control: Control, run: Run, active: Active) -> list[Write]:
    now = control.now()
    config = _config_of(control, run)
    verdict = readiness.readiness(control.store, config, run.key, now)
    known = remember(read_verdicts(active.rules), verdict.results, verdict.summary(), now)
    evaluation = config.schedule_of(run.schedule).evaluation
    message = f"the evaluation window of {run.pipeline} for {run.date} closed: {verdict.summary()}"
    ended = transitions.step(
        run,
        RunStatus.FAILED_FINAL,
        now=now,
        final_reason=FinalReason.VALIDATION_EXHAUSTED,
        ended_at=now,
        lease_until=None,
        message=message,
    )
    event = records.event(
        EventType.VALIDATION_EXHAUSTED,
        run.key,
        now,
        message,
        attempt=run.attempt,
        results=with_history(verdict.results, known),
    )
    logged = JobRecord(
        pipeline=run.pipeline,
        schedule=run.schedule,
        date=run.date,
        event=JobEvent.VALIDATION_EXHAUSTED,
        attempt=run.attempt,
        at=now,
        error=verdict.summary(),
    )
    writes: list[Write] = [
        records.put_run(ended, run),
        # Deleting the wake-up record on this condition is what makes a late wake-up visible to us, or us to it.
        records.drop_active_if(run.key, active.wake_seq),
        records.put_job(logged, control.new_id()),
        records.put_event(event),
    ]
    if evaluation.after_window == "reopen":
        until = int((now + control.settings.reopen_for).timestamp())
        writes.append(Put(records.run_record(run.key, keys.EXHAUSTED), {"attempt": run.attempt, "ttl": until}))
    return writes


# ---------------------------------------------------------------------------------------------------- check-job


def check_job(control: Control, task: Task) -> Output:
    """Has the job ended? The job log decides; the target is asked when it is silent."""
    seen = _wake_seq(control, task)
    run = _run_of(control, task)
    if run is None:
        return {"event": SUPERSEDED}
    outcome = records.outcome_of(control.store, run)
    if outcome is not None or run.status is not RunStatus.RUNNING:
        return _ended(outcome)
    config = _config_of(control, run)
    cancelling.stop_job(control, config, run)
    status = _ask(control, config, run)
    if status is not None and status.state.terminal:
        record = starting.job_record(run, status, control.now(), by=starting.BY_LIFECYCLE)
        if control.store.commit([_same_attempt(run), records.put_outcome(record, run)]) is not None:
            # Somebody else has said what became of the job, or the attempt is over: that counts.
            current = _run_of(control, task)
            return _ended(None if current is None else records.outcome_of(control.store, current))
        return _ended(record)
    if status is not None:
        _seen_running(control, task)
    return _poll_again(control, config, run, seen, status)


def _ended(outcome: JobRecord | None) -> Output:
    """What became of the job; without an outcome, the attempt is not the current one any more."""
    return {"event": SUPERSEDED if outcome is None else outcome.event.value}


def _ask(control: Control, config: PipelineConfig, run: Run) -> JobStatus | None:
    """What the target says; None when it cannot be asked just now (the poll window bounds how long we try)."""
    try:
        return starting.runner_of(control, config).check(starting.request_of(control, config, run), run.job_id)
    except Exception as error:  # noqa: BLE001 - a target that does not answer is not the end of its job
        log.warning("job-check-failed", run=str(run.key), attempt=run.attempt, error=str(error))
        return None


def _poll_again(control: Control, config: PipelineConfig, run: Run, seen: int, status: JobStatus | None) -> Output:
    if config.job is None or run.triggered_at is None:
        return {"event": SUPERSEDED}
    now = control.now()
    closes = run.triggered_at + config.job.poll_window
    if now >= closes:
        return {"event": "closed"}
    sooner = status.ask_again if status is not None else None
    if run.cancel is not None and not run.cancel.problem:
        sooner = min(sooner or _STOPPING_POLL, _STOPPING_POLL)
    wait = seconds_until(now, closes, now + config.job.poll_interval, now + (sooner or config.job.poll_interval))
    return {"event": JobState.RUNNING.value, "wakeSeq": str(seen), "waitSeconds": wait}


def _same_attempt(run: Run) -> Require:
    return Require(records.run_record(run.key, keys.RUN), Matches({"attempt": run.attempt, "status": run.status.value}))


def _seen_running(control: Control, task: Task) -> None:
    """JOB_STARTED, the first time the target says that the job runs."""

    def decide() -> tuple[None, list[Write]]:
        run = _run_of(control, task)
        if run is None or run.status is not RunStatus.RUNNING or run.job_started_at is not None:
            return None, []
        now = control.now()
        event = records.event(
            EventType.JOB_STARTED,
            run.key,
            now,
            f"the job of {run.pipeline} for {run.date} is running",
            attempt=run.attempt,
            runId=run.run_id,
            jobId=run.job_id,
        )
        seen = transitions.amend(run, now=now, job_started_at=now)
        return None, [records.put_run(seen, run), records.put_event(event)]

    records.settle_commit(control, decide)


def job_poll_exhausted(control: Control, task: Task) -> Output:
    """The poll window closed: event, job-log record and FAILED_FINAL in one commit, unless the job was reported.

    With `onPollExhausted: stop` the target is asked to stop the job, afterwards: asking twice does no harm.
    """

    def decide() -> tuple[Output, list[Write]]:
        seen = _wake_seq(control, task)
        run = _run_of(control, task)
        if run is None:
            return {"event": SUPERSEDED}, []
        outcome = records.outcome_of(control.store, run)
        if outcome is not None:
            return {"event": outcome.event.value}, []
        if run.status is not RunStatus.RUNNING:
            return {"event": JobEvent.TIMEOUT.value}, []
        return {"event": JobEvent.TIMEOUT.value}, _exhaust_poll(control, run, seen)

    answer = records.settle_commit(control, decide)
    run = _run_of(control, task)
    if run is not None and run.final_reason is FinalReason.POLL_EXHAUSTED:
        _stop_given_up(control, run)
    return answer


def _stop_given_up(control: Control, run: Run) -> None:
    config = _config_of(control, run)
    if config.job is None or config.job.on_poll_exhausted != "stop":
        return
    try:
        starting.runner_of(control, config).stop(starting.request_of(control, config, run), run.job_id)
    except Exception as error:  # noqa: BLE001 - the run is over either way; a rerun asks the target first
        log.warning("job-stop-failed", run=str(run.key), attempt=run.attempt, error=str(error))


def _exhaust_poll(control: Control, run: Run, seen: int) -> list[Write]:
    now = control.now()
    window = _config_of(control, run).job
    closed = f"{window.poll_window}" if window else ""
    message = f"the job of {run.pipeline} for {run.date} had not ended when its poll window ({closed}) closed"
    ended = transitions.step(
        run,
        RunStatus.JOB_POLL_EXHAUSTED,
        RunStatus.FAILED_FINAL,
        now=now,
        final_reason=FinalReason.POLL_EXHAUSTED,
        sla_closed=True,
        ended_at=now,
        lease_until=None,
        message=message,
    )
    record = starting.job_record(run, JobStatus(state=JobState.TIMED_OUT, error=message), now)
    event = records.event(
        EventType.JOB_POLL_EXHAUSTED,
        run.key,
        now,
        message,
        attempt=run.attempt,
        runId=run.run_id,
        jobId=run.job_id,
    )
    return [
        records.put_run(ended, run),
        records.drop_active_if(run.key, seen),
        records.put_outcome(replace(record, reported_by="interlock"), run),
        *completion.cancel_sla_writes(control, run, now),
        records.put_event(event),
    ]


# ------------------------------------------------------------------------------------------------------ outcome


def complete_trigger(control: Control, task: Task) -> Output:
    """Decide the outcome, once."""
    return completion.settle(control, task.key, task.attempt)


def infra_failure(control: Control, task: Task) -> Output:
    """The lifecycle cannot go on: FAILED_FINAL, and somebody hears of it."""
    caught = task.error if isinstance(task.error, dict) else {"Error": str(task.error)}
    cause = f"{caught.get('Error', 'error')}: {_cause(str(caught.get('Cause', '')))[:500]}"
    return {"result": completion.fail_final(control, task.key, task.attempt, FinalReason.INFRA, cause)}


def _cause(text: str) -> str:
    """The message in an error's cause: Lambda wraps it in JSON, the embedded interpreter does not."""
    try:
        wrapped = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    return str(wrapped.get("errorMessage", text)) if isinstance(wrapped, dict) else text


def trigger(control: Control, task: Task) -> Output:
    """Start the job of this attempt, at most once."""
    return starting.trigger(control, task.key, task.attempt)


def trigger_exhausted(control: Control, task: Task) -> Output:
    """No start succeeded."""
    return starting.exhausted(control, task.key, task.attempt, _cause(str(task.error or "")))


def hand_over(control: Control, task: Task) -> Output:
    """This execution has looped often: the next part of the attempt goes on from here."""
    run = parts.follow(control, task.key, task.attempt, task.execution)
    return {"part": run.part} if run is not None else {"result": SUPERSEDED}


_MODES: Final[dict[str, Callable[[Control, Task], Output]]] = {
    "evaluate": evaluate,
    "validation-exhausted": validation_exhausted,
    "trigger": trigger,
    "trigger-exhausted": trigger_exhausted,
    "check-job": check_job,
    "job-poll-exhausted": job_poll_exhausted,
    "complete-trigger": complete_trigger,
    "hand-over": hand_over,
    "infra-failure": infra_failure,
}
