"""`interlock schema`: the JSON Schema of a pipeline file, for editors."""

from typing import Annotated

import typer


def schema(
    *, json: Annotated[bool, typer.Option("--json", help="Accepted for uniformity: a schema is JSON anyway.")] = False
) -> None:
    """Print the JSON Schema of a pipeline file, for completion and checks in an editor."""
    import msgspec

    from interlock.config.schema import pipeline_schema

    typer.echo(msgspec.json.format(msgspec.json.encode(pipeline_schema()), indent=2))
