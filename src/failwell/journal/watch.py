"""Waking those who follow a run when something was added to it, in this process or in another.

A follower puts a datagram socket into the run's `watch` folder; a writer sends one byte to each after
it has committed. Nothing is lost by a byte that does not arrive: followers also look now and then.
"""

import os
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from select import select
from typing import Self

from failwell.journal.faults import StoreFull, StoreUnavailable
from failwell.journal.folder import make_private
from failwell.runtime.suppress import suppress

WATCH = "watch"
LOOK_EVERY = 1.0
"""Seconds after which a follower looks even though nobody woke it."""
POLL_EVERY = 0.25
"""The same where no socket could be made."""
_RACY = 50_000_000
"""Nanoseconds within which two changes of a folder may carry the same time."""
_LONGEST = 100
"""Bytes of path that a socket's address can take everywhere."""


class Watch:
    """A follower's end. Use it as a context manager, and look once after entering it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / WATCH
        self._socket: socket.socket | None = None
        self._name = f"{os.getpid()}-{os.urandom(4).hex()}"

    def __enter__(self) -> Self:
        if not hasattr(socket, "AF_UNIX"):
            return self
        with suppress(OSError, StoreUnavailable, StoreFull, reason="without a socket the follower polls"):
            make_private(self._folder)
            made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            made.settimeout(0.0)
            try:
                with address(self._folder, self._name) as path:
                    made.bind(path)
                    (self._folder / self._name).chmod(0o600)
            except OSError:
                made.close()
                raise
            self._socket = made
        return self

    def __exit__(self, *_: object) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            (self._folder / self._name).unlink(missing_ok=True)

    @property
    def patience(self) -> float:
        """Seconds to wait before looking anyway."""
        return POLL_EVERY if self._socket is None else LOOK_EVERY

    def fileno(self) -> int | None:
        """What an event loop can wait on; `None` where there is only polling."""
        return None if self._socket is None else self._socket.fileno()

    def wait(self, seconds: float) -> bool:
        """Block until somebody wakes us, or `seconds` pass. Whether it was the former."""
        if self._socket is None:
            select([], [], [], seconds) if os.name == "posix" else time.sleep(seconds)  # noqa: TID251
            return False
        readable, _, _ = select([self._socket], [], [], seconds)
        if readable:
            self.drain()
        return bool(readable)

    def drain(self) -> None:
        """Take what was sent, so that the next wait waits."""
        while self._socket is not None:
            try:
                self._socket.recv(64)
            except BlockingIOError:
                return


class Bell:
    """A writer's end for one run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / WATCH
        self._path = os.fspath(self._folder)
        self._seen = -1
        self._followers: list[str] = []
        self._socket: socket.socket | None = None

    def ring(self) -> None:
        """Wake every follower. Costs one look at a folder when there is none. Never raises."""
        if not os.access(self._path, os.F_OK):
            # Nobody follows. Asking so costs a third of catching that the folder is not there.
            return
        try:
            changed = os.stat(self._path).st_mtime_ns  # noqa: PTH116  (a path object costs as much as the look)
        except OSError:
            return
        if changed != self._seen:
            self._list(changed)
        if self._followers:
            self._send()

    def close(self) -> None:
        """Give back the socket."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _list(self, changed: int) -> None:
        with suppress(OSError, reason="the folder went away with its run"):
            self._followers = os.listdir(self._path)  # noqa: PTH208  (names are what is wanted)
        # A follower that comes within the same tick of the file system's clock would not be noticed.
        self._seen = changed if time.time_ns() - changed > _RACY else -1

    def _send(self) -> None:
        if not hasattr(socket, "AF_UNIX"):
            return
        with suppress(OSError, reason="followers look by themselves now and then"):
            if self._socket is None:
                self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                self._socket.settimeout(0.0)
            for name in self._followers:
                self._wake(self._socket, name)

    def _wake(self, sender: socket.socket, name: str) -> None:
        try:
            with address(self._folder, name) as path:
                sender.sendto(b"!", path)
        except BlockingIOError:
            # Its box is full: it has been woken and has not looked yet.
            return
        except (ConnectionRefusedError, FileNotFoundError):
            # It died without cleaning up, or has just left.
            self._seen = -1
            (self._folder / name).unlink(missing_ok=True)


@contextmanager
def address(folder: Path, name: str) -> Generator[str]:
    """The address of a socket in `folder`, by a detour where the path is too long for one."""
    direct = os.fspath(folder / name)
    if len(os.fsencode(direct)) <= _LONGEST:
        yield direct
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        yield f"/proc/self/fd/{descriptor}/{name}"
    finally:
        os.close(descriptor)
