"""What every test shares: the Hypothesis profiles, and a state folder that is nobody's home.

`ci` draws the same examples every time, so that a red build stays red; `dev` looks for new ones. Neither has
a deadline: how long an example takes on a busy machine says nothing about its correctness.
"""

import os
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("dev", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if "CI" in os.environ else "dev"))


@pytest.fixture(scope="session", autouse=True)
def state_folder() -> Iterator[None]:
    """Controllers that are started here leave the records of their tokens here, too."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", folder)
        yield
