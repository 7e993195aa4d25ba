"""Everything the SDK does, without doing any of it: each method is a flow of steps (see `steps`).

The shells turn each flow into a method of the same name, arguments and docstring; that is why those are written here.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import uuid4

from interlock.client import answers, requests
from interlock.client.exchange import Exchange
from interlock.client.requests import Observation
from interlock.client.settings import Settings
from interlock.client.steps import Flow
from interlock.model.errors import InvalidValueError


class Core:
    """The flows, with the settings they share."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.exchange = Exchange(settings)

    # ------------------------------------------------------------------------------------------------ sensors

    def write_sensor(
        self, pipeline: str, key: str, data: Mapping[str, Any], *, ttl: int | None = None
    ) -> Flow[answers.Written]:
        """Write an observation; durable when this returns. `ttl` (epoch seconds): from then on it counts as absent."""
        return self.exchange.call(requests.put_sensor(pipeline, key, data, ttl), answers.Written)

    def write_sensors(self, observations: Iterable[Observation | Mapping[str, Any]]) -> Flow[list[answers.Written]]:
        """Write several observations with one request; each has `pipeline`, `key`, `data` and maybe `ttl`.

        All or nothing is refused: RefusedError names every one that is at fault, and nothing was written.
        """
        answer = yield from self.exchange.call(requests.batch(observations), answers.Batch)
        return answer.written

    def read_sensor(self, pipeline: str, key: str) -> Flow[answers.Sensor]:
        """The latest observation of a key; NotFoundError when it was never written, or has expired."""
        return self.exchange.call(requests.get_sensor(pipeline, key), answers.Sensor)

    def read_sensors(self, pipeline: str, *, limit: int | None = None) -> Flow[list[answers.Sensor]]:
        """The sensors of a pipeline, by key."""
        return self.exchange.pages(requests.list_sensors(pipeline), answers.Sensor, limit)

    def delete_sensor(self, pipeline: str, key: str) -> Flow[None]:
        """Forget the observation of a key; NotFoundError when there is none."""
        return self.exchange.done(requests.delete_sensor(pipeline, key))

    # ---------------------------------------------------------------------------------------------- pipelines

    def pipelines(self, *, limit: int | None = None) -> Flow[list[answers.Pipeline]]:
        """Every pipeline, by id, with its latest run."""
        return self.exchange.pages(requests.list_pipelines(), answers.Pipeline, limit)

    def pipeline(self, pipeline: str) -> Flow[answers.PipelineDetail]:
        """One pipeline, with its document."""
        return self.exchange.call(requests.get_pipeline(pipeline), answers.PipelineDetail)

    def apply(self, document: Mapping[str, Any]) -> Flow[answers.Applied]:
        """Create or change a pipeline; RefusedError names every error of the document, and nothing was changed."""
        return self.exchange.call(requests.put_pipeline(document), answers.Applied)

    def delete(self, pipeline: str) -> Flow[None]:
        """Delete a pipeline: it opens nothing new, what is under way ends. Its runs and events stay."""
        return self.exchange.done(requests.delete_pipeline(pipeline))

    def calendars(self) -> Flow[list[answers.Calendar]]:
        """Every named calendar."""
        return (yield from self.exchange.call(requests.list_calendars(), answers.Calendars)).items

    def apply_calendar(self, document: Mapping[str, Any]) -> Flow[answers.Calendar]:
        """Create or change a named calendar: `{"name": "month-end", "dates": ["2026-03-31"]}`, or `days`."""
        return self.exchange.call(requests.put_calendar(document), answers.Calendar)

    def run_probe(self, pipeline: str, key: str, *, date: str | None = None) -> Flow[answers.ProbeTrial]:
        """Have the controller look with a probe, once and now: what it saw, or why it failed. Nothing is written."""
        return self.exchange.call(requests.post_probe(pipeline, key, date), answers.ProbeTrial, repeatable=False)

    # --------------------------------------------------------------------------------------------------- runs

    def readiness(
        self, pipeline: str, date: str | None = None, *, schedule: str | None = None
    ) -> Flow[answers.Readiness]:
        """Would the rules let a run of that date (default: the current one) start now, and what of each rule."""
        return self.exchange.call(requests.readiness(pipeline, date, schedule), answers.Readiness)

    def why(self, pipeline: str, date: str | None = None, *, schedule: str | None = None) -> Flow[answers.Explanation]:
        """Why it ran, or why it has not: what opened it, each rule, what is awaited and what happens next."""
        return self.exchange.call(requests.why(pipeline, date, schedule), answers.Explanation)

    def runs(self, pipeline: str, *, schedule: str | None = None, limit: int | None = 50) -> Flow[list[answers.Run]]:
        """The runs of a pipeline, the latest date first; `limit=None` is all of them."""
        return self.exchange.pages(requests.list_runs(pipeline, schedule), answers.Run, limit)

    def run(self, pipeline: str, date: str, *, schedule: str | None = None) -> Flow[answers.RunDetail]:
        """One run with everything that hangs on it. `schedule` may be left out where the pipeline has one only."""
        named = yield from self._schedule(pipeline, schedule)
        return (yield from self.exchange.call(requests.get_run(pipeline, named, date), answers.RunDetail))

    def rerun(
        self, pipeline: str, date: str, *, schedule: str | None = None, reason: str = "", force: bool = False
    ) -> Flow[answers.Rerun]:
        """Ask for another attempt of a run; the answer carries the decision, if it is made within a moment.

        `force` passes the circuit breaker (nothing changed since the last success), and nothing else. Sent again only
        when it surely was not carried out: a second request would be a second rerun.
        """
        request = requests.post_rerun(pipeline, date, schedule, reason, force=force)
        return self.exchange.call(request, answers.Rerun, repeatable=False)

    def claim(
        self, pipeline: str, date: str | None = None, *, schedule: str | None = None, claim_id: str | None = None
    ) -> Flow[answers.Claim]:
        """Take the job of an `external` run (default: the current one): it is opened and started as yours.

        NotClaimedError when it is not yours; `error.later` says whether that may change. Exactly one claimant of an
        attempt gets it, and has to report how the job ended (`report_job`). With the `claim_id` of an earlier call
        this is the same claim, and has the same answer.
        """
        if date is None or schedule is None:
            meant = yield from self.readiness(pipeline, date, schedule=schedule)
            date, schedule = meant.date, meant.schedule
        request = requests.post_claim(pipeline, schedule, date, claim_id or uuid4().hex)
        return (yield from self.exchange.call(request, answers.Claim))

    def cancel(
        self, pipeline: str, date: str, *, schedule: str | None = None, reason: str = ""
    ) -> Flow[answers.Cancelled]:
        """End a waiting attempt, or have a running job stopped at its target; `run` says when that is done."""
        named = yield from self._schedule(pipeline, schedule)
        request = requests.post_cancel(pipeline, named, date, reason)
        return (yield from self.exchange.call(request, answers.Cancelled))

    def job_output(
        self,
        pipeline: str,
        date: str,
        *,
        schedule: str | None = None,
        attempt: int | None = None,
        offset: int = 0,
    ) -> Flow[answers.JobOutput]:
        """What the job of an attempt (default: the latest that started one) wrote, from an offset on."""
        run = yield from self.run(pipeline, date, schedule=schedule)
        started = [one for one in run.attempts if one.run_id and attempt in (None, one.attempt)]
        if not started:
            which = "no attempt" if attempt is None else f"attempt {attempt}"
            raise InvalidValueError(f"{pipeline} {run.schedule} {run.date}: {which} has started a job, so no output")
        request = requests.get_output(pipeline, started[-1].run_id, offset)
        reply = yield from self.exchange.reply(request)
        return answers.JobOutput(
            text=reply.body.decode("utf-8", "replace"),
            next_offset=int(reply.headers.get("x-next-offset", offset)),
            complete=reply.headers.get("x-complete") == "true",
            link=reply.headers.get("x-link", ""),
        )

    def report_job(
        self,
        pipeline: str,
        date: str,
        result: str,
        *,
        schedule: str | None = None,
        attempt: int | None = None,
        run_id: str = "",
        category: str | None = None,
        error: str = "",
    ) -> Flow[answers.JobRecord]:
        """Report how a job ended: `success`, `fail` or `timeout`.

        Without `attempt` or `run_id` it is the active attempt's. With one of them the report is sent again if its fate
        is unknown: said twice of the same attempt, it counts once.
        """
        body = {
            "date": date,
            "result": result,
            "schedule": schedule,
            "attempt": attempt,
            "runId": run_id or None,
            "category": category,
            "error": error or None,
        }
        request = requests.post_job(pipeline, body)
        return self.exchange.call(request, answers.JobRecord, repeatable=bool(run_id) or attempt is not None)

    # ----------------------------------------------------------------------------------------------- operating

    def stats(self, *, pipeline: str | None = None, days: int | None = None) -> Flow[dict[str, Any]]:
        """SLA compliance, durations and counts per day, as the server has them."""
        return self.exchange.call(requests.stats(pipeline, days), dict[str, Any])

    def controller(self) -> Flow[answers.Controller]:
        """How the controller stands: folders, invalid files, removed pipelines that still run, what is degraded."""
        return self.exchange.call(requests.get_controller(), answers.Controller)

    def run_watchdog(self) -> Flow[answers.WatchdogPass]:
        """One pass of the watchdog, now."""
        return self.exchange.call(requests.post_watchdog(), answers.WatchdogPass)

    def alerts(
        self, *, state: str | None = None, channel: str | None = None, limit: int | None = 100
    ) -> Flow[list[answers.Delivery]]:
        """Alerts on their way to people, the latest first; `state` is waiting, sent or dead."""
        return self.exchange.pages(requests.list_alerts(state, channel), answers.Delivery, limit)

    def test_alerts(self, channel: str | None = None) -> Flow[list[answers.ChannelTest]]:
        """Send a test alert on one channel, or on all; what became of it on each."""
        sent = yield from self.exchange.call(requests.post_alerts_test(channel), answers.AlertTest, repeatable=False)
        return sent.channels

    def audit(
        self,
        *,
        pipeline: str | None = None,
        actor: str | None = None,
        action: str | Sequence[str] | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        limit: int | None = 100,
    ) -> Flow[list[answers.AuditRecord]]:
        """Who changed what, the latest first. Needs a token for admin."""
        asked = requests.list_audit(pipeline, actor, action, since, until)
        return self.exchange.pages(asked, answers.AuditRecord, limit)

    def dead_letters(self, *, limit: int | None = 100) -> Flow[list[answers.DeadLetter]]:
        """What was given up on, in the order it came."""
        return self.exchange.pages(requests.list_dead_letters(), answers.DeadLetter, limit)

    def redrive(self, ids: Sequence[int] | None = None) -> Flow[int]:
        """Have these dead letters (None: all) done again; how many there were."""
        answer = yield from self.exchange.call(requests.post_redrive(ids), answers.Redriven, repeatable=False)
        return answer.redriven

    def _schedule(self, pipeline: str, named: str | None) -> Flow[str]:
        if named:
            return named
        found = yield from self.exchange.call(requests.get_pipeline(pipeline), answers.PipelineDetail)
        return requests.only_schedule(found)
