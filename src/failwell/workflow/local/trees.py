"""Finds every process that a script started, however far it has run away, and ends it.

Three nets, because each has a hole: the process group (left with `setsid`), the chain of parents
(broken when a parent ends) and a mark in the environment (which a program may drop). A process
gets away only by passing all three: a session of its own, no parent left, and an environment wiped.

This file is also run by itself when its host was killed: `trees.py MARK TABLE` ends what is left;
with a further word it first waits for the host's death, which it sees at the end of its stdin.
It therefore imports the standard library alone. Where there is no `/proc`, only groups are known.
"""

import os
import signal
import sys
import time
from collections.abc import Collection, Iterable
from typing import NamedTuple

MARKER = "FAILWELL_TREE"
"""The variable that holds the marks of all executions that a process belongs to, outermost first."""
_PROC = "/proc"
_DEAD = frozenset("ZXx")
SLOT = 32
"""Bytes of one entry in the table of running scripts."""


class Seen(NamedTuple):
    """One living process. `started` tells it from a later one with the same number."""

    pid: int
    parent: int
    group: int
    session: int
    started: int


def has_proc() -> bool:
    """Whether this system shows its processes as files."""
    return os.path.exists(f"{_PROC}/self/environ")  # noqa: PTH110  (`pathlib` is too slow to load here)


def living() -> dict[int, Seen]:
    """Every process that is alive; one that has ended but was not waited for is not."""
    found: dict[int, Seen] = {}
    for name in os.listdir(_PROC):  # noqa: PTH208  (as above)
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


def tree(
    mark: str, *, groups: Collection[int] = (), roots: Iterable[tuple[int, int | None]] = ()
) -> set[int]:
    """The living processes of one execution, or of a whole run if `mark` ends in a dot.

    `groups` are process groups that are surely its own; `roots` are processes, each with the time it
    started. With each process come its descendants, and with each marked one its group.
    """
    alive = living()
    found = {pid for pid, started in roots if pid in alive and started in (None, alive[pid].started)}
    marked = {pid for pid in alive if _is_marked(pid, mark)}
    own = {*groups, *(alive[pid].group for pid in marked if _leads(alive[pid].group, alive, marked))}
    found |= marked
    found |= {pid for pid, seen in alive.items() if seen.group in own or seen.session in own}
    below: dict[int, list[int]] = {}
    for seen in alive.values():
        below.setdefault(seen.parent, []).append(seen.pid)
    waiting = list(found)
    while waiting:
        for pid in below.get(waiting.pop(), ()):
            if pid not in found:
                found.add(pid)
                waiting.append(pid)
    return found - {os.getpid(), 1}


def send(number: int, pids: Iterable[int], groups: Iterable[int] = ()) -> None:
    """Send a signal to each; one that is gone or not ours to signal is passed over.

    Groups are signalled as such, because one who has a child and ends, again and again, is never
    where he was seen; the system catches him all the same.
    """
    for pid in (*(-group for group in groups), *pids):
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def sweep(mark: str, roots: Iterable[tuple[int, int | None]], *, patience: float) -> set[int]:
    """End a whole tree at once and make sure; what is left after `patience` seconds comes back."""
    held = tuple(roots)
    groups = [pid for pid, started in held if started is None]
    ends = time.monotonic() + patience
    while left := tree(mark, groups=groups, roots=held):
        send(signal.SIGKILL, left, groups)
        if time.monotonic() > ends:
            return left
        time.sleep(0.005)  # noqa: TID251  (the host is gone or ends with this; nobody else waits)
    return set()


def read_table(path: str) -> list[tuple[int, int | None]]:
    """The processes that a host had written down: number, and the time it started where that matters."""
    entries: list[tuple[int, int | None]] = []
    raw = _read(path)
    for start in range(0, len(raw), SLOT):
        words = raw[start : start + SLOT].strip(b"\0\n ").split()
        if words:
            entries.append((int(words[0]), int(words[1]) if len(words) > 1 else None))
    return entries


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
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123  (as above)
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
    if has_proc():
        sweep(mark, roots, patience=60.0)
    else:
        send(signal.SIGKILL, (), [pid for pid, _ in roots])
    from shutil import rmtree

    # The folder of the table belongs to the scripts alone, and none of them is left to use it.
    rmtree(os.path.dirname(table), ignore_errors=True)  # noqa: PTH120  (as above)


if __name__ == "__main__":
    _main(*sys.argv[1:])
