"""`interlock runs`: the runs of a pipeline, the latest first."""

from typing import TYPE_CHECKING, Annotated

import typer

from interlock.cli.backend import connected
from interlock.cli.completion import PipelineArgument
from interlock.cli.output import JsonOption, columns, plain_console, print_json
from interlock.cli.store_access import StoreOption, UrlOption
from interlock.cli.wording import WORD_STYLES, ScheduleOption, length, moment

if TYPE_CHECKING:
    from interlock.client.answers import Run


def runs(
    pipeline: PipelineArgument,
    *,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="How many.")] = 20,
    schedule: ScheduleOption = None,
    store: StoreOption = None,
    url: UrlOption = None,
    json: JsonOption = False,
) -> None:
    """List the runs of a pipeline, the latest date first.

    Example: interlock runs gold-revenue --limit 5
    """
    with connected(store, url) as there:
        found = there.backend.runs(pipeline, schedule=schedule, limit=limit)
    if json:
        print_json({"runs": found})
        return
    console = plain_console()
    if not found:
        console.print(f"{pipeline} has never run: `interlock why {pipeline}` says why")
        return
    for line in columns(*_table(found)):
        console.print(line)


def _table(found: "list[Run]") -> tuple[list[list[str]], list[str]]:
    rows = [["date", "schedule", "run", "attempt", "source", "opened", "took", "message"]]
    for one in found:
        message = one.message or (one.final_reason or "")
        opened = moment(one.opened_at)
        took = length(one.duration_seconds)
        rows.append([one.date, one.schedule, one.word, str(one.attempt), one.source, opened, took, message])
    return rows, ["bold", *(WORD_STYLES.get(one.word, "") for one in found)]
