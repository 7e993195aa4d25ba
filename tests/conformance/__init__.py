"""What every backend of a port must do. A backend subclasses a suite and says how to open it."""

from pathlib import Path

import pytest

# pytest explains a failed assert in test files only; a suite is one, whatever its name.
for _file in Path(__file__).parent.glob("*.py"):
    if _file.stem != "__init__":
        pytest.register_assert_rewrite(f"{__name__}.{_file.stem}")
