"""The other live hosts of the store, and the moment at which one of them dies."""

import asyncio
import os
from collections.abc import Callable, Sequence

from failwell.jobs.store.records import Host


class PeerWatch:
    """Watches the processes of other hosts where the system can tell that one has ended.

    That only saves time: whether a host is dead is decided by its lock, which is tested every second.
    """

    def __init__(self, host: Host, on_end: Callable[[], None]) -> None:
        self._host = host
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._watched: dict[int, int] = {}
        """Host → the descriptor that becomes readable when its process ends."""

    def follow(self, live: Sequence[Host]) -> None:
        """Watch these hosts, and no others."""
        for key in self._watched.keys() - {peer.key for peer in live}:
            self._forget(key)
        for peer in live:
            if peer.key not in self._watched and peer.pid != self._host.pid:
                self._watch(peer)

    def close(self) -> None:
        """Watch none of them."""
        for key in list(self._watched):
            self._forget(key)

    def _watch(self, peer: Host) -> None:
        try:
            descriptor = os.pidfd_open(peer.pid)
        except (AttributeError, OSError):
            # Not on this system, or the process is in another container.
            return
        self._watched[peer.key] = descriptor
        self._loop.add_reader(descriptor, self._ended, peer.key)

    def _ended(self, key: int) -> None:
        self._forget(key)
        self._on_end()

    def _forget(self, key: int) -> None:
        descriptor = self._watched.pop(key)
        self._loop.remove_reader(descriptor)
        os.close(descriptor)
