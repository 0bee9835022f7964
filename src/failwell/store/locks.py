"""Which process works on what: an exclusive lock of the operating system on a file in a folder.

A run's folder and the job queue's folder each have one. The system releases it when the process ends,
however that happens, so a crash leaves no lock behind and a free lock proves that nobody is at work.
The content of the file names the holder in messages and means nothing else.
"""

import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from json import dumps, loads
from pathlib import Path
from typing import NamedTuple, Self

from failwell.calls.clock import SYSTEM_CLOCK, Clock
from failwell.errors.axes import ActionKind
from failwell.errors.facts import UserAction
from failwell.errors.fault import Fault
from failwell.store.faults import Locked, StoreUnavailable, os_fault
from failwell.store.folder import make_private, store_option

LOCK = "lock"
_ATTEMPTS = 10
_PAUSE = 0.003
"""`holder_of` holds a free lock for some microseconds. Acquiring waits that out."""


class Holder(NamedTuple):
    """The process that holds a lock, as far as the lock file says."""

    pid: int | None = None
    host: str | None = None
    since: str | None = None


def _not_own(holder: Holder) -> Fault:
    return Fault(kind="internal.bug", message=f"process {holder.pid} holds a lock that is this process's own")


class ProcessLock:
    """The exclusive lock on a folder. Use it as a context manager, or `acquire` and `release` it."""

    def __init__(
        self, folder: Path, refusal: Callable[[Holder], Fault] = _not_own, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        """Nothing is locked yet.

        Args:
            folder: The folder to lock. It is created when the lock is acquired.
            refusal: The fault to raise when another process, or this one, holds the lock. By default a bug: no other
                process knows the folder.
            clock: Where the pauses between attempts are spent.
        """
        self._folder = folder
        self._refusal = refusal
        self._clock = clock
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock.

        Raises:
            Fault: it is held; the fault is what `refusal` returns.
            StoreUnavailable: the folder cannot be written to.
        """
        holder = Holder()
        for attempt in range(_ATTEMPTS):
            if attempt:
                self._clock.sleep(_PAUSE)
            descriptor = _open(self._folder / LOCK)
            if _try_lock(descriptor) and _is_in_place(self._folder / LOCK, descriptor):
                _sign(descriptor, self._clock)
                self._descriptor = descriptor
                return
            holder = _read_holder(descriptor)
            os.close(descriptor)
        raise self._refusal(holder)

    def release(self) -> None:
        """Give the lock back."""
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def holder_of(folder: Path) -> Holder | None:
    """The living process that holds the lock on this folder; `None` if the lock is free."""
    try:
        descriptor = _open_existing(folder / LOCK)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        # It exists and cannot be tested. Only a free lock proves that nobody is at work.
        return Holder()
    try:
        return None if _try_lock(descriptor) else _read_holder(descriptor)
    finally:
        os.close(descriptor)


def is_held(folder: Path) -> bool:
    """Whether a living process holds the lock on this folder."""
    return holder_of(folder) is not None


def run_lock(folder: Path, run: str) -> ProcessLock:
    """The lock that a process holds while it writes to a run."""

    def refusal(holder: Holder) -> Locked:
        return run_locked(run, holder, store_option(folder.parent.parent))

    return ProcessLock(folder, refusal)


def run_locked(run: str, holder: Holder, store: str = "") -> Locked:
    """The fault for a run that another process is writing to; `store` is the option of the suggested command."""
    watch = f"watch it with `failwell runs tail {run}{store}`"
    advice = (
        f"wait until it ends, or {watch}"
        if holder.pid is None
        else f"{watch}, or stop it with `failwell stop {run}{store}`"
    )
    action = UserAction(ActionKind.WAIT_AND_RETRY, advice)
    return Locked(run=run, pid=holder.pid, host=holder.host, since=holder.since, user_action=action)


@contextmanager
def exclusive(file: Path, clock: Clock = SYSTEM_CLOCK) -> Generator[None]:
    """Run the block in one process at a time, for all blocks that name this file. Waits for its turn."""
    descriptor = _open(file)
    try:
        while not _try_lock(descriptor):
            clock.sleep(_PAUSE)
        yield
    finally:
        os.close(descriptor)


_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


def _open(file: Path) -> int:
    """The descriptor of a file that is created with its folder, also if somebody deletes the folder meanwhile."""
    for _ in range(_ATTEMPTS):
        try:
            return _open_once(file)
        except StoreUnavailable as fault:
            if not isinstance(fault.__cause__, FileNotFoundError):
                raise
    return _open_once(file)


def _open_once(file: Path) -> int:
    make_private(file.parent)
    try:
        # Not inheritable, like every descriptor that Python opens: a script that outlives this process
        # must not hold the lock.
        return os.open(file, os.O_RDWR | os.O_CREAT | _FLAGS, 0o600)
    except OSError as error:
        raise os_fault(error, file) from error


def _open_existing(file: Path) -> int:
    try:
        return os.open(file, os.O_RDWR | _FLAGS)
    except FileNotFoundError:
        raise
    except OSError:
        # A read-only file can be locked too, where the file system does not ask for more.
        return os.open(file, os.O_RDONLY | _FLAGS)


def _is_in_place(file: Path, descriptor: int) -> bool:
    """Whether the next process would lock the same file; `prune` may have deleted the one that was opened."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(file))  # noqa: PTH116
    except FileNotFoundError:
        return False


def _sign(descriptor: int, clock: Clock) -> None:
    from socket import gethostname

    since = clock.now().isoformat(timespec="seconds")
    os.ftruncate(descriptor, 0)
    holder = dumps({"pid": os.getpid(), "host": gethostname(), "since": since})
    try:
        os.pwrite(descriptor, holder.encode(), 0)
    except OSError:
        # The lock is valid without the holder's name, for which a full disk has no room.
        return


def _read_holder(descriptor: int) -> Holder:
    try:
        content: object = loads(os.pread(descriptor, 4096, 0))
    except (OSError, ValueError):
        # The holder has not written its name yet.
        return Holder()
    match content:
        case {"pid": int(pid), "host": str(host), "since": str(since)}:
            return Holder(pid, host, since)
        case _:
            return Holder()


if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        try:
            # Far behind the content, because a locked region cannot be read on Windows.
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
