"""The entry point: `interlock COMMAND`.

A command is a function in a module of its own, which imports at the top only what its arguments need and everything
else when it runs, so that `interlock --version` loads no controller. To add one, write it and name it in `_COMMANDS`.
Exit codes: 0 all is well, 1 a problem was found, 2 the command was not understood, or AWS cannot be asked as things are
set up; of `ready` also 3, cannot tell.
"""

import errno
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, NoReturn

import typer

from interlock import __version__, believed
from interlock.cli import alerts, audit, aws, dlq, job, probe, sensor, trusting
from interlock.cli.apply import apply
from interlock.cli.backup import backup, restore
from interlock.cli.cancel import cancel
from interlock.cli.console import console
from interlock.cli.demo import demo
from interlock.cli.doctor import doctor
from interlock.cli.events import events
from interlock.cli.init import init
from interlock.cli.logs import logs
from interlock.cli.open import open_
from interlock.cli.plan import plan
from interlock.cli.ready import ready
from interlock.cli.rerun import rerun
from interlock.cli.runs import runs
from interlock.cli.schema import schema
from interlock.cli.serve import serve
from interlock.cli.simulate import simulate
from interlock.cli.status import status
from interlock.cli.stpa import stpa
from interlock.cli.token import token
from interlock.cli.trusting import CaOption, ConfigOption, TrustOption
from interlock.cli.validate import validate
from interlock.cli.watchdog import watchdog
from interlock.cli.why import why
from interlock.model.errors import AccessError, InterlockError

_COMMANDS: Final[tuple[Callable[..., Any], ...]] = (
    demo,
    init,
    validate,
    plan,
    apply,
    why,
    ready,
    simulate,
    stpa,
    serve,
    console,
    status,
    runs,
    events,
    rerun,
    cancel,
    logs,
    watchdog,
    backup,
    restore,
    doctor,
    schema,
)

_NOT_SET_UP: Final = 2
_NO_MEMORY: Final = "there is not enough memory: raise its limit (`ulimit -v`, or that of the container or service)"
_UNMAPPED: Final = ("failed to map segment", "annot allocate memory")

app = typer.Typer(
    name="interlock",
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help: it is pasted, piped and diffed
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command in _COMMANDS:
    app.command()(_command)
app.command("open")(open_)
for _name, _group in (
    ("sensor", sensor.app),
    ("job", job.app),
    ("dlq", dlq.app),
    ("alerts", alerts.app),
    ("probe", probe.app),
    ("audit", audit.app),
    ("aws", aws.app),
    ("token", token),
):
    app.add_typer(_group, name=_name)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"interlock {__version__}")
        raise typer.Exit


@app.callback()
def interlock(
    *,
    config: ConfigOption = None,
    trust_dir: TrustOption = None,
    ca_file: CaOption = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """The safety controller between "it is time" and "it is safe"."""
    trusting.begin(config, trust_dir)
    believed.begin(ca_file)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit with its code; an error of ours is a message, never a traceback."""
    try:
        app(arguments)
    except AccessError as error:
        _fail(str(error), _NOT_SET_UP)
    except InterlockError as error:
        _fail(str(error))
    except MemoryError:
        _fail(_NO_MEMORY)
    except ImportError as error:
        # The loader of shared libraries has no other word for it.
        if not any(sign in str(error) for sign in _UNMAPPED):
            raise
        _fail(_NO_MEMORY)
    except RuntimeError as error:
        if "can't start new thread" not in str(error):
            raise
        _fail(
            "no thread could be started: raise the limit of memory or of processes"
            " (`ulimit -v`, `ulimit -u`, or that of the container or service)"
        )
    except OSError as error:
        _fail(_of_system(error))


def _of_system(error: OSError) -> str:
    """What the operating system refused, where, and for a full disk what to do."""
    where = f"{error.filename}: " if error.filename else ""
    what = error.strerror or str(error)
    return f"{where}{what}: make room" if error.errno in (errno.ENOSPC, errno.EDQUOT) else f"{where}{what}"


def _fail(message: str, code: int = 1) -> NoReturn:
    typer.echo(f"Error: {message}", err=True)
    sys.exit(code)
