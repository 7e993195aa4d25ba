"""A small process that has the wrapper's program loaded, and forks itself to become the wrapper of a command.

An interpreter of its own costs each wrapper some 30 ms and 10 MB; a fork costs one millisecond, and shares its memory.
Started by file name with `python -I -S`, as the wrapper is. Its standard input is a socket to the controller. A request
is the wrapper's arguments, joined by NUL, with two descriptors: the folder's lock, which becomes the wrapper's standard
input, and the file for its output. The answer is the wrapper's number, with a pidfd where there are any, or `E` and the
errno for which there is none. When the controller is gone, the socket ends, and so does this; the wrappers go on.
"""

import array
import gc
import importlib.machinery
import os
import select
import signal
import socket
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MOST_BYTES = 128 * 1024
_DESCRIPTORS = 2


def main(run: "Callable[[list[str]], None]") -> None:
    """Fork at every request until there will be none."""
    requests = socket.socket(fileno=0)
    ended, tell = os.pipe()
    os.set_blocking(ended, False)
    os.set_blocking(tell, False)
    signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    # A wrapper makes no garbage, and every page that a collector looks at would be copied.
    gc.disable()
    gc.freeze()
    while True:
        ready, _, _ = select.select([requests.fileno(), ended], [], [])
        if ended in ready:
            os.read(ended, 4096)
            reap()
        if requests.fileno() in ready and not serve(requests, run):
            return


def reap() -> None:
    """Take the exit status of wrappers that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def serve(requests: socket.socket, run: "Callable[[list[str]], None]") -> bool:
    """One request; False at the end of the socket."""
    data, control, _, _ = requests.recvmsg(MOST_BYTES, socket.CMSG_SPACE(_DESCRIPTORS * 4))
    if not data:
        return False
    passed = array.array("i")
    for level, kind, content in control:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            passed.frombytes(content)
    try:
        if len(passed) == _DESCRIPTORS:
            answer(requests, fork(data, passed[0], passed[1], run))
        else:
            requests.send(b"E0")
    except OSError as error:
        requests.send(f"E{error.errno or 0}".encode())
    finally:
        for descriptor in passed:
            os.close(descriptor)
    return True


def answer(requests: socket.socket, pid: int) -> None:
    """Say who the wrapper is. Until it is reaped, its number is nobody else's."""
    try:
        pidfd = os.pidfd_open(pid)
    except (AttributeError, OSError):
        requests.send(str(pid).encode())
        return
    try:
        rights = array.array("i", [pidfd])
        requests.sendmsg([str(pid).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    finally:
        os.close(pidfd)


def fork(data: bytes, lock: int, output: int, run: "Callable[[list[str]], None]") -> int:
    """A process that is a wrapper and nothing else."""
    pid = os.fork()
    if pid:
        return pid
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        os.dup2(lock, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        run([os.fsdecode(argument) for argument in data.split(b"\0")])
        os._exit(0)
    except BaseException:  # noqa: BLE001 - into the job's output, as an interpreter of its own would
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(1)


if __name__ == "__main__":
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "wrapper.py")
    wrapper = importlib.machinery.SourceFileLoader("wrapper", beside).load_module()
    wrapper.identity(os.getpid())  # what it finds out about the machine, all wrappers know
    main(wrapper.main)
