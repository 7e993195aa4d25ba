"""What every control function is given: the limits that hold where an installation sets none."""

from datetime import timedelta

from interlock.control.context import Settings
from tests.safety.stage import control_of, pipeline, staged


def test_the_limits_without_settings_are_those_of_the_manual() -> None:
    settings = Settings()
    assert settings.execution_timeout == timedelta(hours=4)
    assert settings.lease_margin == timedelta(minutes=30)
    assert settings.trigger_max_attempts == 3
    assert settings.missed_grace == timedelta(minutes=5)
    assert settings.reopen_for == timedelta(hours=24)
    assert (dict(settings.pools), dict(settings.environment)) == ({}, {})
    assert settings.stretch_timeout
    assert not settings.tick_timers, "a heap in memory brings the ticks of the embedded runtime"


def test_now_is_what_the_clock_says() -> None:
    world = staged(pipeline(), until="+7m")
    assert control_of(world).now() == world.clock.now()
