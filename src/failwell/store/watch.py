"""Waking processes that follow a folder when something was added, from this process or another.

A follower binds a datagram socket in the folder's `watch` subfolder; a writer sends one byte to each
after it has committed. A byte that is lost costs only time: followers also poll.
"""

import os
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from select import select
from typing import Self

from failwell.calls.suppress import suppress
from failwell.store.faults import StoreFull, StoreUnavailable
from failwell.store.folder import make_private

WATCH = "watch"
POLL_WITH_SOCKET = 1.0
"""Seconds after which a follower looks although nobody woke it."""
POLL_WITHOUT_SOCKET = 0.25
_CLOCK_TICK = 50_000_000
"""Nanoseconds within which two changes of a folder may have the same time."""
_LONGEST_ADDRESS = 100
"""Bytes of path that a socket address can hold on every system."""


class Watch:
    """The end of a process that follows a folder. Use it as a context manager, and read once after entering it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / WATCH
        self._socket: socket.socket | None = None
        self._name = f"{os.getpid()}-{os.urandom(4).hex()}"

    def __enter__(self) -> Self:
        if not hasattr(socket, "AF_UNIX"):
            return self
        try:
            make_private(self._folder)
            self._socket = bound_socket(self._folder, self._name, socket.SOCK_DGRAM)
        except (OSError, StoreUnavailable, StoreFull):
            # Without a socket the follower polls.
            return self
        return self

    def __exit__(self, *_: object) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            (self._folder / self._name).unlink(missing_ok=True)

    @property
    def interval(self) -> float:
        """Seconds to wait before reading anyway."""
        return POLL_WITHOUT_SOCKET if self._socket is None else POLL_WITH_SOCKET

    def fileno(self) -> int | None:
        """What an event loop can wait on; `None` where the follower has to poll."""
        return None if self._socket is None else self._socket.fileno()

    def wait(self, seconds: float) -> bool:
        """Block until a writer wakes this follower, or `seconds` pass. Whether it was the former."""
        if self._socket is None:
            select([], [], [], seconds) if os.name == "posix" else time.sleep(seconds)  # noqa: TID251
            return False
        readable, _, _ = select([self._socket], [], [], seconds)
        if readable:
            self.drain()
        return bool(readable)

    def wake(self) -> None:
        """End the `wait` of another thread, as a writer would."""
        if self._socket is None:
            return
        with (
            suppress(OSError, reason="a follower also wakes by itself"),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender,
            socket_address(self._folder, self._name) as path,
        ):
            sender.settimeout(0.0)
            sender.sendto(b"!", path)

    def drain(self) -> None:
        """Receive what was sent, so that the next wait waits."""
        while self._socket is not None:
            try:
                self._socket.recv(64)
            except BlockingIOError:
                return


class Waker:
    """A writer's end for one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / WATCH
        self._path = os.fspath(self._folder)
        self._listed_at = -1
        self._followers: list[str] = []
        self._socket: socket.socket | None = None

    def wake(self) -> None:
        """Wake every follower. Never raises; without followers it costs one system call."""
        if not os.access(self._path, os.F_OK):
            # No follower. This test costs a third of catching that the folder does not exist.
            return
        try:
            changed = os.stat(self._path).st_mtime_ns  # noqa: PTH116  (a path object costs as much as the call)
        except OSError:
            return
        if changed != self._listed_at:
            self._list_followers(changed)
        if self._followers:
            self._send()

    def close(self) -> None:
        """Close the socket."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _list_followers(self, changed: int) -> None:
        try:
            self._followers = os.listdir(self._path)  # noqa: PTH208  (names are what is needed)
        except OSError:
            # The folder was deleted with its run.
            return
        # A follower that comes within the same tick of the file system's clock would not be noticed.
        self._listed_at = changed if time.time_ns() - changed > _CLOCK_TICK else -1

    def _send(self) -> None:
        if not hasattr(socket, "AF_UNIX"):
            return
        with suppress(OSError, reason="followers also poll"):
            if self._socket is None:
                self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                self._socket.settimeout(0.0)
            for name in self._followers:
                self._send_to(self._socket, name)

    def _send_to(self, sender: socket.socket, name: str) -> None:
        try:
            with socket_address(self._folder, name) as path:
                sender.sendto(b"!", path)
        except BlockingIOError:
            # Its buffer is full: it was woken and has not read yet.
            return
        except (ConnectionRefusedError, FileNotFoundError):
            # It died without cleaning up, or has just left.
            self._listed_at = -1
            (self._folder / name).unlink(missing_ok=True)


def bound_socket(folder: Path, name: str, kind: socket.SocketKind) -> socket.socket:
    """A socket that receives what is sent to `name` in `folder`, and never blocks. Its file is its owner's alone.

    Raises:
        OSError: the system refuses.
    """
    bound = socket.socket(socket.AF_UNIX, kind)
    try:
        bound.settimeout(0.0)
        with socket_address(folder, name) as path:
            bound.bind(path)
        (folder / name).chmod(0o600)
    except OSError:
        bound.close()
        raise
    return bound


@contextmanager
def socket_address(folder: Path, name: str) -> Generator[str]:
    """The address of a socket in `folder`, through a descriptor where the path is too long for one."""
    direct = os.fspath(folder / name)
    if len(os.fsencode(direct)) <= _LONGEST_ADDRESS:
        yield direct
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        yield f"/proc/self/fd/{descriptor}/{name}"
    finally:
        os.close(descriptor)
