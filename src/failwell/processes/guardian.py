"""The guardian: a small process that ends a tree of processes when it should end, or when its host is gone.

It has a session of its own, ignores the signals that a terminal or a service manager sends to every process, and
takes orders through a pipe or a socket from the host. The end of that connection means that the host is gone.

`guard_worker`   is the parent of one worker, forked from the worker's own interpreter. As the subreaper of the
                 worker's descendants it inherits whatever they orphan. It reports how the worker ended.
`guard_scripts`  watches over all scripts of one host. They are the host's children, so that starting one costs
                 nothing more; the guardian finds them by their numbers and by the mark in their environment.

Both run where failwell may not be installed: hence the relative imports and the standard library alone. A guardian
does one thing at a time and calls nothing that could hang.
"""

import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import Any, NoReturn

from . import tree

# host → guardian, one order a line:
#     watch PID [STARTED]   end this process too; without a start time it leads a group
#     remove PATH           remove this folder, written in hexadecimal, once everything has ended
#     forget PID|PATH       take a `watch` or a `remove` back
#     kill                  end the worker and everything below it now
#     signal NUMBER         send a signal to the worker's group
#     stopped SECONDS       report a worker that a signal has stopped for so long
#     limit MEGABYTES       end the worker once it uses so much memory, with everything below it; 0 for no limit
#     end MARK GRACE [PID:STARTED]…   end what is left of a run; with it comes the pipe for the numbers of what does not end
# guardian → host:
#     forked PID            the worker's number
#     stopped               the worker has been stopped for too long
#     over MEGABYTES        the worker uses so much memory, which is more than it may, and is ended
#     exit CODE             how the worker ended; negative for a signal
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
"""Signals that a terminal or a service manager sends to every process."""
_PATIENCE = 60.0
"""Seconds within which killed processes have to be gone."""
_HOST_CHECK = 1000
"""Milliseconds between two checks whether the host still lives, should the end of the connection not be seen."""
_WORKER_CHECK = 50
"""The same for the worker, where the system cannot tell of its end."""
_LOOKS = 4
"""How often a worker must have been seen stopped before it is reported."""


def guard_worker(line_fd: int, leash_fd: int, work: Callable[[int], int]) -> NoReturn:
    """Fork the worker, which does `work` with its end of the line, and watch over it; returns in neither process."""
    os.set_inheritable(leash_fd, False)  # noqa: FBT003  (its only way)
    os.set_inheritable(line_fd, False)  # noqa: FBT003
    prctl = _prctl()
    if prctl is not None:
        prctl(_PR_SET_CHILD_SUBREAPER, 1)
    guardian = os.getpid()
    handlers = _ignore_signals()
    pid = os.fork()
    if pid == 0:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        os.close(leash_fd)
        os.setsid()
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != guardian:
                os._exit(1)
        _die_before_the_host()
        sys.exit(work(line_fd))
    os.close(line_fd)
    # The worker's output is read until its last writer is gone, and that must not be the guardian.
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    # A subreaper's descendants are all below it, and need no mark to be found by.
    mark = None if prctl is not None else os.environ.get(tree.MARKER, "").rpartition(":")[2] or None
    _Guardian(leash_fd, os.getppid(), mark, pid).watch()


def guard_scripts(mark: str, host: str) -> NoReturn:
    """Watch over the scripts of process `host`, which carry a mark that begins with `mark`; orders come from stdin."""
    _ignore_signals()
    _Guardian(0, int(host), mark, None).watch()


class _Guardian:
    """One guardian. `worker` is the child whose end is reported, if there is one."""

    def __init__(self, leash: int, host: int, mark: str | None, worker: int | None) -> None:
        self._leash, self._host, self._mark, self._worker = leash, host, mark, worker
        self._orders = socket.socket(fileno=leash)
        self._pipes: list[int] = []
        """Those that came with orders that are not carried out yet."""
        self._received = b""
        self._processes: dict[str, int | None] = {}
        """The number of each process that is watched, with its start time."""
        self._folders: set[str] = set()
        self._stop = StopWatch()
        self._memory = MemoryWatch()

    def watch(self) -> NoReturn:
        """Wait for the worker's end, for orders and for the host's end."""
        poll = select.poll()
        poll.register(self._leash, select.POLLIN)
        check = _HOST_CHECK
        if self._worker is not None:
            self._report(f"forked {self._worker}")
            try:
                poll.register(os.pidfd_open(self._worker), select.POLLIN)
            except (AttributeError, OSError):
                check = _WORKER_CHECK
        while True:
            ready = [fd for fd, _ in poll.poll(min(check, self._stop.pause, self._memory.pause))]
            if self._worker is not None:
                self._check_worker(self._worker)
                self._check_memory()
            if self._leash in ready:
                self._obey()
            elif os.getppid() != self._host:
                # The host is gone, and something that it forked keeps its end of the connection open. What it
                # had ordered is carried out first: it may have died while this process was starting.
                self._finish()
            elif self._worker is None:
                _reap_all()

    def _check_worker(self, worker: int) -> None:
        pid, status = os.waitpid(worker, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
        if pid and not self._stop.note(status):
            self._report(f"exit {os.waitstatus_to_exitcode(status)}")
            self._end_all()
        if self._stop.is_too_long():
            self._report("stopped")
        _reap_orphans(worker)

    def _check_memory(self) -> None:
        if self._memory.limit is None or not self._memory.is_over(tree.members_below(os.getpid())):
            return
        # All at once: while one process is waited for, another may go on growing.
        tree.send(signal.SIGKILL, tree.members_below(os.getpid()))
        self._report(f"over {self._memory.used:.1f}")
        self._finish()

    def _obey(self) -> None:
        """Carry out the orders that have arrived; several may come together."""
        try:
            data, pipes, _, _ = socket.recv_fds(self._orders, 65_536, 1)
            self._pipes += pipes
        except OSError:
            data = b""
        if not data:
            self._finish()
        *lines, self._received = (self._received + data).split(b"\n")
        for line in lines:
            order, *words = line.decode("ascii").split()
            if order == "watch":
                self._processes[words[0]] = int(words[1]) if len(words) > 1 else None
            elif order == "remove":
                self._folders.add(words[0])
            elif order == "forget":
                self._processes.pop(words[0], None)
                self._folders.discard(words[0])
            elif order == "kill":
                self._finish()
            elif order == "signal" and self._worker is not None:
                tree.send(int(words[0]), (), [self._worker])
            elif order == "stopped":
                self._stop.limit = float(words[0])
            elif order == "limit":
                self._memory.set(float(words[0]) or None)
            elif order == "end":
                self._end_run(words, self._pipes.pop(0))

    def _end_run(self, words: list[str], pipe: int) -> None:
        """End the processes of one run, in a process of its own: it may have to wait for them."""
        if os.fork():
            os.close(pipe)
            return
        mark, grace, *left = words
        roots = [(int(pid), int(started) or None) for pid, _, started in (one.partition(":") for one in left)]
        survivors = tree.sweep(mark, roots=roots, grace=float(grace))
        os.write(pipe, f"{' '.join(map(str, sorted(survivors)))}\n".encode())
        os._exit(0)

    def _finish(self) -> NoReturn:
        """End the worker, say how it ended, and end everything else."""
        if self._worker is not None:
            try:
                os.kill(self._worker, signal.SIGKILL)
                _, status = os.waitpid(self._worker, 0)
                self._report(f"exit {os.waitstatus_to_exitcode(status)}")
            except (ChildProcessError, ProcessLookupError):
                pass
        self._end_all()

    def _end_all(self) -> NoReturn:
        """Kill and reap what is left, also what began a session of its own or was orphaned on purpose."""
        if self._worker is not None or self._processes or self._folders:
            itself = tree.look(os.getpid())
            roots = [(int(pid), started) for pid, started in self._processes.items()]
            # A process without a start time leads a group that was running when the host died.
            groups = [pid for pid, started in roots if started is None]
            if itself is not None:
                roots.append((itself.pid, itself.started))
            if self._worker is not None:
                groups.append(self._worker)
            tree.sweep(self._mark, groups=groups, roots=roots, patience=_PATIENCE, reap=_reap_all)
        if self._folders:
            from shutil import rmtree

            for folder in self._folders:
                rmtree(bytes.fromhex(folder), ignore_errors=True)
        os._exit(0)

    def _report(self, text: str) -> None:
        try:
            os.write(self._leash, f"{text}\n".encode())
        except OSError:
            # The host is gone, and what is below this process must end all the same.
            pass


class StopWatch:
    """Whether a signal has stopped the process, and for how long.

    The kernel tells its parent of every stop and every continuation, and of no stop by a debugger. Silence alone
    would prove nothing: the host may have been held up. So may we, or the machine asleep; hence the looks.
    """

    def __init__(self) -> None:
        self._since: float | None = None
        self._looks = 0
        self.limit: float | None = None
        """Seconds that a stop may last; no limit until the host sets one."""

    @property
    def pause(self) -> float:
        """Milliseconds until the next look, at most."""
        return _HOST_CHECK if self.limit is None else max(1.0, self.limit * 1000 / _LOOKS)

    def note(self, status: int) -> bool:
        """Note a stop or a continuation; `False` where `status` tells of an end."""
        if not os.WIFSTOPPED(status) and not os.WIFCONTINUED(status):
            return False
        self._since = time.monotonic() if os.WIFSTOPPED(status) else None
        self._looks = 0
        return True

    def is_too_long(self) -> bool:
        """Look once more; whether it has been stopped for too long, which is reported once for each stop."""
        if self._since is None or self.limit is None:
            return False
        self._looks += 1
        if self._looks < _LOOKS or time.monotonic() - self._since < self.limit:
            return False
        self._since = None
        return True


_FASTEST = 4.0
"""Megabytes per millisecond that a process may grow by: no memory is written much faster."""
_SLACK = 1.05
"""By how much of the limit it may be crossed before it is seen, if memory grows that fast."""
_SHORTEST, _LONGEST = 2.0, 250.0
"""Milliseconds between two looks."""
_REST = 2.0
"""The pause after an exact measurement, as a multiple of its duration."""


def milliseconds_to_limit(limit: float, used: float) -> float:
    """How long processes that use so many megabytes need at least to cross their limit."""
    return min(_LONGEST, max(_SHORTEST, (limit * _SLACK - used) / _FASTEST))


class MemoryWatch:
    """Whether processes use more memory than they may. The nearer to the limit, the more often they are looked at.

    Their resident sizes are added up. What they share is counted once, but it takes the kernel long to tell how much
    that is: it is only measured when it decides, and taken to be the same until the processes are others.
    """

    def __init__(self) -> None:
        self.limit: float | None = None
        """Megabytes; no limit until the host sets one."""
        self.used = 0.0
        self._pids: list[int] = []
        self._shared = 0.0
        """What the sum of the sizes counts too often."""
        self._exact_cost = 0.0
        """Milliseconds that the exact measurement of the last look took; 0 if none was needed."""

    def set(self, limit: float | None) -> None:
        """Set another limit, and look at once."""
        self.limit, self.used, self._exact_cost = limit, limit or 0.0, 0.0

    @property
    def pause(self) -> float:
        """Milliseconds until the next look, at most."""
        if self.limit is None:
            return _HOST_CHECK
        return min(_LONGEST, max(milliseconds_to_limit(self.limit, self.used), self._exact_cost * _REST))

    def is_over(self, pids: list[int]) -> bool:
        """Look once more."""
        assert self.limit is not None
        if pids != self._pids:
            self._pids, self._shared = pids, 0.0
        sizes = [tree.resident_mb(pid) for pid in pids]
        self.used, self._exact_cost = sum(sizes) - self._shared, 0.0
        if self.used >= self.limit and len(pids) > 1 and max(sizes) < self.limit:
            began = time.monotonic()
            shares = [tree.memory_shares(pid) for pid in pids]
            self.used = sum(part for _, part in shares)
            self._shared = sum(whole for whole, _ in shares) - self.used
            self._exact_cost = (time.monotonic() - began) * 1000
        return self.used >= self.limit


def _ignore_signals() -> dict[signal.Signals, Any]:
    """Ignore what a service manager sends to every process; returns the handlers before.

    What these signals should end is ended by the host, and a guardian that left first would take a worker along
    that may still finish.
    """
    return {number: signal.signal(number, signal.SIG_IGN) for number in IGNORED}


def _reap_all() -> None:
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return


def _reap_orphans(worker: int) -> None:
    """Take the exit status of orphans that ended by themselves, so that none stays a zombie."""
    while True:
        try:
            child = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if child is None or child.si_pid in (0, worker):
            return
        os.waitpid(child.si_pid, os.WNOHANG)


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
        with open("/proc/self/oom_score_adj", "r+", encoding="ascii") as file:
            score = int(file.read())
            file.seek(0)
            file.write(str(min(1000, score + 300)))
    except (OSError, ValueError):
        pass
