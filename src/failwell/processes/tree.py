"""Finds every process that a script or a worker started, and ends it.

Three ways to find them, because each can fail: the process group (left with `setsid`), the chain of parents
(broken when a parent ends) and a mark in the environment (which a program may drop). A process
gets away only by passing all three: a session of its own, no parent left, and an environment wiped.
A guardian that is the subreaper of its descendants keeps the chain of parents whole.

Guardians and workers load this module, `guardian` and `wire` where failwell may not be installed, so these three
import the standard library alone. Where there is no `/proc`, only groups are known.
"""

import os
import signal
import time
from collections.abc import Callable, Collection, Generator, Iterable
from typing import NamedTuple

MARKER = "FAILWELL_TREE"
"""The variable that holds the marks of everything that a process belongs to, outermost first."""
_PROC = "/proc"
_DEAD = frozenset("ZXx")
PAUSE = 0.002
"""Seconds between two scans of a tree that is ending."""
_LONGEST_PAUSE = 0.05
CONFIRM = 5.0
"""Seconds within which killed processes must be gone; only a process in a hung system call takes longer."""
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class LivingProcess(NamedTuple):
    """One living process. `started` distinguishes it from a later process with the same number."""

    pid: int
    parent: int
    group: int
    session: int
    started: int


def has_proc() -> bool:
    """Whether this system shows its processes as files."""
    return os.path.exists(f"{_PROC}/self/environ")


def living() -> dict[int, LivingProcess]:
    """Every living process; a zombie is not one."""
    processes: dict[int, LivingProcess] = {}
    try:
        names = os.listdir(_PROC)
    except OSError:
        return processes
    for name in names:
        if name.isdecimal() and (process := look(int(name))) is not None:
            processes[process.pid] = process
    return processes


def look(pid: int) -> LivingProcess | None:
    """One process, if it is alive."""
    text = _read(f"{_PROC}/{pid}/stat")
    # The name stands in brackets and may hold anything, brackets too.
    fields = text[text.rfind(b")") + 1 :].split()
    if len(fields) < 20 or fields[0].decode() in _DEAD:
        return None
    return LivingProcess(pid, int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]))


def descendants(root: int) -> list[int]:
    """Every living process below `root`; empty without /proc."""
    return sorted(_below(living(), {root}) - {root})


def members_below(pid: int) -> list[int]:
    """Every living process below one that has children; empty without /proc."""
    # Not every kernel lists the children of a thread.
    return children_below(pid) or descendants(pid)


def children_below(pid: int) -> list[int]:
    """The descendants of a process, by the kernel's list of each thread's children: quicker than a scan of all processes."""
    try:
        threads = os.listdir(f"{_PROC}/{pid}/task")
    except OSError:
        return []
    children: list[int] = []
    for thread in threads:
        children += map(int, _read(f"{_PROC}/{pid}/task/{thread}/children").split())
    return children + [deeper for child in children for deeper in children_below(child)]


def cpu_seconds(pid: int | None) -> float:
    """Processor time that a process, its descendants and everything they waited for used; 0 where unknown."""
    total = 0
    for member in () if pid is None else (pid, *descendants(pid)):
        fields = _read(f"{_PROC}/{member}/stat").rpartition(b")")[2].split()
        total += sum(int(ticks) for ticks in fields[11:15])
    return total / _TICKS


def tree(
    mark: str | None, *, groups: Collection[int] = (), roots: Iterable[tuple[int, int | None]] = ()
) -> set[int]:
    """The living processes of one execution, or of a whole run if `mark` ends in a dot.

    `groups` are process groups that are surely its own; `roots` are processes, each with the time it
    started. With each process come its descendants, and with each marked one its group.
    """
    if not has_proc():
        return _groups_left(groups)
    alive = living()
    members = {pid for pid, started in roots if pid in alive and started in (None, alive[pid].started)}
    marked = set[int]() if mark is None else {pid for pid in alive if _is_marked(pid, mark)}
    own_groups = {*groups, *(alive[pid].group for pid in marked if _leads(alive[pid].group, alive, marked))}
    members |= marked
    members |= {
        pid for pid, process in alive.items() if process.group in own_groups or process.session in own_groups
    }
    return _below(alive, members) - {os.getpid(), 1}


def send(number: int, pids: Iterable[int], groups: Iterable[int] = ()) -> None:
    """Send a signal to each process and group; those that are gone or belong to another user are skipped.

    Groups are signalled as such, because a process that has a child and ends, again and again, is never
    where it was seen; the system catches it all the same.
    """
    for pid in (*(-group for group in groups), *pids):
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def sweep(
    mark: str | None,
    *,
    groups: Collection[int] = (),
    roots: Collection[tuple[int, int | None]] = (),
    grace: float = 0.0,
    patience: float = CONFIRM,
    reap: Callable[[], object] | None = None,
) -> set[int]:
    """Send SIGTERM to a whole tree, and SIGKILL to what is left after `grace` seconds.

    Returns what is left `patience` seconds later.
    """
    ending = _ending(mark, groups, roots, grace, patience, reap)
    try:
        while True:
            time.sleep(next(ending))
    except StopIteration as end:
        return end.value


async def stop(
    mark: str | None,
    *,
    groups: Collection[int] = (),
    roots: Collection[tuple[int, int | None]] = (),
    grace: float,
    reap: Callable[[], object] | None = None,
) -> set[int]:
    """`sweep` on an event loop."""
    import asyncio

    ending = _ending(mark, groups, roots, grace, CONFIRM, reap)
    while True:
        try:
            pause = next(ending)
        except StopIteration as end:
            return end.value
        await asyncio.sleep(pause)


def _ending(
    mark: str | None,
    groups: Collection[int],
    roots: Collection[tuple[int, int | None]],
    grace: float,
    patience: float,
    reap: Callable[[], object] | None,
) -> Generator[float, None, set[int]]:
    """End a tree; yields the seconds to wait until it is looked at again, and returns the processes that are left."""
    if grace > 0:
        end, pause = time.monotonic() + grace, PAUSE
        left = tree(mark, groups=groups, roots=roots)
        send(signal.SIGTERM, left, groups)
        # A stopped process cannot act on a request.
        send(signal.SIGCONT, left, groups)
        while left and time.monotonic() < end:
            yield min(pause, max(0.0, end - time.monotonic()))
            pause = min(2 * pause, _LONGEST_PAUSE)
            if reap is not None:
                reap()
            left = tree(mark, groups=groups, roots=roots)
    end, pause = time.monotonic() + patience, PAUSE
    # Also if nothing was found: one scan may miss a process that forks and ends meanwhile.
    while (left := kill(mark, groups=groups, roots=roots, reap=reap)) and time.monotonic() <= end:
        yield pause
        pause = min(2 * pause, _LONGEST_PAUSE)
    return {abs(pid) for pid in left}


def kill(
    mark: str | None,
    *,
    groups: Collection[int] = (),
    roots: Collection[tuple[int, int | None]] = (),
    reap: Callable[[], object] | None = None,
) -> set[int]:
    """Send SIGKILL to every process of a tree once. Returns those that were found; repeat until there are none.

    `reap` is called afterwards, by a process whose own children are among them.
    """
    left = tree(mark, groups=groups, roots=roots)
    send(signal.SIGKILL, left, groups)
    if reap is not None:
        reap()
    return left


def resident_mb(pid: int | str) -> float:
    """Megabytes of memory that one process holds; 0 where it is gone."""
    try:
        return int(_read(f"{_PROC}/{pid}/statm").split()[1]) * _PAGE / 1048576
    except (ValueError, IndexError):
        return 0.0


def memory_shares(pid: int) -> tuple[float, float]:
    """The resident size of a process and its part of it, in megabytes, where shared pages count in part.

    The same value twice where the kernel does not tell. It walks the pages for it: about 30 ms per gigabyte.
    """
    sizes: dict[bytes, float] = {}
    for row in _read(f"{_PROC}/{pid}/smaps_rollup").splitlines():
        name, _, rest = row.partition(b":")
        if name in (b"Rss", b"Pss"):
            sizes[name] = int(rest.split()[0]) / 1024
    if len(sizes) < 2:
        resident = resident_mb(pid)
        return resident, resident
    return sizes[b"Rss"], sizes[b"Pss"]


def _below(alive: dict[int, LivingProcess], roots: set[int]) -> set[int]:
    """`roots` with all their descendants."""
    children: dict[int, list[int]] = {}
    for process in alive.values():
        children.setdefault(process.parent, []).append(process.pid)
    members, waiting = set(roots), list(roots)
    while waiting:
        for pid in children.get(waiting.pop(), ()):
            if pid not in members:
                members.add(pid)
                waiting.append(pid)
    return members


def _groups_left(groups: Iterable[int]) -> set[int]:
    """Groups that still have a member, as the negative numbers that signals to groups take."""
    left: set[int] = set()
    for group in groups:
        try:
            os.killpg(group, 0)
        except (ProcessLookupError, PermissionError):
            # Some systems refuse a signal to a group of which only the ended leader is left.
            continue
        left.add(-group)
    return left


def _leads(group: int, alive: dict[int, LivingProcess], marked: set[int]) -> bool:
    """Whether a group belongs to marked processes: its leader is marked, or has ended."""
    return group in marked or group not in alive


def _is_marked(pid: int, mark: str) -> bool:
    environment = _read(f"{_PROC}/{pid}/environ")
    key = f"{MARKER}=".encode()
    start = 0 if environment.startswith(key) else environment.find(b"\0" + key) + 1
    if start == 0 and not environment.startswith(key):
        return False
    marks = environment[start + len(key) :].partition(b"\0")[0].decode("ascii", "replace").split(":")
    return any(name.startswith(mark) for name in marks) if mark.endswith(".") else mark in marks


def _read(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.readall() or b""
    except OSError:
        # Gone meanwhile, or another user's.
        return b""
