"""Commands on the controller's own machine: argv, no shell. They outlive the controller; their end is known at once.

The controller has a small wrapper (`wrapper`) forked (`fork_server`), which starts the command and writes its end into
the run's folder (`folder`); one thread sees the wrappers end (`watch`). A controller that dies takes nothing with
it: the next one reads the same folders and waits for the same processes.
"""

import codecs
import errno
import os
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Final, assert_never

import msgspec

from interlock.jobs.command import wrapper as wrapper_program
from interlock.jobs.command.folder import Claim, Exit, Phase, RunFolder, run_folders
from interlock.jobs.command.forking import ForkServer
from interlock.jobs.command.output import OutputKept
from interlock.jobs.command.prune import prune
from interlock.jobs.command.run_as import argument_of, variables_of
from interlock.jobs.command.stop import stop_command
from interlock.jobs.command.watch import ExitWatch
from interlock.jobs.command.wrapper import OUTPUT
from interlock.jobs.configs import read_config, refused
from interlock.logs import get_logger
from interlock.loops import Loops
from interlock.model.errors import InterlockError, JobStartError
from interlock.model.job_configs import CommandConfig, Value
from interlock.model.keys import RunKey
from interlock.model.run import FailureCategory
from interlock.ports.clock import Clock
from interlock.ports.job_targets import DEFAULT_OUTPUT_LIMIT, JobTarget, RunAs, TargetSettings
from interlock.ports.jobs import (
    OUTPUT_LIMIT,
    JobOutput,
    JobRequest,
    JobStarted,
    JobState,
    JobStatus,
    JobStop,
    Recovery,
)

log = get_logger(__name__)

INHERITED: Final = ("PATH", "HOME", "LANG", "TZ")
_LOADER: Final = ("LD_LIBRARY_PATH",)
_ERROR_LINES: Final = 20
_ERROR_BYTES: Final = 1500
_SHELL_SIGNAL: Final = 128
# How a command says that trying again may help: EX_TEMPFAIL of sysexits.h, or a shell's word that its child was killed.
_TRANSIENT_CODES: Final = frozenset(
    {75, *(_SHELL_SIGNAL + number for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP))}
)
_TRANSIENT_ERRNOS: Final = frozenset(
    {errno.EAGAIN, errno.ENOMEM, errno.ENFILE, errno.EMFILE, errno.ETXTBSY, errno.ENOSPC, errno.EDQUOT}
)

# For the watch: no process is known to wait for, so look again soon.
_LOOK_AGAIN: Final = 0
_REPORT_AGAIN_SECONDS: Final = 2.0
_VANISHED: Final = "the process vanished, unseen: its wrapper was killed, or the machine went down"


class ExitNotice(msgspec.Struct, frozen=True, kw_only=True):
    """A command has ended. It may come before `start` has returned, and, after a crash, more than once."""

    key: RunKey
    attempt: int
    run_id: str
    status: JobStatus


class _Plan(msgspec.Struct, frozen=True):
    executable: str
    argv: list[str]
    cwd: Path
    environment: dict[str, str]
    timeout: timedelta


class CommandRunner:
    """Jobs of type `command`. The run id is the job id, and starting one twice is not possible.

    `on_exit` is called on the watching thread at the end of each command: it should be quick. When it raises, it is
    called again after a while, until it does not.
    """

    def __init__(  # noqa: PLR0913  what an installation says of its commands
        self,
        folder: Path,
        on_exit: Callable[[ExitNotice], None],
        clock: Clock,
        *,
        environment: Mapping[str, str] | None = None,
        working_folder: Path | None = None,
        grace: timedelta = timedelta(seconds=10),
        output_limit: int = DEFAULT_OUTPUT_LIMIT,
        loops: Loops | None = None,
        run_as: RunAs | None = None,
    ) -> None:
        self._root = folder.absolute()
        self._on_exit = on_exit
        self._clock = clock
        self._environment = os.environ if environment is None else environment
        self._working_folder = (working_folder or Path.cwd()).absolute()
        self._grace = grace
        self._output_limit = output_limit
        self._run_as = run_as
        # Exits that could not be reported to the controller, and when to try again.
        self._untold: dict[str, float] = {}
        self._watch = ExitWatch(self._settle, loops)
        self._forks = ForkServer(_wrappers_environment())

    # ------------------------------------------------------------------------------------------------- the port

    def start(self, request: JobRequest) -> JobStarted:
        """Start the command; answers as soon as its wrapper is on its way."""
        plan = self._plan(request, read_config(request, CommandConfig))
        folder = RunFolder(self._root, request.run_id)
        for _ in range(2):
            lock = folder.claim(Claim.of(request), plan.environment)
            if lock is not None:
                return self._launch(folder, plan, lock)
            found = self.recover(request)
            if isinstance(found, JobStarted):
                return found
        # Not a refusal: whether the command was run is open, and `recover` will say so.
        raise InterlockError(f"{request.run_id} was claimed before, and its folder {folder.path} is damaged")

    def recover(self, request: JobRequest) -> JobStarted | Recovery:
        """The folder knows, unless somebody damaged it."""
        folder = RunFolder(self._root, request.run_id)
        phase = folder.phase()
        match phase:
            case Phase.ABSENT:
                return Recovery.START_AGAIN
            case Phase.UNSTARTED:
                folder.remove()
                return Recovery.START_AGAIN
            case Phase.UNCERTAIN:
                return Recovery.UNDECIDABLE
            case Phase.RUNNING:
                self._watch.add(request.run_id)
                return JobStarted(job_id=request.run_id)
            case Phase.ENDED | Phase.VANISHED:
                return JobStarted(job_id=request.run_id, status=_status(folder, phase))
            case _:
                assert_never(phase)

    def check(self, request: JobRequest, job_id: str) -> JobStatus:
        """What its folder says."""
        folder = RunFolder(self._root, job_id or request.run_id)
        return _status(folder, folder.phase())

    def stop(self, request: JobRequest, job_id: str) -> JobStop:
        """TERM to its whole group, KILL after the grace; its wrapper sees to that, whichever controller started it."""
        return stop_command(RunFolder(self._root, job_id or request.run_id), self._grace)

    def output(self, request: JobRequest, job_id: str, *, offset: int = 0) -> JobOutput:
        """Standard output and error as they came, live; offsets are bytes of the file."""
        folder = RunFolder(self._root, job_id or request.run_id)
        ended = folder.phase() is not Phase.RUNNING  # asked first: what an ended command wrote is all there
        piece = folder.output.read(offset, OUTPUT_LIMIT)
        last = ended and not folder.output.read(piece.next_offset, 1).data
        # A character that is cut in two waits for its other half.
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        text = decoder.decode(piece.data, final=last)
        pending = b"" if last else decoder.getstate()[0]
        return JobOutput(text=text, next_offset=piece.next_offset - len(pending), complete=last)

    def link(self, request: JobRequest, job_id: str) -> str:
        """Nowhere but here: `output` has it all."""
        return ""

    # ------------------------------------------------------------------------------------------- beyond the port

    def watch_unfinished(self) -> int:
        """After a start of the controller: tell of commands that ended meanwhile, watch the others. How many."""
        unfinished = [folder.run_id for folder in run_folders(self._root) if not folder.reported]
        for run_id in unfinished:
            self._watch.add(run_id)
        return len(unfinished)

    def tail(self, run_id: str, limit: int = 64 * 1024) -> str:
        """The last `limit` bytes of what a command wrote, standard output and error as they came; "" if nothing."""
        return RunFolder(self._root, run_id).output.tail(limit)

    def prune(self, kept: OutputKept) -> int:
        """Remove the folders of ended commands that are too old or too much; how many."""
        return prune(self._root, kept, self._clock.now())

    def close(self) -> None:
        """Stop watching. The commands go on; the next controller finds them."""
        self._forks.close()
        self._watch.close()

    # ---------------------------------------------------------------------------------------------------- inside

    def _plan(self, request: JobRequest, config: CommandConfig) -> _Plan:
        """Everything that can be found wrong before anything is claimed."""
        argv = _argv(request, config.command)
        environment = self._variables(request, config)
        if any("\0" in text for text in (*argv, *environment, *environment.values())):
            raise refused(request, "command or env: there is a NUL character, which no program can be given")
        cwd = self._working_folder / config.cwd
        if not cwd.is_dir():
            raise refused(request, f"cwd: {str(cwd)!r} is not a folder: create it or correct the path")
        return _Plan(_executable(request, argv[0], cwd, environment["PATH"]), argv, cwd, environment, config.timeout)

    def _variables(self, request: JobRequest, config: CommandConfig) -> dict[str, str]:
        """Little of the controller's environment: its tokens are no business of a job's."""
        for name in config.env:
            if not name or "=" in name:
                raise refused(request, f"env: {name!r} cannot be the name of a variable")
        return {
            "PATH": os.defpath,
            **{name: self._environment[name] for name in INHERITED if name in self._environment},
            **variables_of(self._run_as),
            **{name: _text(value) for name, value in config.env.items()},
            "INTERLOCK_RUN_ID": request.run_id,
            "INTERLOCK_PIPELINE": request.key.pipeline,
            "INTERLOCK_SCHEDULE": request.key.schedule,
            "INTERLOCK_DATE": request.key.date,
            "INTERLOCK_ATTEMPT": str(request.attempt),
        }

    def _launch(self, folder: RunFolder, plan: _Plan, lock: int) -> JobStarted:
        try:
            output = os.open(folder.path / OUTPUT, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                self._give(output)
                self._start_wrapper(folder, plan, lock, output)
            finally:
                os.close(output)
        except OSError as error:
            folder.remove()
            message = f"{plan.argv[0]} could not be started: {error.strerror}"
            raise JobStartError(message, permanent=error.errno == errno.E2BIG) from error
        finally:
            os.close(lock)
        return JobStarted(job_id=folder.run_id)

    def _give(self, output: int) -> None:
        """Let the command open its own output again (`/dev/stderr`): it is another user's, in a folder of ours."""
        if self._run_as is not None and os.geteuid() == 0:
            os.fchown(output, self._run_as.uid, -1)

    def _start_wrapper(self, folder: RunFolder, plan: _Plan, lock: int, output: int) -> None:
        limits = [*(str(length.total_seconds()) for length in (plan.timeout, self._grace)), str(self._output_limit)]
        arguments = [str(folder.path), *limits, argument_of(self._run_as), str(plan.cwd), plan.executable, *plan.argv]
        forked = self._forks.fork(arguments, lock, output)
        if forked is not None:
            self._watch.add(folder.run_id, pidfd=forked.pidfd)
        else:
            self._watch.add(folder.run_id, _spawn(arguments, lock, output))

    def _settle(self, run_id: str) -> int | None:
        """Tell of an end; or say which process to wait for."""
        folder = RunFolder(self._root, run_id)
        phase = folder.phase()
        if phase is Phase.RUNNING:
            return folder.awaited()
        # Of a command that was not started there is no end to tell. Its start is the lifecycle's to repair, and an
        # outcome in the job log would be taken for that of the start to come.
        if phase not in (Phase.ENDED, Phase.VANISHED) or folder.reported:
            return None
        claim = folder.claimed_by()
        if claim is None:
            log.error("command-folder-unreadable", folder=str(folder.path))
            return None
        return self._report(folder, phase, claim)

    def _report(self, folder: RunFolder, phase: Phase, claim: Claim) -> int | None:
        """Tell of an end. As long as nobody can take it in (a full disk), it is tried again."""
        run_id, now = folder.run_id, time.monotonic()
        if now < self._untold.get(run_id, now):
            return _LOOK_AGAIN
        try:
            status = _status(folder, phase)
            self._on_exit(ExitNotice(key=claim.key, attempt=claim.attempt, run_id=run_id, status=status))
            folder.mark_reported()
        except Exception:
            if run_id not in self._untold:
                log.exception("command-exit-not-reported", run_id=run_id)
            self._untold[run_id] = now + _REPORT_AGAIN_SECONDS
            return _LOOK_AGAIN
        self._untold.pop(run_id, None)
        return None


def _text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _argv(request: JobRequest, command: list[str] | str) -> list[str]:
    try:
        argv = shlex.split(command) if isinstance(command, str) else list(command)
    except ValueError as error:
        raise refused(request, f"command: {command!r} cannot be split into words: {error}") from error
    if not argv or not argv[0]:
        raise refused(request, "command: is empty: name a program and its arguments")
    return argv


def _executable(request: JobRequest, name: str, cwd: Path, path: str) -> str:
    """The program, as an absolute path, or a refusal that says what is wrong with it."""
    if "/" not in name:
        found = shutil.which(name, path=path)
        if found is None:
            raise refused(request, f"command: there is no program {name!r} on the job's PATH ({path})")
        return str(cwd / found)
    program = cwd / name
    if not program.is_file():
        raise refused(request, f"command: there is no program {str(program)!r}")
    if not os.access(program, os.X_OK):
        raise refused(request, f"command: {str(program)!r} is not executable: chmod +x it, or name its interpreter")
    return str(program)


def _spawn(arguments: list[str], lock: int, output: int) -> int:
    """A wrapper with an interpreter of its own: where there is no fork server, or too much to tell it."""
    return os.posix_spawn(
        sys.executable,
        [sys.executable, "-I", "-S", wrapper_program.__file__, *arguments],
        _wrappers_environment(),
        file_actions=[(os.POSIX_SPAWN_DUP2, lock, 0), (os.POSIX_SPAWN_DUP2, output, 1), (os.POSIX_SPAWN_DUP2, 1, 2)],
        setsid=True,
        setsigmask=(),
        setsigdef=(signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM),
    )


def _wrappers_environment() -> dict[str, str]:
    """Nothing but what its Python may need to be loaded: a job can read the environment of its parent."""
    return {name: os.environ[name] for name in _LOADER if name in os.environ}


# ------------------------------------------------------------------------------------------------------- outcomes


def _status(folder: RunFolder, phase: Phase) -> JobStatus:
    match phase:
        case Phase.RUNNING:
            return JobStatus(state=JobState.RUNNING)
        case Phase.ENDED:
            ended = folder.exit()
            return _outcome(folder, ended) if ended is not None else _lost(folder, "its exit status is unreadable")
        case Phase.VANISHED:
            return _lost(folder, "stopped on request" if folder.stop_requested else _VANISHED)
        case Phase.UNCERTAIN:
            return _lost(folder, "the process vanished, and its folder is damaged")
        case Phase.UNSTARTED:
            return _lost(folder, "its wrapper ended before it could start the command")
        case Phase.ABSENT:
            return _lost(folder, "nothing is known of it on this machine: its folder is gone")
        case _:
            assert_never(phase)


def _outcome(folder: RunFolder, ended: Exit) -> JobStatus:
    if folder.stop_requested and (ended.code != 0) and ended.errno is None:
        how = _signal_name(ended.signal) if ended.signal is not None else f"exit code {ended.code}"
        return _failed(folder, FailureCategory.TRANSIENT, f"stopped on request: {how}")
    if ended.timed_out:
        took = f"{ended.ended_at - ended.started_at:.1f} s"
        return _failed(folder, FailureCategory.TIMEOUT, f"ended after {took}: its timeout was over", JobState.TIMED_OUT)
    if ended.errno is not None:
        transient = ended.errno in _TRANSIENT_ERRNOS
        category = FailureCategory.TRANSIENT if transient else FailureCategory.PERMANENT
        return _failed(folder, category, f"could not be started: {os.strerror(ended.errno)}; {_hint(ended.errno)}")
    if ended.signal is not None:
        hint = ": out of memory, perhaps?" if ended.signal == signal.SIGKILL else ""
        return _failed(folder, FailureCategory.TRANSIENT, f"killed by {_signal_name(ended.signal)}{hint}")
    if ended.code == 0:
        return JobStatus(state=JobState.SUCCEEDED, warning=folder.output.warning())
    category = FailureCategory.TRANSIENT if ended.code in _TRANSIENT_CODES else FailureCategory.PERMANENT
    return _failed(folder, category, f"exit code {ended.code}")


def _hint(number: int) -> str:
    if number in (errno.EACCES, errno.EPERM):
        return "may its user (`run_as`) enter its folder, and run it?"
    return "is its interpreter there?"


def _signal_name(number: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
    return f"signal {number} ({name})"


def _lost(folder: RunFolder, why: str) -> JobStatus:
    return _failed(folder, FailureCategory.TRANSIENT, why)


def _failed(folder: RunFolder, category: FailureCategory, what: str, state: JobState = JobState.FAILED) -> JobStatus:
    lines = folder.output.tail(_ERROR_BYTES).rstrip().splitlines()[-_ERROR_LINES:]
    error = "\n".join([f"{what}; its last output:", *lines]) if lines else what
    return JobStatus(state=state, category=category, error=error, warning=folder.output.warning())


def make_command_runner(settings: TargetSettings) -> CommandRunner:
    """The runner of this machine. Commands outlive the controller, so their state must, too."""
    if settings.folder is None:
        raise InterlockError("commands need a store on disk: their state lies beside it")
    return CommandRunner(
        settings.folder,
        lambda notice: settings.ended(notice.key, notice.attempt),
        settings.clock,
        environment=settings.environment,
        working_folder=settings.working_folder,
        output_limit=settings.output_limit,
        loops=settings.loops,
        run_as=settings.run_as,
    )


TARGET: Final = JobTarget(make=make_command_runner, config=CommandConfig)
