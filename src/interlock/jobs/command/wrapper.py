"""Runs one command, sees it end and writes down how: the part of a `command` job that outlives the controller.

It is a process of its own, started by file name with `python -I -S`, and imports next to nothing, so that it is up in
some 15 ms and sees neither the program's packages nor the user's. In its folder it leaves:

    wrapper     {"pid", "identity"}: the process to wait for; SIGTERM to it ends the command
    started     {"pid", "identity"}: the command's own process; on disk before that becomes the command
    exit.json   how it ended; written whole or not at all

The command's process is forked before anything is written, and becomes the command when the first two are there.

On a full disk it waits for room: before the command starts, so that its start and its end can be written down; and
after it, with its exit status kept, although the room for that was taken beforehand. Meanwhile the lock is held, so
that nobody takes the command for lost.

Its standard input is the folder's lock file, locked by the controller before this process existed. The lock is held
until the wrapper ends, however it ends, and by the command's process until it becomes the command. So whoever finds
the lock free knows that nobody is at work here, and that without `started` nothing was, or will be, run.

The lock file's content is the command's environment: not the wrapper's own, so that no variable of a job's can disturb
it; and wiped when it has been read, since it may hold secrets. Standard output is the job's output file. Of an output
larger than its limit the middle is left out (`output.cut` says from where to where), also while the command writes.

SIGTERM ends the command as its timeout does: TERM to its group, after the grace KILL. A file `stop` says the same to a
wrapper that could not be sent a signal yet.
"""

import errno
import os
import select
import signal
import sys

TYPE_CHECKING = False  # `typing` would double the time it takes to start
if TYPE_CHECKING:
    from collections.abc import Callable

WRAPPER = "wrapper"
STARTED = "started"
EXIT = "exit.json"
STOP = "stop"
OUTPUT = "output.log"
CUT = "output.cut"

_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# Python ignores these two, and an ignored signal stays ignored in what it starts.
_IGNORED = (signal.SIGPIPE, signal.SIGXFSZ)
_GROUP_POLL = 0.05
# How an exit status is written, and the room that is taken for it beforehand: more than any needs.
_EXIT_BYTES = 512
_ROOM_SECONDS = 0.5
# What ends by itself when somebody makes room; whatever else goes wrong with files is not worth waiting for.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOMEM, errno.ENFILE)
_OUTPUT = 1  # our standard output, and the command's
_OUTPUT_POLL = 1.0
_BLOCK = 4096
_SHORT_END = 1 << 20
_PR_CAP_AMBIENT = 47
_CLEAR_ALL = 4
_LOGIN_UMASK = 0o022
_boot_id = ""
_PUNCH_HOLE = 3  # FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE


def identity(pid: int) -> str:
    """What tells this process from a later one with its number: its start time and the boot; "" when it is gone.

    Also "" where there is no /proc to ask.
    """
    try:
        # The name in parentheses may contain anything; behind it come the state and, as the 20th, the start time.
        fields = read_small(f"/proc/{pid}/stat").rpartition(")")[2].split()
        boot = boot_id()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else f"{fields[19]}@{boot}"


def boot_id() -> str:
    """What tells this boot of the machine from all others. Asked once: the fork server tells its wrappers."""
    global _boot_id  # noqa: PLW0603
    if not _boot_id:
        _boot_id = read_small("/proc/sys/kernel/random/boot_id").strip()
    return _boot_id


def read_small(path: str) -> str:
    """A file of the system's. Text files of Python's own would load a codec, in every wrapper anew."""
    file = os.open(path, os.O_RDONLY)
    try:
        return os.read(file, _BLOCK).decode("ascii", "replace")
    finally:
        os.close(file)


# ---------------------------------------------------------------------------------------------------------- files


def insist(work: "Callable[[], None]", given_up: "Callable[[], bool]" = lambda: False) -> None:
    """Do it, again and again while there is no room for it on the disk."""
    while True:
        try:
            work()
            return
        except OSError as error:
            if error.errno not in _NO_ROOM or given_up():
                raise
        select.select([], [], [], _ROOM_SECONDS)


def write_durably(folder: str, name: str, data: bytes) -> None:
    """Write a file that is whole, and on disk, or not there."""
    new = os.path.join(folder, f"{name}.new")
    file = os.open(new, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        # Not truncated first: room that was taken for it (`take_room`) is not given away.
        write_whole(file, data)
        os.ftruncate(file, len(data))
        os.fsync(file)
    finally:
        os.close(file)
    os.replace(new, os.path.join(folder, name))
    sync_folder(folder)


def take_room(folder: str) -> None:
    """Take the room that the exit status will need."""
    file = os.open(os.path.join(folder, f"{EXIT}.new"), os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        write_whole(file, b" " * _EXIT_BYTES)
    finally:
        os.close(file)


def say_who_waits(folder: str) -> None:
    """Leave our number."""
    file = os.open(os.path.join(folder, WRAPPER), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        write_whole(file, named(os.getpid()))
    finally:
        os.close(file)


def named(pid: int) -> bytes:
    """A process, as the files of the folder name it."""
    return f'{{"pid": {pid}, "identity": "{identity(pid)}"}}'.encode()


def write_whole(file: int, data: bytes) -> None:
    """Write all of it, at the beginning; part of it is no room."""
    if os.pwrite(file, data, 0) < len(data):
        raise OSError(errno.ENOSPC, "no room")


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
    ended = touched(os.path.join(folder, f"{EXIT}.new"))
    started = os.path.join(folder, STARTED)
    fields = {
        "code": code if code is not None and code >= 0 else "null",
        "signal": -code if code is not None and code < 0 else "null",
        "timedOut": "true" if timed_out else "false",
        "errno": "null" if errno is None else errno,
        "startedAt": f"{os.stat(started).st_mtime if os.path.exists(started) else ended:.6f}",
        "endedAt": f"{ended:.6f}",
    }
    text = "{" + ", ".join(f'"{name}": {value}' for name, value in fields.items()) + "}\n"
    insist(lambda: write_durably(folder, EXIT, text.encode()))


def touched(path: str) -> float:
    """Now, as the file system has it."""
    os.utime(path)
    return os.stat(path).st_mtime


# --------------------------------------------------------------------------------------------------------- output


class Output:
    """What the command writes, kept within a limit: the first half of it, and as much of the end."""

    def __init__(self, folder: str, limit: int) -> None:
        self._folder = folder
        self._half = max(limit // 2 // _BLOCK, 1) * _BLOCK
        self._limit = limit
        self._end = self._half  # up to where the middle is left out
        self._dropped = 0

    def cut(self) -> None:
        """Leave out what is too much."""
        size = os.fstat(_OUTPUT).st_size
        # In steps, so that an output that grows slowly does not cost a cut each second.
        if not self._limit or size - self._end <= self._half + self._limit // 8:
            return
        end = (size - self._half) // _BLOCK * _BLOCK
        self._dropped += end - self._end
        self._end = end
        # Said first: who reads the file must not take a hole for output. Without room for that, the hole makes it.
        said = self._say()
        if not punch_hole(_OUTPUT, self._half, end - self._half):
            self._cut_short(size)
            said = False
        if not said:
            self._say()

    def _cut_short(self, size: int) -> None:
        """Where there are no holes: the end is written again behind the beginning. What comes just then is lost."""
        with open(os.path.join(self._folder, OUTPUT), "rb") as file:
            file.seek(max(size - min(self._half, _SHORT_END), self._half))
            end = file.read()
        self._dropped += size - len(end) - self._end
        self._end = self._half
        os.ftruncate(_OUTPUT, self._half)
        os.write(_OUTPUT, end)

    def _say(self) -> bool:
        text = f'{{"start": {self._half}, "end": {self._end}, "dropped": {self._dropped}}}\n'
        try:
            write_durably(self._folder, CUT, text.encode())
        except OSError:
            return False
        return True


def punch_hole(file: int, start: int, length: int) -> bool:
    """Give a part of a file back to the disk, and change nothing else; False where that cannot be done."""
    try:
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        call = getattr(libc, "fallocate64", None) or libc.fallocate
        return bool(call(file, _PUNCH_HOLE, ctypes.c_int64(start), ctypes.c_int64(length)) == 0)
    except (ImportError, OSError, AttributeError):
        return False


# -------------------------------------------------------------------------------------------------------- command


def become(
    folder: str, user: str, cwd: str, executable: str, argv: list[str], environment: dict[bytes, bytes], go: int
) -> None:
    """In the command's own process: become the command. Returns only by raising OSError.

    `go`: a byte comes from there when the wrapper is ready; an end, when it is not, or has died.
    """
    # The claim itself, a name in the folder above, must not be lost once the command runs. Done here, while the wrapper
    # writes what has to be on the disk as well: each waits for the disk.
    sync_folder(os.path.dirname(folder))
    if user:
        become_user(user)
    os.chdir(cwd)
    if not os.read(go, 1):
        os._exit(127)
    for number in _IGNORED:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.execve(executable, argv, environment)


def ambient_dropper() -> "Callable[[], None]":
    """A user other than root keeps capabilities when becoming another: what gives up those that outlive the exec.

    Made before: the other user may not be able to read our Python.
    """
    if not sys.platform.startswith("linux"):
        return lambda: None
    import ctypes

    prctl = ctypes.CDLL(None).prctl

    def drop() -> None:
        prctl(_PR_CAP_AMBIENT, _CLEAR_ALL, 0, 0, 0)

    return drop


def become_user(user: str) -> None:
    """Give up who we are, for good: `uid:gid:group,group`. Raises OSError, and then nothing may be run."""
    drop_ambient = ambient_dropper()
    uid, gid, groups = user.split(":")
    os.setgroups([int(group) for group in groups.split(",") if group])
    os.setgid(int(gid))
    os.setuid(int(uid))
    if (os.getuid(), os.geteuid(), os.getgid(), os.getegid()) != (int(uid), int(uid), int(gid), int(gid)):
        raise OSError(errno.EPERM, "still another user")
    drop_ambient()
    os.umask(_LOGIN_UMASK)


def fork(
    folder: str, user: str, cwd: str, executable: str, argv: list[str], environment: dict[bytes, bytes]
) -> tuple[int, int]:
    """The command's process, and the errno for which it could not become the command (0: it did)."""
    failure, report = os.pipe()  # closed by a successful exec
    go, ready = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ready)
        try:
            become(folder, user, cwd, executable, argv, environment, go)
        except OSError as error:
            os.write(report, str(error.errno).encode())
        except Exception:  # noqa: BLE001 - whatever it is: it is not the command that runs
            os.write(report, str(errno.EPERM).encode())
        finally:
            os._exit(127)
    os.close(report)
    refused = make_ready(folder, pid)
    if not refused:
        os.write(ready, b".")  # `go` is still open here, so that there is somebody to read it
    for end in (go, ready):
        os.close(end)
    code = os.read(failure, 16)
    os.close(failure)
    return pid, int(code or refused)


def make_ready(folder: str, pid: int) -> int:
    """See to what has to be there before the command begins; the errno for which it must not."""
    stopped = os.path.join(folder, STOP)
    try:
        os.setpgid(pid, pid)  # before anybody can read its number, which is that of its group
        insist(lambda: write_durably(folder, STARTED, named(pid)), lambda: os.path.exists(stopped))
        insist(lambda: say_who_waits(folder))
        insist(lambda: take_room(folder))
    except OSError as error:
        return error.errno or errno.EIO
    return 0


class Command:
    """The running command: waits for it, ends it when its time is up, passes on the wrapper's signals."""

    def __init__(self, pid: int, timeout: float, grace: float, output: Output) -> None:
        self.timed_out = False
        self._stopping = False
        self._over = False
        self._output = output
        self._pid = pid
        self._woken = wake_up_pipe()
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
            while os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
                self._sleep()
        signal.setitimer(signal.ITIMER_REAL, 0)
        _, status = os.waitpid(self._pid, 0)
        if self.timed_out or self._stopping:
            self._clear_group()
        self._over = True
        self._look_at_output()
        return os.waitstatus_to_exitcode(status)

    def _sleep(self) -> None:
        """Until a signal comes, of which the command's end is one; and now and then look at what it writes."""
        woken, _, _ = select.select([self._woken], [], [], _OUTPUT_POLL)
        if woken:
            os.read(self._woken, 4096)
        self._look_at_output()

    def _look_at_output(self) -> None:
        try:
            self._output.cut()
        except OSError:  # it stays too long, then: the command's end is worth more
            return

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
        if self._over:
            return False  # its number may be somebody else's by now
        try:
            os.killpg(self._pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True


def wake_up_pipe() -> int:
    """What becomes readable when a signal comes, the end of a child included."""
    woken, wake = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    return woken


def main(arguments: list[str]) -> None:
    """`folder timeout grace limit user cwd executable argv...`; in seconds and bytes, 0 is none; no user: ours."""
    folder, timeout, grace, limit, user, cwd, executable, *argv = arguments
    environment = take_lock()
    # Held back until there is a command to pass them on to.
    signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)
    pid, errno = fork(folder, user, cwd, executable, argv, environment)
    if errno:
        finish(folder, None, errno=errno)
        return
    command = Command(pid, float(timeout), float(grace), Output(folder, int(limit)))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)
    # Who wants it stopped leaves this file and then looks for our number: either he finds that, or we find the file.
    if os.path.exists(os.path.join(folder, STOP)):
        command.stop()
    code = command.wait()
    finish(folder, code, timed_out=command.timed_out)


if __name__ == "__main__":
    main(sys.argv[1:])
    # Nothing is left to tidy up; this saves whatever waits for the process a few milliseconds.
    os._exit(0)
