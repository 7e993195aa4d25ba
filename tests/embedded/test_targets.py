"""What is warned of, and what is started, come from one list."""

from pathlib import Path

from interlock.embedded.service import Service, ServiceSettings
from interlock.embedded.targets import abilities
from interlock.model.config import JobType


def test_a_controller_starts_what_configs_are_not_warned_of(tmp_path: Path) -> None:
    service = Service(ServiceSettings(store=tmp_path / "interlock.db"))
    try:
        assert service.control.jobs.keys() == abilities().job_types
        assert {JobType.COMMAND, JobType.HTTP, JobType.EXTERNAL} <= service.control.jobs.keys()
    finally:
        service.stop()


def test_commands_need_a_store_that_outlives_the_controller() -> None:
    service = Service(ServiceSettings(store=None))
    try:
        assert service.control.jobs.keys() == abilities().job_types - {JobType.COMMAND}
    finally:
        service.stop()
