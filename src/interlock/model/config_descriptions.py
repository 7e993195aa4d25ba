"""What each key of a pipeline's config means, in a sentence: for the JSON Schema and the reference.

`job.config` is described beside its types (`job_configs`). A test holds that no key is left out.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from interlock.model import config

DESCRIPTIONS: Final[Mapping[type[msgspec.Struct], Mapping[str, str]]] = {
    config.PipelineConfig: {
        "pipeline": "Who it is, and who owns it.",
        "schedule": "When runs are opened, and what for. Without one, runs are opened by `after` and by rerun"
        " requests.",
        "schedules": "Several schedules, each with an `id` of its own, in place of `schedule`.",
        "validation": "The rules that must pass before the job is started. May be left out where `after` is given: the"
        " rules are then that each upstream has completed the period.",
        "job": "What is started once the rules have passed.",
        "sla": "By when a run must be finished, or its inputs ready.",
        "postRun": "What is watched after a run has completed: drift, and rules that must go on to hold.",
        "dryRun": "Observe only: evaluate, project, publish `DRY_RUN_*` events, and start nothing. Needs"
        " `schedule.trigger`. Turned on, it also withdraws what waits.",
        "after": "Upstream pipelines. When all of them have completed a period, the run of that period is opened.",
        "probes": "Sensors that are asked for rather than written.",
        "archetype": "The name of a file in `archetypes/` whose keys this config starts from.",
    },
    config.Info: {
        "id": "The pipeline's name, by which everything else refers to it: letters, digits, `.`, `_` and `-`, beginning"
        " with a letter or digit, at most 128.",
        "owner": "A team or person; tokens can be limited to the pipelines of an owner.",
        "description": "For people.",
    },
    config.Schedule: {
        "id": "The schedule's name, in a list of `schedules`. A single schedule is called `cron` or `stream`.",
        "cron": "Five fields: minute, hour, day of month, month, day of week. Not together with `include`.",
        "timezone": "The IANA zone of cron, dates, times and deadlines.",
        "period": "What a tick's run is for: its own day or hour (`current`), or the one before (`previous`).",
        "granularity": "How long the periods are that sensor writes open: `day` or `hour`. Without it, as each write"
        " says. Not together with `cron`, whose ticks say it.",
        "time": "The expected start, `HH:MM`: when inclusion dates open, and when the watchdog misses a start.",
        "trigger": "A sensor write that opens a run.",
        "evaluation": "How long and how often the rules are evaluated.",
        "exclude": "Days on which nothing is opened.",
        "include": "The only dates on which runs are opened. Not together with `cron`.",
    },
    config.Trigger: {
        "key": "The sensor; `key#2026-03-03` is a write of it for that period.",
        "check": "What is asked of it, as in a rule.",
        "field": "The field that is compared; a dotted path (`stats.rows`) looks inside.",
        "value": "What it is compared with.",
        "deadline": "`HH:MM` on the run's date, or `:MM` in the hour after: if no run was opened by then,"
        " `SENSOR_DEADLINE_EXPIRED`, and the run is failed.",
    },
    config.Evaluation: {
        "window": "From the opening of the run until exactly this long afterwards. Then `VALIDATION_EXHAUSTED`.",
        "interval": "The time between two evaluations. A write of a sensor that a rule reads evaluates at once, too.",
        "afterWindow": "`reopen`: for 24 hours a sensor write that makes the rules pass re-opens the run. `stop`: it"
        " does not.",
    },
    config.Exclude: {
        "weekends": "Saturdays and Sundays.",
        "holidays": "The public holidays of a country, and optionally of a subdivision: `US`, `US-CA`, `DE-BY`.",
        "dates": "Single days, `YYYY-MM-DD`.",
        "days": "Days of the week, in any case and abbreviated if you like.",
        "calendar": "A named calendar of `calendars/`.",
    },
    config.Include: {
        "dates": "Single days, `YYYY-MM-DD`.",
        "calendar": "A named calendar of `calendars/`.",
    },
    config.Calendar: {
        "name": "The name that `exclude.calendar` and `include.calendar` use.",
        "days": "Days of the week.",
        "dates": "Single days, `YYYY-MM-DD`.",
        "description": "For people.",
    },
    config.Sla: {
        "deadline": "When the run must have completed: `HH:MM` in the SLA's zone, or `:MM` for hourly runs (hour H"
        " is due at H+1:MM). Then `SLA_BREACH`.",
        "readyBy": "When the rules must have passed, by the same arithmetic. Else `READINESS_LATE`, with what is"
        " awaited.",
        "expectedDuration": "How long it usually takes: `SLA_WARNING` comes so long before the breach.",
        "maxDuration": "The longest time from the first write of the trigger sensor to completion, at most 24h. Needs"
        " `schedule.trigger`.",
        "dayOffset": "On which day after the run's date `deadline` and `readyBy` lie. Default: as the kind of schedule"
        " says, see the SLA page.",
        "timezone": "The zone of `deadline` and `readyBy`. Default: the schedule's.",
        "critical": "Raises the severity of this pipeline's SLA alerts by one step.",
    },
    config.Validation: {
        "rules": "At least one.",
        "trigger": "`ALL` rules must pass, or `ANY` of them. `mode` is another way to write it.",
    },
    config.Rule: {
        "key": "The sensor that is read: `key#<period>` of the run if it exists, otherwise `key`."
        " `upstream:<pipeline>` is an upstream's completion.",
        "check": "`exists`, `equals`, `ne`, `in`, `gt`, `gte`, `lt`, `lte`, `age_lt`, `age_gt`.",
        "field": "The field that is compared; a dotted path (`stats.rows`) looks inside. Every check but `exists`"
        " needs it.",
        "value": "What it is compared with: a number, text or boolean; a list for `in`; a duration for `age_lt` and"
        " `age_gt`.",
        "period": "`run`: only an observation about the run's period counts. `any`: whatever it is about.",
    },
    config.Job: {
        "type": "The system that the job lives in.",
        "config": "What the target needs to know; its keys depend on `type`.",
        "maxRetries": "How often a run is retried after failures that may pass by themselves: transient ones and"
        " time-outs.",
        "maxCodeRetries": "How often it is retried after permanent failures, such as an exit code of 1.",
        "maxDriftReruns": "How often it is repeated for new data: drift, late data and upstreams that ran again,"
        " together.",
        "maxManualReruns": "How often it may be repeated by request.",
        "jobPollWindowSeconds": "How long a job is followed; 60 to 86400, or 0 for the default. Then"
        " `JOB_POLL_EXHAUSTED`.",
        "pollInterval": "The time between two polls of the job; at least 1s, on AWS 10s.",
        "pool": "A name of `[pools]` in `interlock.toml`: at most so many jobs of it run at once.",
        "onPollExhausted": "What becomes of a job that has not ended when its poll window has: `leave` it alone, or"
        " `stop` it at its target.",
        "retryDelay": "The pause before a retry, doubled each time, at most 1h.",
    },
    config.PostRun: {
        "rules": "What must go on to hold; always all of them. May be empty.",
        "driftField": "The field whose change is drift, in each sensor that the rules read.",
        "driftThreshold": 'How much change is not drift yet: a number, or a share of the baseline such as `"2%"`.',
        "onDrift": "`rerun` the run, within `job.maxDriftReruns`, or only `alert`.",
        "sensorTimeout": "Without post-run data for this long after the completion: `POST_RUN_SENSOR_MISSING`.",
        "evaluation": "Evaluate the rules on a timer, too, and publish when the verdict changes.",
    },
    config.PostRunEvaluation: {
        "window": "For how long after the completion.",
        "interval": "The time between two evaluations.",
    },
    config.Upstream: {
        "pipeline": "The upstream's id.",
        "require": "`same-period`: its run of this very period. `all-hours`, for a daily run of an hourly upstream:"
        " every hour of the day that is not excluded.",
    },
    config.Probe: {
        "key": "The sensor that it writes; also the probe's name.",
        "type": "How the sensor is asked for.",
        "config": "What that needs to know; its keys depend on `type`.",
        "interval": "At most once in this time. Default: the evaluation's `interval`.",
        "timeout": "How long an answer may take, at most 10m. Then `PROBE_FAILED`, and nothing is written.",
        "ttl": "For how long an observation counts. Default: twice the interval, and the timeout.",
    },
}
