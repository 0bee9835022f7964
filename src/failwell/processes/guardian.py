"""The worker's parent: a tiny process that outlives it by a moment and leaves nothing behind.

It adopts whatever the worker's descendants orphan (it is their subreaper), tells the host how the
worker ended, and ends every descendant when the worker is gone, when the host asks, or when the host
is gone. It does one thing at a time and calls nothing that could hang. It runs in the interpreter of the
capability, which may have no `failwell`: hence the relative imports and the standard library alone.
"""

import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable

from . import tree
from .wire import Line

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_NOT_FOR_US = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LONGEST_REAPING = 5.0
_LOOK_UP = 1000
"""Milliseconds between two looks whether the host still lives, should its end not be seen at once."""
_LOOKS = 4
"""How often a worker must have been seen stopped before it is told."""
_LOOK_DOWN = 50
"""The same for the worker, where the system cannot tell of its end."""


def guard(line_fd: int, leash_fd: int, work: Callable[[Line], int]) -> None:
    """Fork the worker, which does `work`, and watch over it; returns in neither process."""
    leash = socket.socket(fileno=leash_fd)
    os.set_inheritable(leash_fd, False)  # noqa: FBT003  (its only way)
    os.set_inheritable(line_fd, False)  # noqa: FBT003
    prctl = _prctl()
    if prctl is not None:
        prctl(_PR_SET_CHILD_SUBREAPER, 1)
    guardian = os.getpid()
    # A service manager signals every process that it sees. What these should end is ended by the host, and
    # a guardian that left first would take a worker along that may still finish.
    before = {number: signal.signal(number, signal.SIG_IGN) for number in _NOT_FOR_US}
    pid = os.fork()
    if pid == 0:
        for number, deed in before.items():
            signal.signal(number, deed)
        leash.close()
        os.setsid()
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != guardian:
                os._exit(1)
        _die_before_the_host()
        sys.exit(work(Line(socket.socket(fileno=line_fd))))
    os.close(line_fd)
    # The worker's output is read until its last holder is gone, and that must not be the guardian.
    silence = os.open(os.devnull, os.O_RDWR)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    _watch(pid, Line(leash))


def _watch(pid: int, leash: Line) -> None:
    leash.send({"type": "forked", "pid": pid})
    try:
        gone = os.pidfd_open(pid)
    except (AttributeError, OSError):
        gone = None
    poll = select.poll()
    poll.register(leash, select.POLLIN)
    if gone is not None:
        poll.register(gone, select.POLLIN)
    host, still = os.getppid(), Still()
    while True:
        pause = min(_LOOK_UP if gone is not None else _LOOK_DOWN, still.pause)
        ready = [fd for fd, _ in poll.poll(pause)]
        if os.getppid() != host:
            # It is gone, and something that it forked keeps its end of the leash open.
            _finish(pid, leash)
        found, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
        if found and not still.changed(status):
            _tell(leash, {"type": "exit", "code": os.waitstatus_to_exitcode(status)})
            _clear(pid)
            os._exit(0)
        if still.is_too_long():
            _tell(leash, {"type": "still"})
        _reap_adopted(pid)
        if leash.fileno() in ready:
            _obey(pid, leash, still)


class Still:
    """Whether a signal has stopped the worker, and for how long.

    The kernel tells its parent of every stop and every continuation, and of no stop by a debugger. Silence alone
    would prove nothing: the host may have been held up. So may we, or the machine asleep; hence the looks.
    """

    def __init__(self) -> None:
        self._since: float | None = None
        self._looks = 0
        self.patience: float | None = None
        """Seconds that it may last; no limit until the host sets one."""

    @property
    def pause(self) -> float:
        """Milliseconds until the next look, at most."""
        return _LOOK_UP if self.patience is None else max(1.0, self.patience * 1000 / _LOOKS)

    def changed(self, status: int) -> bool:
        """Note a stop or a continuation; `False` where `status` tells of an end."""
        if not os.WIFSTOPPED(status) and not os.WIFCONTINUED(status):
            return False
        self._since = time.monotonic() if os.WIFSTOPPED(status) else None
        self._looks = 0
        return True

    def is_too_long(self) -> bool:
        """Look once more; whether it has been stopped for too long, which is said once for each stop."""
        if self._since is None or self.patience is None:
            return False
        self._looks += 1
        if self._looks < _LOOKS or time.monotonic() - self._since < self.patience:
            return False
        self._since = None
        return True


def _obey(pid: int, leash: Line, still: Still) -> None:
    """Do everything that the host has ordered. Orders may come together, and waking is once for all of them."""
    is_more = True
    while is_more:
        order = leash.receive()
        if order is None or order["type"] == "kill":
            _finish(pid, leash)
        elif order["type"] == "signal":
            tree.send(order["number"], (), [pid])
        elif order["type"] == "watch":
            still.patience = order["stopped"]
        is_more = leash.has_more


def _finish(pid: int, leash: Line) -> None:
    """End the worker and everything below this process, and say how the worker ended."""
    try:
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        _tell(leash, {"type": "exit", "code": os.waitstatus_to_exitcode(status)})
    except (ChildProcessError, ProcessLookupError):
        pass
    _clear(pid)
    os._exit(0)


def _tell(leash: Line, frame: dict[str, object]) -> None:
    try:
        leash.send(frame)
    except OSError:
        # The host is gone. There is nobody to tell, and the clearing goes on.
        pass


def _clear(pid: int) -> None:
    """Kill and reap whatever is left, also what began a session of its own or was orphaned on purpose."""
    own = tree.look(os.getpid())
    roots = () if own is None else ((own.pid, own.started),)
    # A subreaper's descendants are all below it, and need no mark to be found by.
    mark = None if _prctl() is not None else os.environ.get(tree.MARKER, "").rpartition(":")[2] or None
    tree.sweep(mark, groups=[pid], roots=roots, patience=_LONGEST_REAPING, reap=_reap_all)


def _reap_all() -> None:
    while True:
        try:
            found, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not found:
            return


def _reap_adopted(worker: int) -> None:
    """Take the exit status of orphans that ended by themselves, so that none stays a zombie."""
    while True:
        try:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if found is None or found.si_pid in (0, worker):
            return
        os.waitpid(found.si_pid, os.WNOHANG)


def _prctl():  # noqa: ANN202  (a C function, or nothing where the system has none)
    if not sys.platform.startswith("linux"):
        return None
    try:
        import ctypes

        return ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):
        return None


def _die_before_the_host() -> None:
    """When the machine's memory is used up, the kernel should take the worker and not the host."""
    try:
        with open("/proc/self/oom_score_adj", "r+", encoding="ascii") as score:
            held = int(score.read())
            score.seek(0)
            score.write(str(min(1000, held + 300)))
    except (OSError, ValueError):
        pass
