"""Runs one command, sees it end and writes down how: the part of a `command` job that outlives the controller.

It is a process of its own, started by file name with `python -I -S`, and imports next to nothing, so that it is up in
some 15 ms and sees neither the program's packages nor the user's. In its folder it leaves, in this order:

    wrapper     {"pid", "identity"}: whom to wait for, and to send SIGTERM to end the command
    started     {"pid", "identity"}: written by the command's own process, and on disk, before it becomes the command
    exit.json   how it ended; written whole or not at all

Its standard input is the folder's lock file, locked by the controller before this process existed. The lock is held
until the wrapper ends, however it ends, and by the command's process until it becomes the command. So whoever finds
the lock free knows that nobody is at work here, and that without `started` nothing was, or will be, run.

The lock file's content is the command's environment: not the wrapper's own, so that no variable of a job's can disturb
it; and wiped when it has been read, since it may hold secrets. Standard output is the job's output file.

SIGTERM ends the command as its timeout does: TERM to its group, after the grace KILL. A file `stop` says the same to a
wrapper that could not be sent a signal yet.
"""

import os
import select
import signal
import sys

WRAPPER = "wrapper"
STARTED = "started"
EXIT = "exit.json"
STOP = "stop"

_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# Python ignores these two, and an ignored signal stays ignored in what it starts.
_IGNORED = (signal.SIGPIPE, signal.SIGXFSZ)
_GROUP_POLL = 0.05


def identity(pid: int) -> str:
    """What tells this process from a later one with its number: its start time and the boot; "" when it is gone.

    Also "" where there is no /proc to ask.
    """
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            # The name in parentheses may contain anything; behind it come the state and, as the 20th, the start time.
            fields = file.read().rpartition(")")[2].split()
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
    except (OSError, ValueError):
        return ""
    return "" if fields[0] in "ZX" else f"{fields[19]}@{boot}"


# ---------------------------------------------------------------------------------------------------------- files


def write_durably(folder: str, name: str, text: str) -> None:
    """Write a file that is whole, and on disk, or not there."""
    new = os.path.join(folder, f"{name}.new")
    file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(file, text.encode())
        os.fsync(file)
    finally:
        os.close(file)
    os.replace(new, os.path.join(folder, name))
    sync_folder(folder)


def sync_folder(folder: str) -> None:
    """Put a folder's list of files on disk."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def take_lock() -> dict[bytes, bytes]:
    """The command's environment; the lock stays on a descriptor that the command does not inherit."""
    # What the controller was itself started with (a service manager's sockets, a shell's files) is not for jobs.
    os.closerange(3, min(os.sysconf("SC_OPEN_MAX"), 1 << 20))
    lock = os.dup(0)
    environment = os.pread(lock, os.fstat(lock).st_size, 0)
    os.ftruncate(lock, 0)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    pairs = [variable.partition(b"=") for variable in environment.split(b"\0") if variable]
    return {name: value for name, _, value in pairs}


def finish(folder: str, code: int | None, *, timed_out: bool = False, errno: int | None = None) -> None:
    """Write down the end; a code below 0 is a signal. The times are the file system's: no clock is needed here."""
    with open(os.path.join(folder, f"{EXIT}.new"), "w", encoding="ascii") as file:
        ended = os.fstat(file.fileno()).st_mtime
    told = {
        "code": code if code is not None and code >= 0 else "null",
        "signal": -code if code is not None and code < 0 else "null",
        "timedOut": "true" if timed_out else "false",
        "errno": "null" if errno is None else errno,
        "startedAt": f"{os.stat(os.path.join(folder, STARTED)).st_mtime:.6f}",
        "endedAt": f"{ended:.6f}",
    }
    write_durably(folder, EXIT, "{" + ", ".join(f'"{name}": {value}' for name, value in told.items()) + "}\n")


# -------------------------------------------------------------------------------------------------------- command


def become(folder: str, cwd: str, executable: str, argv: list[str], environment: dict[bytes, bytes]) -> None:
    """In the command's own process: say so, durably, and become the command. Returns only by raising OSError."""
    os.setpgid(0, 0)
    pid = os.getpid()
    write_durably(folder, STARTED, f'{{"pid": {pid}, "identity": "{identity(pid)}"}}')
    # The claim itself, a name in the folder above, must not be lost either once the command runs.
    sync_folder(os.path.dirname(folder))
    os.chdir(cwd)
    for number in _IGNORED:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.execve(executable, argv, environment)


def fork(folder: str, cwd: str, executable: str, argv: list[str], environment: dict[bytes, bytes]) -> tuple[int, int]:
    """The command's process, and the errno for which it could not become the command (0: it did)."""
    told, tell = os.pipe()  # closed by a successful exec
    pid = os.fork()
    if pid == 0:
        try:
            become(folder, cwd, executable, argv, environment)
        except OSError as error:
            os.write(tell, str(error.errno).encode())
        finally:
            os._exit(127)
    os.close(tell)
    said = os.read(told, 16)
    os.close(told)
    return pid, int(said or b"0")


class Command:
    """The running command: waits for it, ends it when its time is up, passes on what the wrapper is told."""

    def __init__(self, pid: int, timeout: float, grace: float) -> None:
        self.timed_out = False
        self._stopping = False
        self._pid = pid
        self._grace = max(grace, 0.001)  # 0 would disarm the alarm that insists
        signal.signal(signal.SIGALRM, self._on_alarm)
        for number in _FORWARDED:
            signal.signal(number, self._on_signal)
        if timeout > 0:
            signal.setitimer(signal.ITIMER_REAL, timeout)

    def wait(self) -> int:
        """Its exit code, or minus the signal that ended it."""
        # First without reaping: while the zombie is there its number is not given to another process, so that an
        # alarm that goes off just now cannot hit a stranger.
        if hasattr(os, "waitid"):  # not on every system
            os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT)
        signal.setitimer(signal.ITIMER_REAL, 0)
        _, status = os.waitpid(self._pid, 0)
        if self.timed_out or self._stopping:
            self._clear_group()
        return os.waitstatus_to_exitcode(status)

    def _on_alarm(self, _number: int, _frame: object) -> None:
        """Time is up: ask, and after the grace insist."""
        if self.timed_out or self._stopping:
            self._signal(signal.SIGKILL)
            return
        self.timed_out = True
        self._signal(signal.SIGTERM)
        signal.setitimer(signal.ITIMER_REAL, self._grace)

    def stop(self) -> None:
        """Ask, and after the grace insist; its own timeout counts no more. Asking again changes nothing."""
        if self.timed_out or self._stopping:
            return
        self._stopping = True
        self._signal(signal.SIGTERM)
        signal.setitimer(signal.ITIMER_REAL, self._grace)

    def _on_signal(self, number: int, _frame: object) -> None:
        if number == signal.SIGTERM:
            self.stop()
        else:
            self._signal(number)

    def _clear_group(self) -> None:
        """What the command has started gets the grace, too: a shell dies of the signal its child still works on.

        They are not our children, so nothing tells us of their end but asking.
        """
        for _ in range(int(self._grace / _GROUP_POLL)):
            if not self._signal(0):
                return
            select.select([], [], [], _GROUP_POLL)
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> bool:
        try:
            os.killpg(self._pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True


def main(arguments: list[str]) -> None:
    """`folder timeout grace cwd executable argv...`; times in seconds, a timeout of 0 is none."""
    folder, timeout, grace, cwd, executable, *argv = arguments
    environment = take_lock()
    # Held back until there is a command to pass them on to.
    signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)
    with open(os.path.join(folder, WRAPPER), "w", encoding="ascii") as file:
        file.write(f'{{"pid": {os.getpid()}, "identity": "{identity(os.getpid())}"}}')
    pid, errno = fork(folder, cwd, executable, argv, environment)
    if errno:
        finish(folder, None, errno=errno)
        return
    command = Command(pid, float(timeout), float(grace))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)
    # Who wants it stopped leaves this file and then looks for our number: either he finds that, or we find the file.
    if os.path.exists(os.path.join(folder, STOP)):
        command.stop()
    code = command.wait()
    finish(folder, code, timed_out=command.timed_out)


if __name__ == "__main__":
    main(sys.argv[1:])
    # Nothing is left to tidy up, and whoever waits for this process waits a few milliseconds less.
    os._exit(0)
