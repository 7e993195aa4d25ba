"""What a run costs on AWS is known, and changes on purpose only."""

import json

from tests.aws.units import FILE, measured


def test_units_are_those_that_are_written_down() -> None:
    """If they changed on purpose: `python -m tests.aws.units`, then build the cost page again."""
    assert measured() == json.loads(FILE.read_text(encoding="utf-8"))


def test_transitions_are_few() -> None:
    units = json.loads(FILE.read_text(encoding="utf-8"))

    # Ready at once, with an SLA, and one poll besides the first look at the job.
    assert units["run"]["transitions"] + units["sla"]["transitions"] == 14 + 5
    assert units["wait"]["transitions"] == units["poll"]["transitions"] == 5
    assert units["idle pipeline in a pass"]["reads"] <= 8
