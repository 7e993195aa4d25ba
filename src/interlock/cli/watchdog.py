"""`interlock watchdog`: one pass of the watchdog, now."""

import typer

from interlock.cli.backend import connected
from interlock.cli.output import JsonOption, log_to_stderr, plain_console, print_json
from interlock.cli.store_access import StoreOption, UrlOption
from interlock.cli.wording import now, print_events

# What only the watchdog publishes, and what it may be the one to notice.
_FINDINGS = (
    "SFN_TIMEOUT",
    "SCHEDULE_MISSED",
    "IRREGULAR_SCHEDULE_MISSED",
    "TRIGGER_RECOVERED",
    "SENSOR_DEADLINE_EXPIRED",
    "WATCHDOG_DEGRADED",
    "POST_RUN_SENSOR_MISSING",
    "SLA_WARNING",
    "SLA_BREACH",
    "RELATIVE_SLA_WARNING",
    "RELATIVE_SLA_BREACH",
)


def watchdog(*, store: StoreOption = None, url: UrlOption = None, json: JsonOption = False) -> None:
    """Run the eight checks once, now, and print what they found; exits 1 if they found anything or one failed.

    Each alert is given once per run: what an earlier pass found is not found again.

    Example: interlock watchdog
    """
    log_to_stderr()
    with connected(store, url, writing=True) as there:
        began = now()
        passed = there.backend.run_watchdog()
        found = list(there.backend.events(type=_FINDINGS, since=began, limit=1000))
    if json:
        print_json({"failedChecks": passed.failed_checks, "events": found})
    else:
        console = plain_console()
        print_events(console, found)
        for name in passed.failed_checks:
            console.print(f"the check {name} could not be made: the event WATCHDOG_DEGRADED says why", style="red")
        if not found and not passed.failed_checks:
            console.print("all eight checks made, nothing new found", style="green")
    if found or passed.failed_checks:
        raise typer.Exit(1)
