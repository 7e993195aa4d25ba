"""What people are told has not changed by accident."""

import pytest

from tests.decide.wording_cases import FOLDER, TEXTS, text_of


@pytest.mark.parametrize("name", TEXTS)
def test_people_are_told_what_they_were_told(name: str) -> None:
    kept = (FOLDER / name).read_text(encoding="utf-8")
    assert text_of(name) == kept, "if the new words are meant: python -m tests.decide.wording_cases"
