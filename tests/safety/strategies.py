"""Random scenarios: small pipelines of every kind, scripted jobs, and people who write what they like.

Everything drawn is plain JSON in the form of a scenario file (SPEC 18), so that a counterexample is a file.
"""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from hypothesis import reject
from hypothesis import strategies as st

from interlock.simulation.scenario import ScenarioError, inline_scenario
from tests.safety.faults import FaultPlan, Loss, Redelivery

START: Final = datetime(2026, 3, 5, 0, 0, tzinfo=UTC)  # a Thursday: a weekend is within reach
_DAYS: Final = ("2026-03-04", "2026-03-05", "2026-03-06", "2026-03-07", "2026-03-08")
_READY: Final = {"check": "equals", "field": "status", "value": "ready"}
_DURATIONS: Final = ("1m", "5m", "12m", "30m", "2h")

_NAMES: Final = ("alpha", "beta", "gamma", "delta")

Json = dict[str, Any]

_TARGETS: Final[tuple[Json, ...]] = ({"type": "glue", "config": {"jobName": "x"}}, {"type": "external"})
_GOOD_PERIODS: Final[tuple[Json, ...]] = ({}, {}, {"date": "2026-03-05"}, {"date": "2026-03-05", "hour": 8})


def _maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


@st.composite
def _schedules(draw: st.DrawFn, kind: str) -> Json:
    schedule: Json = {
        "evaluation": {
            "window": draw(st.sampled_from(("1m", "10m", "1h", "3h"))),
            "interval": draw(st.sampled_from(("1m", "5m", "17m"))),
            "afterWindow": draw(st.sampled_from(("reopen", "stop"))),
        }
    }
    zone = draw(st.sampled_from((None, None, "America/New_York", "Asia/Tokyo")))
    if zone:
        schedule["timezone"] = zone
    if kind in ("daily", "daily-or-sensor"):
        schedule["cron"] = draw(st.sampled_from(("0 6 * * *", "30 0 * * *", "0 9 * * 1-5", "15 23 * * *")))
    elif kind == "hourly":
        schedule["cron"] = draw(st.sampled_from(("5 * * * *", "0 */6 * * *", "40 8-12 * * *")))
    elif kind in ("inclusion", "inclusion-or-sensor"):
        listed = st.lists(st.sampled_from(_DAYS), min_size=1, max_size=3, unique=True)
        schedule["include"] = draw(st.builds(lambda dates: {"dates": dates}, listed) | st.just({"calendar": "open"}))
        schedule["time"] = draw(st.sampled_from(("00:00", "07:30")))
    if "cron" in schedule and draw(st.integers(0, 3)) == 0:
        schedule["period"] = "previous"
    if kind in ("sensor", "daily-or-sensor", "inclusion-or-sensor", "dry"):
        trigger: Json = {"key": "ready", **_READY}
        deadline = draw(st.sampled_from((None, None, "05:00", "20:00")))
        if deadline:
            trigger["deadline"] = deadline
        schedule["trigger"] = trigger
        granularity = draw(st.sampled_from((None, None, "day", "hour")))
        if granularity and "cron" not in schedule:
            schedule["granularity"] = granularity
    exclude = draw(
        _maybe(
            st.sampled_from(
                (
                    {"weekends": True},
                    {"dates": ["2026-03-06"]},
                    {"days": ["thursday"]},
                    {"calendar": "closed"},
                    {"calendar": "closed", "days": ["sunday"]},
                )
            )
        )
    )
    if exclude is not None and "include" not in schedule:
        schedule["exclude"] = exclude
    return schedule


@st.composite
def _validations(draw: st.DrawFn, upstreams: list[str]) -> Json:
    known: list[Json] = [
        {"key": "ready", **_READY},
        {"key": "rows", "check": "gte", "field": "count", "value": 100},
        {"key": "rows", "check": "exists", "period": "any"},
        {"key": "other", "check": "exists"},
    ]
    known += [{"key": f"upstream:{name}", "check": "exists"} for name in upstreams]
    rules = draw(st.lists(st.sampled_from(known), min_size=1, max_size=2, unique_by=str))
    return {"trigger": draw(st.sampled_from(("ALL", "ANY"))), "rules": rules}


@st.composite
def _jobs(draw: st.DrawFn) -> Json:
    kind = draw(st.sampled_from(_TARGETS))
    return {
        **kind,
        "maxRetries": draw(st.integers(0, 2)),
        "maxCodeRetries": draw(st.integers(0, 2)),
        "maxDriftReruns": draw(st.integers(0, 2)),
        "maxManualReruns": draw(st.integers(0, 2)),
        "jobPollWindowSeconds": draw(st.sampled_from((60, 600, 3600, 3600, 3600))),
        "pollInterval": draw(st.sampled_from(("30s", "1m", "7m"))),
        "retryDelay": draw(st.sampled_from(("0s", "0s", "45s", "20m"))),
    }


@st.composite
def _slas(draw: st.DrawFn, schedule: Json) -> Json:
    """An `sla` that fits a schedule, or none."""
    if not draw(st.booleans()):
        return {}
    triggered = "trigger" in schedule
    hourly = "*" in schedule.get("cron", "0 0").split()[1]
    sla: Json = {}
    if not triggered or draw(st.booleans()):
        sla["deadline"] = draw(st.sampled_from((":20", ":50"))) if hourly else draw(st.sampled_from(("06:10", "08:00")))
    if triggered and (not sla or draw(st.booleans())):
        sla["maxDuration"] = draw(st.sampled_from(("10m", "1h", "6h")))
    expected = draw(_maybe(st.sampled_from(("5m", "45m"))))
    if expected:
        sla["expectedDuration"] = expected
    if draw(st.booleans()):
        sla["critical"] = True
    if draw(st.booleans()):
        sla["readyBy"] = draw(st.sampled_from((":05", ":30"))) if hourly else draw(st.sampled_from(("05:00", "07:00")))
    return {"sla": sla}


_KINDS: Final = ("daily", "daily-or-sensor", "hourly", "sensor", "sensor", "inclusion", "inclusion-or-sensor", "dry")


@st.composite
def _pipelines(draw: st.DrawFn, name: str, earlier: list[str]) -> Json:
    kind = draw(st.sampled_from([*_KINDS, "cascade", "cascade"] if earlier else _KINDS))
    after: list[Json] = []
    if kind == "cascade":
        named = draw(st.lists(st.sampled_from(earlier), min_size=1, max_size=2, unique=True))
        requires = st.sampled_from(("same-period", "same-period", "all-hours"))
        after = [{"pipeline": one, "require": draw(requires)} for one in named]
    schedule = draw(_schedules(kind))
    document: Json = {
        "pipeline": {"id": name},
        "schedule": schedule,
        "validation": draw(_validations([one["pipeline"] for one in after])),
        "job": draw(_jobs()),
    }
    if after:
        document["after"] = after
    document |= draw(_slas(schedule))
    document |= draw(_post_runs())
    if kind == "dry":
        document["dryRun"] = True
    return document


@st.composite
def _hours_and_days(draw: st.DrawFn, hours: str, days: str) -> list[Json]:
    """An hourly pipeline that runs by itself, and a daily one that waits for all its hours."""
    hourly = draw(_pipelines(hours, []))
    hourly["schedule"] = draw(_schedules("hourly"))
    hourly["validation"] = {"rules": [{"key": "rows", "check": "exists", "period": "any"}]}
    hourly.pop("sla", None)
    hourly.pop("dryRun", None)
    daily = draw(_pipelines(days, []))
    daily["schedule"] = draw(_schedules("cascade"))
    daily["validation"] = draw(_validations([hours, hours, hours]))
    daily["after"] = [{"pipeline": hours, "require": "all-hours"}]
    daily.pop("sla", None)
    daily.pop("dryRun", None)
    return [hourly, daily | draw(_slas(daily["schedule"]))]


@st.composite
def _changes(draw: st.DrawFn, document: Json, earlier: list[str]) -> Json:
    """Another version of a config: a part of it, or all of it, is as it was never before."""
    part = draw(st.sampled_from(("validation", "job", "sla", "postRun", "dryRun", "schedule", "all")))
    upstreams = [one["pipeline"] for one in document.get("after", [])]
    changed = {name: value for name, value in document.items() if name != part}
    schedule = document["schedule"]
    match part:
        case "validation":
            return changed | {part: draw(_validations(upstreams))}
        case "job":
            return changed | {part: draw(_jobs())}
        case "sla":
            return changed | draw(_slas(schedule))
        case "postRun":
            return changed | draw(_post_runs())
        case "dryRun" if "trigger" in schedule:
            return changed if document.get("dryRun") else changed | {part: True}
        case _:
            return draw(_pipelines(document["pipeline"]["id"], earlier))


@st.composite
def _post_runs(draw: st.DrawFn) -> Json:
    """A `postRun`, or none."""
    if not draw(st.booleans()):
        return {}
    post: Json = {
        "rules": [{"key": draw(st.sampled_from(("rows", "out"))), "check": "gte", "field": "count", "value": 100}],
        "driftField": "count",
        "driftThreshold": draw(st.sampled_from((0, 10, "5%"))),
        "onDrift": draw(st.sampled_from(("rerun", "alert"))),
        "sensorTimeout": draw(st.sampled_from(("10m", "2h"))),
    }
    if draw(st.booleans()):
        post["evaluation"] = {"window": "1h", "interval": "25m"}
    return {"postRun": post}


@st.composite
def _scripts(draw: st.DrawFn) -> list[Json]:
    def script(result: str) -> Json:
        one: Json = {"result": result, "after": draw(st.sampled_from(_DURATIONS))}
        if result in ("fail", "refuse"):
            one["category"] = draw(st.sampled_from(("TRANSIENT", "PERMANENT", "TIMEOUT")))
        if result == "refuse" and draw(st.booleans()):
            one["times"] = draw(st.integers(1, 2))
        return one

    results = ("success", "success", "success", "fail", "fail", "timeout", "hang", "refuse")
    return [script(result) for result in draw(st.lists(st.sampled_from(results), min_size=1, max_size=4))]


_STATUSES: Final = st.sampled_from(("ready", "ready", "ready", "late"))
_COUNTS: Final = st.sampled_from((0, 99, 100, 105, 111, 5000))


@st.composite
def _data(draw: st.DrawFn) -> Json:
    data: Json = {"status": draw(_STATUSES), "count": draw(_COUNTS)}
    period = draw(st.sampled_from(("none", "none", "date", "date", "hour", "bad-date", "bad-hour")))
    if period in ("date", "hour", "bad-hour"):
        data["date"] = draw(st.sampled_from(_DAYS))
    if period == "hour":
        data["hour"] = draw(st.sampled_from((0, 8, "09", 23)))
    if period == "bad-date":
        data["date"] = draw(st.sampled_from(("soon", "2026-13-01", 20260305, "9999-12-31", "2026-03-05T10")))
    if period == "bad-hour":
        data["hour"] = draw(st.sampled_from((24, "x", 1.5)))
    if draw(st.integers(0, 4)) == 0:
        data["updatedAt"] = draw(st.sampled_from(("2026-03-05T10:00:00Z", "2026-03-06T10:00:00Z")))
    return data


def _moments(minutes: int) -> st.SearchStrategy[int]:
    """Coarse times, so that steps meet each other, ticks, polls and deadlines at one instant."""
    return st.builds(lambda fives, more: fives * 5 + more, st.integers(0, minutes // 5), st.sampled_from((0, 0, 1)))


@st.composite
def _steps(draw: st.DrawFn, names: list[str], minutes: int) -> Json:
    minute = draw(_moments(minutes))
    at = f"+{minute}m"
    name = draw(st.sampled_from(names))
    kind = draw(st.sampled_from(("sensor",) * 8 + ("rerun", "rerun", "job", "crash")))
    day = draw(st.sampled_from(_DAYS))
    if kind == "crash":
        return {"at": at, "crash": True}
    if kind == "rerun":
        return {"at": at, "rerun": name, "date": day, "reason": "again", "force": draw(st.booleans())}
    if kind == "job":
        report: Json = {"at": at, "job": name, "date": day}
        report["result"] = draw(st.sampled_from(("success", "fail", "timeout")))
        if draw(st.booleans()):
            report["attempt"] = draw(st.integers(1, 2))
        return report
    key = draw(st.sampled_from(("ready", "ready", "ready", "rows", "rows", "out", "other", "nobody")))
    suffix = draw(st.sampled_from(("", "", "", "#2026-03-05", "#20260306", "#2026-03-05T08")))
    return {"at": at, "sensor": f"{name}/{key}{suffix}", "data": draw(_data()), **draw(_lives(minute))}


@st.composite
def _lives(draw: st.DrawFn, minute: int) -> Json:
    """How long an observation is good for: mostly forever, else a while, or not even now."""
    lasts = draw(st.sampled_from((None, None, None, None, 1, 20, 180, 0)))
    return {} if lasts is None else {"ttl": int((START + timedelta(minutes=minute + lasts)).timestamp())}


@st.composite
def _config_steps(draw: st.DrawFn, pipelines: list[Json], busy: list[int], minutes: int) -> list[Json]:
    """People who change the configs, remove pipelines and bring them back, and publish calendars; in their order.

    Mostly soon after something else happened, when runs wait and jobs run.
    """
    versions = {one["pipeline"]["id"]: one for one in pipelines}
    names = list(versions)
    steps: list[Json] = []
    soon = st.builds(lambda minute, more: minute + more, st.sampled_from(busy), st.sampled_from((0, 1, 2, 7, 20)))
    for minute in sorted(draw(st.lists(soon | soon | _moments(minutes), max_size=5))):
        at, name = f"+{minute}m", draw(st.sampled_from(names))
        kind = draw(st.sampled_from(("change", "change", "change", "remove", "return", "calendar")))
        if kind == "remove":
            steps.append({"at": at, "remove": name})
        elif kind == "calendar":
            steps.append({"at": at, "calendar": draw(_calendars(draw(st.sampled_from(("closed", "open")))))})
        else:
            if kind == "change":
                versions[name] = draw(_changes(versions[name], names[: names.index(name)]))
            steps.append({"at": at, "apply": versions[name]})
    return steps


@st.composite
def _calendars(draw: st.DrawFn, name: str) -> Json:
    dates = draw(st.lists(st.sampled_from(_DAYS), max_size=2, unique=True))
    return {"name": name, "dates": dates, "days": draw(st.sampled_from(([], [], ["friday"])))}


@st.composite
def _good_days(draw: st.DrawFn, name: str, minutes: int) -> list[Json]:
    """Everything a pipeline waits for, as it comes on a day without trouble: without it little ever starts."""
    hour = draw(st.integers(0, minutes // 60 - 1))
    period = draw(st.sampled_from(_GOOD_PERIODS))
    order = draw(st.permutations(("ready", "rows", "other")))
    apart = draw(st.sampled_from((0, 0, 1, 20)))
    return [
        {
            "at": f"+{hour * 60 + index * apart}m",
            "sensor": f"{name}/{key}",
            "data": {"status": "ready", "count": 100, **period},
        }
        for index, key in enumerate(order)
    ]


@st.composite
def scenarios(draw: st.DrawFn, hours: tuple[int, ...] = (12, 24, 24, 36, 72)) -> Json:
    """The fields of a scenario file, which lasts so many hours."""
    pipelines = draw(_pipeline_sets())
    names = [one["pipeline"]["id"] for one in pipelines]
    minutes = draw(st.sampled_from(hours)) * 60
    steps = [step for name in names for _ in range(draw(st.integers(1, 2))) for step in draw(_good_days(name, minutes))]
    steps += draw(st.lists(_steps(names, minutes), min_size=2, max_size=16))
    busy = [int(step["at"][1:-1]) for step in steps]
    steps += draw(_config_steps(pipelines, busy, minutes))
    fields = {
        "name": "random",
        "start": START.isoformat().replace("+00:00", "Z"),
        "until": (START + timedelta(minutes=minutes)).isoformat().replace("+00:00", "Z"),
        "calendars": [draw(_calendars("closed")), draw(_calendars("open"))],
        "pipelines": pipelines,
        "jobs": {name: draw(_scripts()) for name in names},
        "steps": steps,
    }
    try:
        inline_scenario(**fields)
    except ScenarioError:
        reject()  # a few have an `after` that can never be met, which is refused when they are read
    return fields


@st.composite
def _pipeline_sets(draw: st.DrawFn) -> list[Json]:
    count = draw(st.integers(1, 4))
    pipelines: list[Json] = []
    if count > 1 and draw(st.integers(0, 3)) == 0:
        pipelines += draw(_hours_and_days(*_NAMES[:2]))
    for name in _NAMES[len(pipelines) : count]:
        pipelines.append(draw(_pipelines(name, [one["pipeline"]["id"] for one in pipelines])))
    return pipelines


@st.composite
def fault_plans(draw: st.DrawFn) -> FaultPlan:
    """What goes wrong meanwhile."""
    instants = st.integers(0, 120)
    losses = st.lists(st.builds(Loss, instants, st.integers(0, 3)), max_size=2)
    return FaultPlan(
        crashes=tuple(sorted(draw(st.sets(st.integers(0, 400), max_size=5)))),
        redeliveries=tuple(draw(st.lists(st.builds(Redelivery, instants, st.integers(1, 200)), max_size=2))),
        lags=tuple(sorted(draw(st.sets(instants, max_size=4)))),
        shuffled=draw(st.booleans()),
        lost_timers=tuple(draw(losses)),
        lost_executions=tuple(draw(losses)),
    )
