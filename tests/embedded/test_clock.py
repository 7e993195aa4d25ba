"""SystemClock: aware, never backwards, never standing still."""

from datetime import UTC, timedelta

from interlock.embedded.clock import SystemClock


def test_the_clock_is_aware_and_goes_on() -> None:
    clock = SystemClock()
    instants = [clock.now() for _ in range(100)]
    assert instants == sorted(instants)
    assert instants[0].tzinfo is UTC


def test_a_clock_set_back_goes_on_at_half_speed_until_it_fits_again() -> None:
    second = 1_000_000_000
    wall, monotonic = [100 * second], [0]
    clock = SystemClock(lambda: wall[0], lambda: monotonic[0])
    start = clock.now()

    def after(seconds: int, correction: int = 0) -> timedelta:
        monotonic[0] += seconds * second
        wall[0] += (seconds + correction) * second
        return clock.now() - start

    assert after(10) == timedelta(seconds=10)
    assert after(2, correction=-10) == timedelta(seconds=11)
    assert after(10) == timedelta(seconds=16)
    assert after(8) == timedelta(seconds=20)
    assert after(5) == timedelta(seconds=25)
    assert after(0, correction=100) == timedelta(seconds=125)
