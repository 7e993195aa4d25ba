"""What every test shares: the Hypothesis profiles.

`ci` draws the same examples every time, so that a red build stays red; `dev` looks for new ones. Neither has
a deadline: how long an example takes on a busy machine says nothing about its correctness.
"""

import os

from hypothesis import settings

settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("dev", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if "CI" in os.environ else "dev"))
