"""Files and folders: everything wrong with all of them at once, in the right place, and never an exception."""

import os
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.config.loader import LoadResult, load_paths
from interlock.config.stored import read_stored
from interlock.config.versions import config_version
from interlock.model.config import Exclude, JobType, Weekday
from interlock.model.durations import Duration
from tests.config.conftest import Load

EXAMPLES = Path(__file__).parent / "examples"
VALID = """\
pipeline: {{id: {id}}}
schedule: {{cron: "0 8 * * *"}}
validation: {{rules: [{{key: k, check: exists}}]}}
job: {{type: external}}
"""


def valid(id_: str, *more: str) -> str:
    return VALID.format(id=id_) + "".join(line + "\n" for line in more)


def lines(result: LoadResult) -> list[str]:
    return [str(problem) for problem in result.problems]


def test_every_example_of_the_documents_loads() -> None:
    result = load_paths([EXAMPLES])
    assert lines(result) == []
    assert result.pipelines == len(list((EXAMPLES / "pipelines").iterdir())) == len(result.configs)
    assert sorted(result.calendars) == ["month-end", "us-federal"]


@pytest.mark.parametrize("path", sorted((EXAMPLES / "pipelines").iterdir()), ids=lambda path: path.name)
def test_an_example_loads_alone_with_its_calendars_and_archetype(path: Path) -> None:
    result = load_paths([path])
    assert result.errors == ()
    assert len(result.configs) == 1
    assert all("among these files" in problem.message for problem in result.warnings)


def test_what_was_loaded_is_what_a_store_reads() -> None:
    result = load_paths([EXAMPLES])
    for loaded in result.configs:
        assert read_stored(loaded.document, result.calendars) == loaded.config
        assert loaded.version == config_version(loaded.document)
        assert len(loaded.version) == 16


TEN_MISTAKES: dict[str, str | bytes] = {
    "retries": valid("retries").replace("{type: external}", "{type: external, maxRetries: 11}"),
    "typo": valid("typo", "schedul:", "  cron: x"),
    "cron": valid("cron").replace("0 8 * * *", "0 25 * * *"),
    "twice": valid("twice", "dryRun: false", "", "dryRun: false"),
    "zone": valid("zone", "sla:", "  deadline: 10:00", "  expectedDuration: 1h", "  timezone: Europe/Berln"),
    "rule": valid("rule").replace("{key: k, check: exists}", "{key: k, check: gt, field: f, value: many}"),
    "tabs": "pipeline:\n\tid: tabs\n",
    "binary": b"pipeline: {id: binary}\n\xff\xfe\n",
    "upstream": valid("upstream", "after:", "  - pipeline: retrys"),
    "calendar": valid("calendar", "exclusions:", "  calendar: us-fed"),
}


def test_ten_mistakes_are_all_reported_with_their_lines(load: Load) -> None:
    result = load(calendars__federal="name: us-federal\ndates: [2026-01-01]\n", **TEN_MISTAKES)
    places = [problem.split(": ", 1)[0] for problem in lines(result)]
    assert places == [
        "pipelines/binary.yaml:2",
        "pipelines/calendar.yaml:6 exclusions.calendar",
        "pipelines/cron.yaml:2 schedule.cron",
        "pipelines/retries.yaml:4 job.maxRetries",
        "pipelines/rule.yaml:3 validation.rules[0].value",
        "pipelines/tabs.yaml:2",
        "pipelines/twice.yaml:7 dryRun",
        "pipelines/typo.yaml:5 schedul",
        "pipelines/upstream.yaml:6 after[0].pipeline",
        "pipelines/zone.yaml:8 sla.timezone",
    ]
    assert "pipelines/retries.yaml:4 job.maxRetries: 11 is not in 0..10" in lines(result)
    assert result.configs == ()
    assert result.pipelines == 10


def test_a_flawed_text_is_still_searched_for_other_errors(load: Load) -> None:
    text = valid("p", "dryRun: false", "dryRun: .inf", "5: x").replace("external", "gluee")
    assert [problem.split(": ")[0] for problem in lines(load(p=text))] == [
        "pipelines/p.yaml:4 job.type",
        "pipelines/p.yaml:6 dryRun",
        "pipelines/p.yaml:6 dryRun",
        "pipelines/p.yaml:7 5",
    ]


@pytest.mark.parametrize("path", [".", "pipelines", "pipelines/a.yaml"])
def test_calendars_and_archetypes_are_found_from_anywhere(load: Load, path: str) -> None:
    result = load(
        path,
        calendars__c="name: cal\ndays: [Sun]\n",
        archetypes__base="schedule: {calendar: cal, cron: '0 9 * * *'}\njob: {type: external}\n",
        a="archetype: base\npipeline: {id: a}\nvalidation: {rules: [{key: k, check: exists}]}\n",
    )
    assert lines(result) == []
    (loaded,) = result.configs
    assert loaded.file == "pipelines/a.yaml"
    assert loaded.config.all_schedules[0].exclude == Exclude(calendar="cal")
    assert result.calendars["cal"].days == [Weekday.SUNDAY]


def test_a_folder_that_is_not_named_pipelines_has_its_own_files_only(load: Load) -> None:
    result = load(
        "team", team__a=valid("a"), team__scenarios__s="steps: []\n", team__calendars__c="name: c\ndays: [mon]\n"
    )
    assert [one.config.id for one in result.configs] == ["a"]
    assert list(result.calendars) == ["c"]
    assert lines(result) == []


def test_teams_have_folders_of_their_own_among_pipelines(load: Load) -> None:
    result = load(pipelines__one__a=valid("a"), pipelines__two__b=valid("b"))
    assert [one.file for one in result.configs] == ["pipelines/one/a.yaml", "pipelines/two/b.yaml"]


def test_json_configs_and_hidden_files(load: Load, tmp_path: Path) -> None:
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / ".hidden.yaml").write_text("[")
    (tmp_path / "pipelines" / "notes.txt").write_text("[")
    text = '{"pipeline": {"id": "j"}, "validation": {"rules": []},\n "job": {"type": "external"}}'
    assert lines(load(j_json=text)) == ["pipelines/j.json:1 validation.rules: must not be empty"]


def test_archetypes_merge_under_the_pipeline(load: Load) -> None:
    result = load(
        archetypes__base="""\
job: {type: glue, config: {jobName: shared, arguments: {a: 1, b: 2}}, maxRetries: 3}
validation: {rules: [{key: x, check: exists}, {key: y, check: exists}]}
schedule: {cron: "0 8 * * *", evaluation: {window: 2h, interval: 1m}}
exclusions: {days: [sat]}
""",
        p="""\
archetype: base
pipeline: {id: p}
job: {config: {arguments: {b: 3}}}
validation: {rules: [{key: z, check: exists}]}
schedule: {evaluation: {window: 30m}, exclude: {dates: [2026-01-01]}}
""",
    )
    assert lines(result) == []
    (loaded,) = result.configs
    config = loaded.config
    assert config.job is not None
    assert config.job.type == JobType.GLUE
    assert config.job.config == {"jobName": "shared", "arguments": {"a": 1, "b": 3}}
    assert [rule.key for rule in config.validation.rules] == ["z"]
    (schedule,) = config.all_schedules
    assert (schedule.evaluation.window, schedule.evaluation.interval) == (Duration(minutes=30), Duration(minutes=1))
    assert schedule.exclude == Exclude(days=[Weekday.SATURDAY], dates=["2026-01-01"])


def test_what_an_archetype_gives_can_be_taken_away(load: Load) -> None:
    result = load(
        archetypes__base='sla: {deadline: "10:00", expectedDuration: 30m}\njob: {type: external, maxRetries: 3}\n',
        p=valid("p", "archetype: base\nsla: null").replace("job: {type: external}", "job: {maxRetries: null}"),
        q=valid("q", "archetype: base\njob: null").replace("job: {type: external}\n", ""),
    )
    assert [line.split(": ")[0] for line in lines(result)] == ["pipelines/q.yaml:5 job"]
    (loaded,) = result.configs
    assert loaded.config.sla is None
    assert loaded.config.job is not None
    assert loaded.config.job.max_retries == 0


def test_every_value_says_where_it_was_written(load: Load) -> None:
    result = load(
        archetypes__base="""\
job: {type: glue, config: {jobName: shared, arguments: {a: 1, b: 2}},
  maxRetries: 3}
schedule: {cron: "0 8 * * *"}
exclusions: {days: [sat]}
""",
        p="""\
archetype: base
pipeline: {id: p}
job: {config: {arguments: {b: 3}}}
validation: {rules: [{key: z, check: exists}]}
""",
        q=valid("q"),
    )
    assert lines(result) == []
    p, q = result.configs
    assert (p.archetype, q.archetype) == ("archetypes/base.yaml", "")
    assert [(one.path, one.value, one.place, one.over) for one in p.origins()] == [
        ("pipeline.id", "p", "pipelines/p.yaml:2", ""),
        ("validation.rules", [{"key": "z", "check": "exists"}], "pipelines/p.yaml:4", ""),
        ("job.type", "glue", "archetypes/base.yaml:1", ""),
        ("job.config.jobName", "shared", "archetypes/base.yaml:1", ""),
        ("job.config.arguments.a", 1, "archetypes/base.yaml:1", ""),
        ("job.config.arguments.b", 3, "pipelines/p.yaml:3", "archetypes/base.yaml:1"),
        ("job.maxRetries", 3, "archetypes/base.yaml:2", ""),
        ("schedule.cron", "0 8 * * *", "archetypes/base.yaml:3", ""),
        ("schedule.exclude.days", ["saturday"], "archetypes/base.yaml:4", ""),
        ("archetype", "base", "pipelines/p.yaml:1", ""),
    ]
    assert {one.file for one in q.origins()} == {"pipelines/q.yaml"}


def test_an_archetype_that_nobody_names_is_checked_for_what_it_has(load: Load) -> None:
    files = {
        "archetypes__unused": "schedule: {cron: '61 * * * *'}\njob: {maxRetires: 1}\nexclusions: {days: [x]}\n",
        "archetypes__partial": "sla: {maxDuration: 1h}\ndryRun: true\nschedule: {calendar: cal}\n",
        "calendars__cal": '{name: cal, dates: ["2026-12-25"]}',
        "p": valid("p"),
    }
    found = [problem.split(": ")[0] for problem in lines(load(**files))]
    assert found == [
        "archetypes/unused.yaml:1 schedule.cron",
        "archetypes/unused.yaml:2 job.maxRetires",
        "archetypes/unused.yaml:3 exclusions.days[0]",
    ]
    # Of a single file nobody knows what the others name.
    assert lines(load("pipelines/p.yaml", **files)) == []


def test_exclusions_of_an_archetype_reach_the_schedules_of_a_pipeline(load: Load) -> None:
    result = load(
        archetypes__base="exclusions: {days: [sat, noday]}\n",
        p=valid("p", "archetype: base").replace(
            'schedule: {cron: "0 8 * * *"}', 'schedules: [{id: a, cron: "0 8 * * *"}, {id: b, cron: "0 9 * * *"}]'
        ),
    )
    assert [problem.split(": ")[0] for problem in lines(result)] == ["archetypes/base.yaml:1 exclusions.days[1]"]


def test_errors_of_an_archetype_are_shown_there_once(load: Load) -> None:
    result = load(
        archetypes__base="job:\n  type: external\n  maxRetries: 11\n",
        archetypes__broken="job: [\n",
        archetypes__nested="archetype: base\n",
        p=valid("p", "archetype: base").replace("job: {type: external}\n", ""),
        q=valid("q", "archetype: base").replace("job: {type: external}\n", "job: {maxCodeRetries: 9}\n"),
        r=valid("r", "archetype: broken"),
        s=valid("s", "archetype: bsae"),
        t=valid("t", "archetype: 5"),
    )
    broken, rest = lines(result)[1], lines(result)[:1] + lines(result)[2:]
    assert broken.startswith("archetypes/broken.yaml:2: not YAML: ")
    assert rest == [
        "archetypes/base.yaml:3 job.maxRetries: 11 is not in 0..10",
        "archetypes/nested.yaml:1 archetype: an archetype has no archetype of its own: copy what it needs",
        "pipelines/q.yaml:4 job.maxCodeRetries: 9 is not in 0..3",
        'pipelines/r.yaml:5 archetype: the archetype "broken" cannot be read: see its own errors',
        'pipelines/s.yaml:5 archetype: there is no archetype "bsae" in archetypes/; did you mean base?',
        "pipelines/t.yaml:5 archetype: 5 is a number, not text; quote it",
    ]


def test_a_broken_calendar_is_one_error_not_many(load: Load) -> None:
    result = load(
        calendars__a="name: a\ndays: [noday]\n",
        calendars__b="name: [\n",
        calendars__c="dates: [2026-02-30]\nname: c\n",
        calendars__d="dates: [2026-02-28]\nname: c\n",
        calendars__e="name: 5\ndates: []\n",
        p=valid("p").replace("{cron:", "{calendar: a, cron:"),
        q=valid("q").replace("{cron:", "{calendar: b, cron:"),
    )
    assert [problem.split(": ")[0] for problem in lines(result)] == [
        "calendars/a.yaml:2 days[0]",
        "calendars/b.yaml:2",
        "calendars/c.yaml:1 dates[0]",
        "calendars/d.yaml:2 name",
        "calendars/e.yaml:1 name",
    ]


def test_ids_are_unique_across_files(load: Load) -> None:
    assert lines(load(a=valid("same"), b="\n" + valid("same"), c=valid("other"))) == [
        'pipelines/a.yaml:1 pipeline.id: "same" is the id of another pipeline too: pipelines/b.yaml:2',
        'pipelines/b.yaml:2 pipeline.id: "same" is the id of another pipeline too: pipelines/a.yaml:1',
    ]


def test_cycles_are_named_once(load: Load) -> None:
    result = load(
        a=valid("a", "after: [{pipeline: b}]"),
        b=valid("b", "after:", "  - pipeline: free", "  - pipeline: c"),
        c=valid("c", "after: [{pipeline: a}]"),
        free=valid("free"),
        own=valid("own", "after: [{pipeline: own}]"),
        down=valid("down", "after: [{pipeline: a}]"),
    )
    assert lines(result) == [
        "pipelines/c.yaml:5 after[0]: waits for itself (c -> a -> b -> c): remove one of these",
        "pipelines/own.yaml:5 after[0]: waits for itself (own -> own): remove one of these",
    ]
    assert [one.config.id for one in result.configs] == ["down", "free"]


def test_a_long_chain_of_upstreams_is_no_cycle(load: Load) -> None:
    count = 1500
    files = {f"p{n}": valid(f"p{n}", f"after: [{{pipeline: p{n + 1}}}]") for n in range(count)}
    result = load(**files, **{f"p{count}": valid(f"p{count}")})
    assert lines(result) == []
    assert len(result.configs) == count + 1


def test_upstreams_must_be_there(load: Load) -> None:
    files = {
        "silver": valid("silver"),
        "gold": valid("gold", "after: [{pipeline: silvre}]"),
        "late": valid("late", "after: [{pipeline: broken}, {pipeline: unread}]"),
        "hours": valid("hours", "after: [{pipeline: silver, require: all-hours}]"),
        "broken": valid("broken").replace("external", "x"),
        "unread": "[",
    }
    problems = [problem for problem in lines(load(**files)) if "after" in problem]
    assert problems == [
        'pipelines/gold.yaml:5 after[0].pipeline: there is no pipeline "silvre" among these files;'
        " did you mean silver?",
        "pipelines/hours.yaml:5 after[0].require: all-hours waits for hourly runs, and those of silver are"
        " daily: write same-period",
    ]
    single = load("pipelines/gold.yaml", **files)
    assert lines(single) == [
        'pipelines/gold.yaml:5 after[0].pipeline: warning: there is no pipeline "silvre" among these files'
    ]
    assert len(single.configs) == 1


def test_a_file_named_twice_is_read_once(load: Load) -> None:
    result = load("pipelines/a.yaml", ".", "pipelines", a=valid("a"))
    assert (lines(result), result.pipelines, len(result.configs)) == ([], 1, 1)


def test_what_can_not_be_read_is_a_problem(load: Load, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "folder.yaml").mkdir()
    os.mkfifo(tmp_path / "pipe.yaml")
    assert lines(load("nope.yaml", "empty", "pipe.yaml", "folder.yaml")) == [
        "empty: there is no pipeline (*.yaml, *.yml, *.json) in this folder",
        "folder.yaml: there is no pipeline (*.yaml, *.yml, *.json) in this folder",
        "nope.yaml: does not exist",
        "pipe.yaml: is not a regular file",
    ]


def test_a_huge_file_is_not_read_to_its_end(load: Load) -> None:
    assert lines(load(a=b"#" * 3_000_000)) == [
        "pipelines/a.yaml:1: larger than 1048576 bytes: a config is never that large"
    ]


def test_the_version_is_that_of_the_meaning_not_of_the_text(load: Load) -> None:
    one = valid("a")
    other = '# a comment\njob: {"type": external}\n' + valid("a").replace("job: {type: external}\n", "")
    versions = [load("x/a.yaml", x__a=text).configs[0].version for text in (one, other, valid("a", "dryRun: false"))]
    assert versions[0] == versions[1] != versions[2]


NAMES = {
    *("pipeline", "schedule", "schedules", "sla", "validation", "job", "postRun", "after", "archetype", "exclusions"),
    *("id", "cron", "trigger", "key", "check", "field", "value", "exclude", "include", "dates", "days", "calendar"),
    *("deadline", "rules", "mode", "type", "config", "probes", "dryRun", "name"),
}
STRUCTURES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["ALL", "exists", "glue", "0 8 * * *", "1h", "10:00", "2026-01-01", "p"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(sorted(NAMES)) | st.text(max_size=4),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(structure=STRUCTURES, archetype=STRUCTURES, calendar=STRUCTURES)
def test_no_structure_raises(tmp_path: Path, structure: object, archetype: object, calendar: object) -> None:
    documents = {"pipelines/p": structure, "archetypes/p": archetype, "calendars/p": calendar}
    for name, document in documents.items():
        path = tmp_path / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(yaml.safe_dump(document))
    result = load_paths([tmp_path])
    assert result.errors or len(result.configs) == 1
    for problem in result.problems:
        assert "\n" not in str(problem)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=300))
def test_no_bytes_raise(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "p.yaml"
    path.write_bytes(data)
    assert load_paths([path]).errors


# ------------------------------------------------------------------------- an error in one part hides none in another


def test_an_unknown_key_hides_nothing_else(load: Load) -> None:
    text = """\
pipeline: {id: orders}
schedule:
  cron: "61 8 * * *"
  timezone: Europe/Berln
  trigger: {key: _landed, check: eq, field: status, value: ready}
sla: {deadline: "25:00", maxDuration: 30h}
validation: {rules: [{key: rows, check: gte, field: count, value: many}, {key: rows}]}
job: {type: http, config: {uri: "http://a", timeout: 60}, maxRetries: 11}
retrys: 3
after: [{pipeline: nobody}]
"""
    assert [problem.removeprefix("pipelines/orders.yaml:") for problem in lines(load(orders=text))] == [
        "3 schedule.cron: cron '61 8 * * *': '61' is not a valid minute: write five fields (minute hour day-of-month"
        " month day-of-week), for example '0 8 * * 1-5'",
        "4 schedule.timezone: 'Europe/Berln' is not an IANA time zone: write for example Europe/Berlin;"
        " did you mean Europe/Berlin?",
        '5 schedule.trigger.check: "eq" is not one of exists, equals, ne, in, gt, gte, lt, lte, age_lt, age_gt;'
        " did you mean equals?",
        "5 schedule.trigger.key: sensor key '_landed' is reserved: keys starting with '_' or 'upstream:'"
        " are the controller's own",
        '6 sla.deadline: "25:00" is not of the form HH:MM, or :MM for hourly periods',
        "6 sla.maxDuration: 1d6h is not more than 0s and at most 24h",
        "7 validation.rules[1].check: is missing: write check: exists, or one of equals, ne, in, gt, gte, lt, lte,"
        " age_lt, age_gt",
        '7 validation.rules[0].value: "many" is not a number, which gte needs',
        "8 job.maxRetries: 11 is not in 0..10",
        "8 job.config.uri: unknown key; did you mean url?",
        "8 job.config.url: is missing: jobs of type http need url",
        "8 job.config.timeout: 60 is not a duration: write 1h30m, 45s, 500ms, 2d or PT2H; write 60s for seconds",
        "9 retrys: unknown key",
        '10 after[0].pipeline: there is no pipeline "nobody" among these files',
    ]


def test_nothing_is_concluded_from_a_part_that_is_wrong_itself(load: Load) -> None:
    """No trigger, no job type, no check: all of them are there, misspelled."""
    text = """\
pipeline: {id: orders}
schedule: {triger: {key: landed, check: exists}}
sla: {maxDuration: 4h}
dryRun: true
validation: {rules: [{key: rows, check: eq, field: count, value: 5}, {key: "upstream:raw", check: exists}]}
job: {type: shell, config: {command: [etl]}}
after: [{pipelin: raw}]
"""
    assert [line.split(" ", 1)[1].split(":")[0] for line in lines(load(orders=text))] == [
        "schedule.triger",
        "validation.rules[0].check",
        "job.type",
        "after[0].pipelin",
        "after[0].pipeline",
    ]


def test_without_its_archetype_a_file_is_judged_by_what_it_has(load: Load) -> None:
    text = 'pipeline: {id: a}\narchetype: hourly\nschedule: {cron: "61 * * * *"}\nsla: {maxDuration: 4h, dedline: x}\n'
    assert [line.split(" ", 1)[1].split(":")[0] for line in lines(load(a=text, archetypes__daily="{}"))] == [
        "archetype",
        "schedule.cron",
        "sla.dedline",
    ]


# ----------------------------------------------------------------------------------- what other tools call things


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ('trigger: {type: cron, expression: "0 6 * * *"}', 'unknown key; write schedule: {cron: "0 6 * * *"}'),
        ('cron: "0 6 * * *"', 'unknown key; write schedule: {cron: "0 6 * * *"}'),
        ('schedule_interval: "@daily"', 'unknown key; write schedule: {cron: "0 0 * * *"}'),
        ("name: gold", 'unknown key; write pipeline: {id: "gold"}'),
        ("depends_on: [silver]", "unknown key; write after: [{pipeline: silver}]"),
        ("retries: 3", "unknown key; write job: {maxRetries: 3}"),
        ("exclude: {weekends: true}", "unknown key; write schedule: {exclude: ...}, or exclusions: ..."),
    ],
)
def test_the_line_to_write_instead_is_shown(load: Load, line: str, instead: str) -> None:
    (problem,) = lines(load(p=valid("p", line)))
    assert problem.endswith(f": {instead}")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('{cron: "0 8 * * *"}', '"@daily"', 'schedule: write schedule: {cron: "0 0 * * *"}'),
        ('"0 8 * * *"', '"@daily"', "schedule.cron: cron '@daily' is not read here: write '0 0 * * *'"),
        (
            '{cron: "0 8 * * *"}',
            '{trigger: {type: cron, expression: "0 6 * * *"}}',
            'schedule.trigger.expression: unknown key; write schedule: {cron: "0 6 * * *"}',
        ),
        ("check: exists", 'check: "=="', "did you mean equals?"),
        ("check: exists", 'check: ">="', "did you mean gte?"),
        ("type: external", "type: shell", "did you mean command?"),
        ("type: external", "type: sfn", "did you mean step-function?"),
        ("type: external", "type: external, command: x", 'job.command: unknown key; write config: {command: "x"}'),
    ],
)
def test_what_is_meant_is_named(load: Load, old: str, new: str, words: str) -> None:
    assert any(words in line for line in lines(load(p=valid("p").replace(old, new))))


@pytest.mark.parametrize("text", ["a:\n\tb: 1\n", "a:\n  b: 1\n\tc: 2\n", "a:\n  - b\n\t- c\n"])
def test_tabs_are_called_tabs(load: Load, text: str) -> None:
    (line,) = lines(load(p=text))
    assert line.endswith("not YAML: this line is indented with a tab: YAML wants spaces")


# ----------------------------------------------------------------------------------------------- `after` alone


def test_after_alone_has_the_rules_that_its_upstreams_have_run(load: Load) -> None:
    gold = "pipeline: {id: gold}\nafter: [{pipeline: silver}, {pipeline: bronze}]\njob: {type: external}\n"
    sla = "sla: {deadline: 10:00, expectedDuration: 1h}\n"
    result = load(gold=gold + sla, silver=valid("silver"), bronze=valid("bronze"))
    assert lines(result) == []
    config = next(one for one in result.configs if one.config.id == "gold")
    assert [(rule.key, rule.check) for rule in config.config.validation.rules] == [
        ("upstream:silver", "exists"),
        ("upstream:bronze", "exists"),
    ]
    assert read_stored(config.document, {}) == config.config
    without = {key: value for key, value in config.document.items() if key != "validation"}
    assert read_stored(without, {}) == config.config


HOURLY = valid("hours").replace("0 8 * * *", "0 * * * *")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            valid("gold", "after: [{pipeline: hours}]"),
            "warning: the runs of hours are hourly, these are daily: it can never open a run; write require: all-hours",
        ),
        (
            valid("gold", "after: [{pipeline: hours}]").replace("key: k", "key: upstream:hours"),
            "the runs of hours are hourly, these are daily: a rule waits for it and can never pass;"
            " write require: all-hours",
        ),
        (
            valid("gold", "after: [{pipeline: days}, {pipeline: hours}]").replace('{cron: "0 8 * * *"}', "{}"),
            "the runs of hours are hourly, these are daily: it can never open a run; write require: all-hours",
        ),
        (
            valid("gold", "after: [{pipeline: days}]").replace("0 8", "0 *").replace("key: k", "key: upstream:days"),
            "the runs of days are daily, these are hourly: a rule waits for it and can never pass;"
            " their periods are never the same",
        ),
        (valid("gold", "after: [{pipeline: hours, require: all-hours}]"), None),
        (valid("gold", "after: [{pipeline: days}, {pipeline: hours, require: all-hours}]"), None),
        (valid("gold", "after: [{pipeline: days}]").replace("key: k", "key: upstream:days"), None),
    ],
)
def test_upstreams_whose_periods_never_fit(load: Load, text: str, expected: str | None) -> None:
    result = load(gold=text, hours=HOURLY, days=valid("days"))
    found = [line.partition("require: ")[2] for line in lines(result) if "require:" in line]
    assert found == ([expected] if expected else [])
