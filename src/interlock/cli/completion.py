"""What the shell offers after a tab. It must be quick and silent: whatever goes wrong, nothing is offered."""

from typing import Annotated

import typer


def complete_pipeline(context: typer.Context, incomplete: str) -> list[str]:
    """The pipelines whose name begins like this, of the store or server that is meant."""
    from interlock.cli.backend import connected

    given = context.params
    try:
        with connected(given.get("store"), given.get("url")) as there:
            names = [one.id for one in there.backend.pipelines(limit=500)]
    except Exception:  # noqa: BLE001 - a tab must never print a traceback over the line being typed
        return []
    return [name for name in names if name.startswith(incomplete)]


PipelineArgument = Annotated[
    str,
    typer.Argument(metavar="PIPELINE", help="The pipeline's id.", show_default=False, autocompletion=complete_pipeline),
]
