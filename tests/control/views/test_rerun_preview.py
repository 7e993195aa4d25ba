"""What a rerun request would come to: decided as the request would be, without making one."""

from typing import Any

from interlock.control import catalog
from interlock.control.views import rerun_preview
from interlock.control.views.rerun_preview import Decision, RerunPreview
from interlock.decide.reruns import Budget
from interlock.model.keys import RunKey
from interlock.simulation.world import World
from tests.control.played import pipeline, played, ready


def previewed(world: World, name: str = "a", date: str = "2026-03-02", *, force: bool = False) -> RerunPreview:
    config = catalog.current(world.engine.store, name)
    assert config is not None
    key = RunKey(name, config.all_schedules[0].schedule_id, date)
    return rerun_preview.preview(world.engine.control, config, key, force=force)


def test_a_preview_decides_as_the_request_would_and_writes_nothing() -> None:
    world = played([pipeline("a")], "2026-03-02T12:00:00Z", steps=[ready("2026-03-02T08:10:00Z")])
    head = world.database.head()
    unchanged = previewed(world)
    assert (unchanged.decision, unchanged.code) == (Decision.REJECTED, "unchanged")
    forced = previewed(world, force=True)
    assert (forced.decision, forced.reason) == (Decision.ACCEPTED, "manual rerun 1 of 1")
    assert forced.budgets == {
        "manual": Budget(used=0, of=1),
        "drift": Budget(used=0, of=1),
        "transient": Budget(used=0, of=0),
        "code": Budget(used=0, of=1),
    }
    assert world.database.head() == head
    future = previewed(world, date="2026-03-01")
    assert (future.decision, future.reason) == (
        Decision.ACCEPTED,
        "2026-03-01 has not run yet: this is its first attempt",
    )


def test_a_preview_of_an_active_and_of_a_spent_run() -> None:
    steps = [
        ready("2026-03-02T08:10:00Z"),
        {"at": "2026-03-02T09:00:00Z", "rerun": "a", "date": "2026-03-02", "reason": "manual", "force": True},
    ]
    world = played([pipeline("a")], "2026-03-02T12:00:00Z", steps=steps)
    spent = previewed(world, force=True)
    assert (spent.decision, spent.code, spent.budgets["manual"]) == (Decision.REJECTED, "budget", Budget(used=1, of=1))
    waiting = played([pipeline("a")], "2026-03-02T08:30:00Z")
    assert previewed(waiting).code == "active"


def test_a_preview_of_a_job_that_may_still_run_says_that_the_target_is_asked() -> None:
    jobs = {"a": [{"after": "1m", "result": "hang"}]}
    config = pipeline("a")
    config["job"]["jobPollWindowSeconds"] = 60
    world = played([config], "2026-03-02T12:00:00Z", steps=[ready("2026-03-02T08:10:00Z")], jobs=jobs)
    found = previewed(world)
    assert found.decision is Decision.UNKNOWN
    assert "the target is asked first" in found.reason


def test_a_preview_names_the_downstreams() -> None:
    below = pipeline("b", schedule={"trigger": {"key": "never", "check": "exists"}}, after=[{"pipeline": "a"}])
    world = played([pipeline("a"), below], "2026-03-02T12:00:00Z", steps=[ready("2026-03-02T08:10:00Z")])
    (found,) = previewed(world, force=True).downstream
    assert found.pipeline == "b"
    assert found.effect in ("its run of 2026-03-02 is held", "its run of 2026-03-02 is waiting")


def test_a_preview_of_a_dry_run_and_of_a_date_that_cannot_be() -> None:
    dry = pipeline("a", dryRun=True, schedule={"trigger": {"key": "ready", "check": "exists"}})
    found = previewed(played([dry], "2026-03-02T09:00:00Z", steps=[ready("2026-03-02T08:10:00Z")]), force=True)
    assert (found.decision, found.code) == (Decision.REJECTED, None)
    assert "a is a dry run: nothing is ever started" in found.reason
    daily = played([pipeline("a")], "2026-03-02T09:00:00Z")
    hour = previewed(daily, date="2026-03-02T07")
    assert (hour.decision, hour.code) == (Decision.REJECTED, "no-such-period")


def test_a_preview_of_an_excluded_date() -> None:
    config = pipeline("a", schedule={"cron": "0 8 * * *", "exclude": {"dates": ["2026-03-01"]}})
    found = previewed(played([config], "2026-03-02T07:30:00Z"), date="2026-03-01", force=True)
    assert (found.decision, found.code) == (Decision.REJECTED, "excluded")


def effects(until: str, steps: list[dict[str, Any]], **below: Any) -> list[str]:
    """What the rerun of `a` would mean to `b`, which runs after it."""
    config = pipeline("b", schedule={"trigger": {"key": "never", "check": "exists"}}, after=[{"pipeline": "a"}])
    config["job"] |= below
    world = played([pipeline("a"), config], until, steps=steps)
    return [one.effect for one in previewed(world, force=True).downstream]


def test_what_a_rerun_means_to_a_downstream_that_has_not_opened_has_completed_or_has_spent_its_budget() -> None:
    assert effects("2026-03-02T08:05:00Z", []) == [
        "opens when this completes, if the markers of its other upstreams are there"
    ]
    both = [ready("2026-03-02T08:10:00Z"), ready("2026-03-02T08:20:00Z", "b")]
    assert effects("2026-03-02T09:00:00Z", both, maxDriftReruns=2) == [
        "its run of 2026-03-02 is run again (0 of 2 used)"
    ]
    assert effects("2026-03-02T09:00:00Z", both, maxDriftReruns=0) == [
        "its run of 2026-03-02 is not run again: its budget is used up (0 of 0 used)"
    ]
