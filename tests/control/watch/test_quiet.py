"""Which pipelines the watchdog may leave out: never one of which something was written since it looked."""

from datetime import UTC, datetime, timedelta
from typing import Final

from interlock.control.watch.quiet import LONGEST, Quiet

NOW: Final = datetime(2026, 3, 5, tzinfo=UTC)
SOON: Final = NOW + timedelta(minutes=10)


def looked(quiet: Quiet, pipeline: str = "a", until: datetime | None = SOON) -> None:
    quiet.looked_at(pipeline, quiet.mark(pipeline), NOW, until)


def test_what_was_never_looked_at_is_not_left_out() -> None:
    quiet = Quiet()
    assert not quiet.may_skip("a", NOW)
    looked(quiet)
    assert quiet.may_skip("a", NOW)
    assert not quiet.may_skip("b", NOW)


def test_a_pipeline_is_quiet_until_something_is_due_and_not_longer_than_an_hour() -> None:
    quiet = Quiet()
    looked(quiet)
    assert quiet.may_skip("a", SOON - timedelta(seconds=1))
    assert not quiet.may_skip("a", SOON)
    for until in (None, NOW + timedelta(days=1)):
        looked(quiet, until=until)
        assert quiet.may_skip("a", NOW + LONGEST - timedelta(seconds=1))
        assert not quiet.may_skip("a", NOW + LONGEST)


def test_a_write_ends_the_quiet_of_its_pipeline_alone_and_a_calendar_that_of_all() -> None:
    quiet = Quiet()
    for name in ("a", "b"):
        looked(quiet, name)
    quiet.changed("a")
    assert (quiet.may_skip("a", NOW), quiet.may_skip("b", NOW)) == (False, True)
    looked(quiet)
    assert quiet.may_skip("a", NOW)
    quiet.all_changed()
    assert (quiet.may_skip("a", NOW), quiet.may_skip("b", NOW)) == (False, False)


def test_a_look_that_something_was_written_under_was_in_vain() -> None:
    quiet = Quiet()
    before = quiet.mark("a")
    quiet.changed("a")
    quiet.looked_at("a", before, NOW, SOON)
    assert not quiet.may_skip("a", NOW)
    before = quiet.mark("a")
    quiet.changed("b")
    quiet.looked_at("a", before, NOW, SOON)
    assert quiet.may_skip("a", NOW), "of another pipeline"
    before = quiet.mark("a")
    quiet.all_changed()
    quiet.looked_at("a", before, NOW, SOON)
    assert not quiet.may_skip("a", NOW)
    before = quiet.mark("a")
    quiet.changed("a")
    quiet.looked_at("a", quiet.mark("a"), NOW, SOON)
    quiet.changed("a")
    quiet.looked_at("a", before, NOW, SOON)
    assert not quiet.may_skip("a", NOW), "an old look, after two changes"
