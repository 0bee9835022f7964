"""The right to write to one run: a lock of the operating system's on a file in the run's folder.

It ends with the process, however that ends, so a crash leaves no lock behind; the file stays and says
nothing by being there. What is written in it only serves the message to whoever comes second.
"""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from json import dumps, loads
from pathlib import Path
from typing import Any

from failwell.journal.faults import Locked, already_taken
from failwell.journal.folder import make_private, refused
from failwell.runtime.clock import SYSTEM_CLOCK, Clock
from failwell.runtime.suppress import suppress

LOCK = "lock"
_TRIES = 10
_PAUSE = 0.003
"""Somebody who only asks whether the lock is free holds it for microseconds. That is waited out."""


@contextmanager
def held(folder: Path, run: str, clock: Clock = SYSTEM_CLOCK) -> Generator[None]:
    """Hold the lock of the run whose folder this is, for as long as the block lasts.

    Raises:
        Locked: somebody has it; the fault says who, and since when.
        StoreUnavailable: the folder cannot be written to.
    """
    descriptor = take(folder, run, clock)
    try:
        yield
    finally:
        release(descriptor)


def take(folder: Path, run: str, clock: Clock = SYSTEM_CLOCK) -> int:
    """Take the lock and return what `release` wants back. Raises as `held` does."""
    for tried in range(_TRIES):
        descriptor = _open(folder / LOCK)
        if _try_lock(descriptor) and _is_still_there(folder, descriptor):
            _sign(descriptor, clock)
            return descriptor
        holder = _holder(descriptor)
        os.close(descriptor)
        if tried + 1 == _TRIES:
            raise already_taken(run, **holder)
        clock.sleep(_PAUSE)
    raise Locked(run=run)


def release(descriptor: int) -> None:
    """Give the lock back."""
    os.ftruncate(descriptor, 0)
    os.close(descriptor)


def is_held(folder: Path) -> bool:
    """Whether a living process holds the lock of this folder."""
    try:
        descriptor = os.open(folder / LOCK, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        # No lock file, no writer; and what cannot be opened cannot be asked.
        return False
    try:
        return not _try_lock(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def alone(file: Path, clock: Clock = SYSTEM_CLOCK) -> Generator[None]:
    """Be the only one in the block that names this file, after waiting for whoever is in it."""
    descriptor = _open(file)
    try:
        while not _try_lock(descriptor):
            clock.sleep(_PAUSE)
        yield
    finally:
        os.close(descriptor)


def _open(file: Path) -> int:
    make_private(file.parent)
    try:
        # Not inheritable, as all descriptors of Python's: a script that outlives us must not hold the lock.
        return os.open(file, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    except OSError as error:
        raise refused(error, file) from error


def _is_still_there(folder: Path, descriptor: int) -> bool:
    """Whether the file that was locked is the one a next taker would find; `prune` may have removed it."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(folder / LOCK))  # noqa: PTH116
    except FileNotFoundError:
        return False


def _sign(descriptor: int, clock: Clock) -> None:
    from socket import gethostname

    since = clock.now().isoformat(timespec="seconds")
    os.ftruncate(descriptor, 0)
    with suppress(OSError, reason="a full disk has no room for a signature, and the lock holds without one"):
        os.pwrite(descriptor, dumps({"pid": os.getpid(), "host": gethostname(), "since": since}).encode(), 0)


def _holder(descriptor: int) -> dict[str, Any]:
    try:
        signed: object = loads(os.pread(descriptor, 4096, 0))
    except (OSError, ValueError):
        # It has not signed yet, or signs this very moment.
        signed = None
    match signed:
        case {"pid": int(pid), "host": str(host), "since": str(since)}:
            return {"pid": pid, "host": host, "since": since}
        case _:
            return {"pid": None, "host": None, "since": None}


if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        try:
            # Far behind the signature, because a locked region cannot be read there.
            os.lseek(descriptor, 1 << 20, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
