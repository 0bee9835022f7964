"""Finds every process that a script or a worker started, however far it has run away, and ends it.

Three nets, because each has a hole: the process group (left with `setsid`), the chain of parents
(broken when a parent ends) and a mark in the environment (which a program may drop). A process
gets away only by passing all three: a session of its own, no parent left, and an environment wiped.
A guardian that is the subreaper of its descendants keeps the chain of parents whole.

This file is also run by itself when the host of a run was killed: `tree.py MARK TABLE` ends what is left;
with a further argument it first waits for the host's death, which it sees at the end of its stdin.
It therefore imports the standard library alone, and so do the other modules that a worker loads from
this folder: `guardian` and `wire`. Where there is no `/proc`, only groups are known.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

MARKER = "FAILWELL_TREE"
"""The variable that holds the marks of everything that a process belongs to, outermost first."""
_PROC = "/proc"
_DEAD = frozenset("ZXx")
SLOT = 32
"""Bytes of one entry in the table of running scripts."""
_PAUSE = 0.002
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class Seen(NamedTuple):
    """One living process. `started` tells it from a later one with the same number."""

    pid: int
    parent: int
    group: int
    session: int
    started: int


def has_proc() -> bool:
    """Whether this system shows its processes as files."""
    return os.path.exists(f"{_PROC}/self/environ")


def living() -> dict[int, Seen]:
    """Every process that is alive; one that has ended but was not waited for is not."""
    found: dict[int, Seen] = {}
    try:
        names = os.listdir(_PROC)
    except OSError:
        return found
    for name in names:
        if name.isdecimal() and (seen := look(int(name))) is not None:
            found[seen.pid] = seen
    return found


def look(pid: int) -> Seen | None:
    """One process, if it is alive."""
    text = _read(f"{_PROC}/{pid}/stat")
    # The name stands in brackets and may hold anything, brackets too.
    fields = text[text.rfind(b")") + 1 :].split()
    if len(fields) < 20 or fields[0].decode() in _DEAD:
        return None
    return Seen(pid, int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]))


def descendants(root: int) -> list[int]:
    """Every living process below `root`; empty where the system does not tell."""
    return sorted(_below(living(), {root}) - {root})


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
    alive = living()
    found = {pid for pid, started in roots if pid in alive and started in (None, alive[pid].started)}
    marked = set[int]() if mark is None else {pid for pid in alive if _is_marked(pid, mark)}
    own = {*groups, *(alive[pid].group for pid in marked if _leads(alive[pid].group, alive, marked))}
    found |= marked
    found |= {pid for pid, seen in alive.items() if seen.group in own or seen.session in own}
    return _below(alive, found) - {os.getpid(), 1}


def send(number: int, pids: Iterable[int], groups: Iterable[int] = ()) -> None:
    """Send a signal to each; one that is gone or not ours to signal is passed over.

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
    roots: Iterable[tuple[int, int | None]] = (),
    patience: float,
    reap: Callable[[], object] | None = None,
) -> set[int]:
    """Kill a whole tree at once and make sure; what is left after `patience` seconds comes back.

    `reap` is called after each round, by a process whose own children are among them.
    """
    held = tuple(roots)
    ends = time.monotonic() + patience
    while True:
        left = tree(mark, groups=groups, roots=held)
        send(signal.SIGKILL, left, groups)
        if reap is not None:
            reap()
        if not left or time.monotonic() > ends:
            return left
        time.sleep(_PAUSE)


def read_table(path: str) -> list[tuple[int, int | None]]:
    """The processes that a host had written down: number, and the time it started where that matters."""
    entries: list[tuple[int, int | None]] = []
    raw = _read(path)
    for start in range(0, len(raw), SLOT):
        words = raw[start : start + SLOT].strip(b"\0\n ").split()
        if words:
            entries.append((int(words[0]), int(words[1]) if len(words) > 1 else None))
    return entries


def resident_mb(pid: int | str) -> float:
    """Megabytes of memory that one process holds; 0 where it is gone."""
    try:
        return int(_read(f"{_PROC}/{pid}/statm").split()[1]) * _PAGE / 1048576
    except (ValueError, IndexError):
        return 0.0


def _below(alive: dict[int, Seen], roots: set[int]) -> set[int]:
    """`roots` with all their descendants."""
    children: dict[int, list[int]] = {}
    for seen in alive.values():
        children.setdefault(seen.parent, []).append(seen.pid)
    found, waiting = set(roots), list(roots)
    while waiting:
        for pid in children.get(waiting.pop(), ()):
            if pid not in found:
                found.add(pid)
                waiting.append(pid)
    return found


def _leads(group: int, alive: dict[int, Seen], marked: set[int]) -> bool:
    """Whether a group belongs to marked processes: its leader is marked, or has ended."""
    return group in marked or group not in alive


def _is_marked(pid: int, mark: str) -> bool:
    environment = _read(f"{_PROC}/{pid}/environ")
    key = f"{MARKER}=".encode()
    start = 0 if environment.startswith(key) else environment.find(b"\0" + key) + 1
    if start == 0 and not environment.startswith(key):
        return False
    marks = environment[start + len(key) :].partition(b"\0")[0].decode("ascii", "replace").split(":")
    return any(one.startswith(mark) for one in marks) if mark.endswith(".") else mark in marks


def _read(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.readall() or b""
    except OSError:
        # Gone meanwhile, or another user's.
        return b""


def _main(mark: str, table: str, *waiting: str) -> None:
    if waiting:
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        if os.read(0, 1):
            return
    roots = read_table(table)
    # Numbers without a time are leaders of groups that were running when the host died.
    sweep(mark, groups=[pid for pid, started in roots if started is None], roots=roots, patience=60.0)
    from shutil import rmtree

    # The folder of the table belongs to the scripts alone, and none of them is left to use it.
    rmtree(os.path.dirname(table), ignore_errors=True)


if __name__ == "__main__":
    _main(*sys.argv[1:])
