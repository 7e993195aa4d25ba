"""Templates are filled in everywhere, or it is said where one cannot be."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.decide.templates import (
    Secret,
    SecretText,
    fill,
    for_jobs,
    resolve,
    run_variables,
    secret_names,
    template_names,
)
from interlock.model.errors import InvalidValueError
from interlock.model.keys import RunKey

ENVIRONMENT = {"INTERLOCK_BUCKET": "lake", "INTERLOCK_TRICK": "${DATE}", "HOME": "/root", "AWS_SECRET": "s3cret"}


def filled(config: dict[str, Any], date: str = "2026-03-02T10") -> dict[str, Any]:
    return fill(config, RunKey("gold", "cron", date), run_id="r-1", attempt=2, environment=ENVIRONMENT)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("", ""),
        ("${DATE}", "2026-03-02"),
        ("${HOUR}", "10"),
        ("${PERIOD}", "2026-03-02T10"),
        ("${PIPELINE}/${SCHEDULE}", "gold/cron"),
        ("${RUN_ID}-${ATTEMPT}", "r-1-2"),
        ("s3://${INTERLOCK_BUCKET}/dt=${DATE}/h=${HOUR}/", "s3://lake/dt=2026-03-02/h=10/"),
        ("$${DATE}", "${DATE}"),
        ("$${DATE} ${DATE}", "${DATE} 2026-03-02"),
        ("$$${DATE}", "$${DATE}"),
        ("$${", "${"),
        ("$DATE $5 {DATE} $ }", "$DATE $5 {DATE} $ }"),
        ("${INTERLOCK_TRICK}", "${DATE}"),
    ],
)
def test_text(text: str, expected: str) -> None:
    assert filled({"a": text}) == {"a": expected}


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        ("2026-03-02", "2026-03-02||2026-03-02"),
        ("2026-03-02T07", "2026-03-02|07|2026-03-02T07"),
        ("2026-03-02T0715", "2026-03-02|07|2026-03-02T0715"),
    ],
)
def test_the_date_is_a_day_and_the_hour_has_two_digits(date: str, expected: str) -> None:
    assert filled({"a": "${DATE}|${HOUR}|${PERIOD}"}, date) == {"a": expected}


def test_nested_config_is_filled_and_the_given_one_left_alone() -> None:
    config = {
        "args": ["--day", "${DATE}", ("${HOUR}", 5)],
        "env": {"D_${HOUR}": "${DATE}"},
        "n": 5,
        "b": True,
        "x": None,
    }
    before = repr(config)
    assert filled(config) == {
        "args": ["--day", "2026-03-02", ["10", 5]],
        "env": {"D_10": "2026-03-02"},
        "n": 5,
        "b": True,
        "x": None,
    }
    assert repr(config) == before


@pytest.mark.parametrize(
    ("config", "where", "what"),
    [
        ({"a": "${DAY}"}, "job.config.a", "${DAY} is not known"),
        ({"a": "${date}"}, "job.config.a", "${date} is not known"),
        ({"a": "${}"}, "job.config.a", "${} is not known"),
        ({"a": "${ DATE }"}, "job.config.a", "${ DATE } is not known"),
        ({"a": {"b": [1, {"c": "${X}"}]}}, "job.config.a.b[1].c", "write $${X} to keep it"),
        ({"a": "${HOME}"}, "job.config.a", "${HOME} is not known"),
        ({"a": "${AWS_SECRET}"}, "job.config.a", "${AWS_SECRET} is not known"),
        ({"a": "${INTERLOCK_NONE}"}, "job.config.a", "no such environment variable is set"),
        ({"a": "${DATE"}, "job.config.a", "not closed"),
        ({"a": "${A${DATE}}"}, "job.config.a", "not closed"),
        ({"${X}": 1}, "job.config.${X}", "${X} is not known"),
        ({"${DATE}": 1, "2026-03-02": 2}, "job.config.2026-03-02", "two keys become '2026-03-02'"),
    ],
)
def test_an_error_says_what_and_where(config: dict[str, Any], where: str, what: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        filled(config)
    assert str(caught.value).startswith(f"{where}: ")
    assert what in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_the_environment_can_not_replace_what_is_known_of_the_run() -> None:
    key = RunKey("gold", "cron", "2026-03-02")
    found = run_variables(key, run_id="r", attempt=1, environment={"DATE": "x", "INTERLOCK_A": "y", "PATH": "z"})
    assert (found["DATE"], found["INTERLOCK_A"]) == ("2026-03-02", "y")
    assert "PATH" not in found


@given(st.text(alphabet="ab$ {}\n", max_size=30))
def test_escaped_text_comes_back_as_it_was(text: str) -> None:
    # Escaping is doubling the dollar of each opening; one before it would make another opening of the pair.
    plain_text = text.replace("$${", "{")
    assert filled({"a": plain_text.replace("${", "$${")}) == {"a": plain_text}


@given(st.text(max_size=30).filter(lambda text: "${" not in text))
def test_text_without_an_opening_is_left_alone(text: str) -> None:
    assert filled({"a": text}) == {"a": text}


# ----------------------------------------------------------------------------------------------------------- secrets

SECRETS = {
    "INTERLOCK_SECRET_X": "hunter2",
    "file:db/password": "${DATE}",
    "ssm:/a": "s",
    "secretsmanager:arn:aws:x": "m",
}


SETTINGS = (
    "INTERLOCK_TOKEN",
    "INTERLOCK_STORE",
    "INTERLOCK_URL",
    "INTERLOCK_CONFIG",
    "INTERLOCK_CA_FILE",
    "INTERLOCK_CLIENT_CERT",
    "INTERLOCK_CLIENT_KEY",
)


def test_a_secret_stays_a_name_until_it_is_resolved() -> None:
    config = {
        "url": "https://${INTERLOCK_SECRET_X}@${INTERLOCK_BUCKET}/$${x}",
        "list": ["${file:db/password}", {"a": "${ssm:/a}${secretsmanager:arn:aws:x}"}],
        "plain": "${DATE}",
    }
    assert set(secret_names(config)) == set(SECRETS)
    found = filled(config)
    assert found["url"] == SecretText(("https://", Secret("INTERLOCK_SECRET_X"), "@", "lake", "/", "${", "x}"))
    assert list(template_names({"${DATE}": ["${ssm:/a}"], "n": 5, "t": ("$${x}", "${A}${B}")})) == [
        "DATE", "ssm:/a", "A", "B",
    ]  # fmt: skip
    assert found["plain"] == "2026-03-02"
    assert "hunter2" not in repr(found)
    assert resolve(found, SECRETS.__getitem__) == {
        "url": "https://hunter2@lake/${x}",
        "list": ["${DATE}", {"a": "sm"}],  # what a secret says is not looked at again
        "plain": "2026-03-02",
    }


def test_a_secret_of_the_environment_is_not_filled_in() -> None:
    variables = run_variables(
        RunKey("gold", "cron", "2026-03-02"),
        run_id="r-1",
        attempt=1,
        environment={"INTERLOCK_SECRET_X": "hunter2", "INTERLOCK_TOKEN": "t", "INTERLOCK_A": "a"},
    )
    assert {name for name in variables if name.startswith("INTERLOCK")} == {"INTERLOCK_A"}


@pytest.mark.parametrize("name", ["file:..x/y..", "file:a/..b", "ssm:/../a", "secretsmanager:/x"])
def test_what_looks_like_a_way_out_of_the_folder_of_secrets_but_is_none(name: str) -> None:
    assert filled({"a": f"${{{name}}}"}) == {"a": SecretText(("", Secret(name), ""))}


def test_an_unknown_name_is_answered_by_those_that_there_are() -> None:
    with pytest.raises(InvalidValueError) as caught:
        filled({"a": "${DAY}"})
    said = str(caught.value)
    assert "DATE, HOUR, PERIOD, PIPELINE, SCHEDULE, RUN_ID, ATTEMPT, INTERLOCK_* environment variables" in said
    assert "${file:...}, ${secretsmanager:...}, ${ssm:...}" in said
    assert "INTERLOCK_BUCKET" not in said, "what is set where the controller runs is not for everybody"


def test_the_settings_of_the_controller_are_not_given_to_jobs() -> None:
    assert for_jobs(dict.fromkeys(SETTINGS, "x") | {"INTERLOCK_BUCKET": "lake", "PATH": "/bin"}) == {
        "INTERLOCK_BUCKET": "lake"
    }


@pytest.mark.parametrize(
    ("text", "what"),
    [
        *((f"${{{name}}}", "is a setting of the controller itself") for name in SETTINGS),
        ("${file:}", "name the secret"),
        ("${file:../x}", "not a file below the folder"),
        ("${file:/etc/passwd}", "not a file below the folder"),
        ("${file:a/../../x}", "not a file below the folder"),
        ("${file:..}", "not a file below the folder"),
        ("${file:a\0b}", "not a file below the folder"),
        ("${secretsmanager:}", "name the secret"),
        ("${ssm:}", "name the secret"),
        ("${vault:x}", "is not known"),
    ],
)
def test_what_is_no_secret_and_no_variable(text: str, what: str) -> None:
    with pytest.raises(InvalidValueError, match=what):
        filled({"a": [text]})


def test_a_key_cannot_be_a_secret() -> None:
    with pytest.raises(InvalidValueError, match="a key cannot hold a secret"):
        filled({"env": {"${INTERLOCK_SECRET_X}": 1}})


def test_what_the_target_fills_in_is_left_alone() -> None:
    assert filled({"a": "${JOB_ID}/${DATE} ${CALLBACK_URL}"}) == {"a": "${JOB_ID}/2026-03-02 ${CALLBACK_URL}"}
