"""What `Client` and `AsyncClient` have in common: the store and the options of the jobs they submit.

The store is opened when it is first used, shared by threads, and opened again after a fork.
"""

import atexit
import os
from collections.abc import Callable, Mapping
from copy import copy
from threading import Lock
from typing import Any, Self, Unpack, cast
from weakref import WeakSet

from failwell.jobs.capabilities import CapabilityRegistry
from failwell.jobs.client.queue_client import QueueClient
from failwell.jobs.client.submission import ClientOptions, instance_name
from failwell.jobs.client.waits import ClientClosed, Waits
from failwell.jobs.faults import check_not_imported
from failwell.jobs.host import StoreLocation, folder_beside, open_store
from failwell.jobs.schedule_spec import JobSchedule, ScheduleSpec
from failwell.jobs.schedules import Schedules


class Connection:
    """What a client of the queue and its handles use. Nothing is opened before the first use."""

    def __init__(
        self, store: StoreLocation, registry: CapabilityRegistry | str | os.PathLike[str] | None
    ) -> None:
        # The process may change its directory or its environment before the store is opened, or opened again after a fork.
        self._location = (
            folder_beside(store) if store is None or isinstance(store, str | os.PathLike) else store
        )
        self._registry = (
            registry
            if isinstance(registry, CapabilityRegistry)
            else CapabilityRegistry(registry or folder_beside(store))
        )
        self._lock = Lock()
        self._queue: QueueClient | None = None
        self._waits: Waits | None = None
        self._is_closed = False
        _CONNECTIONS.add(self)

    @property
    def queue(self) -> QueueClient:
        """The jobs of the store.

        Raises:
            ClientClosed: the client was closed.
            MissingMainGuard: a worker imports the module that uses the client.
        """
        with self._lock:
            if self._is_closed:
                raise ClientClosed
            if self._queue is None:
                check_not_imported("submits a job")
                self._queue = QueueClient(open_store(self._location), self._registry)
            return self._queue

    @property
    def waits(self) -> Waits:
        """The callers that wait.

        Raises:
            ClientClosed: the client was closed.
        """
        store = self.queue.store
        with self._lock:
            if self._waits is None:
                self._waits = Waits(store)
            return self._waits

    async def waits_in_loop(self) -> Waits:
        """`waits`, without blocking the event loop while the store is opened."""
        if self._waits is None:
            from asyncio import to_thread

            return await to_thread(lambda: self.waits)
        return self.waits

    def close(self) -> None:
        """End every wait and close the store."""
        with self._lock:
            queue, waits = self._queue, self._waits
            self._queue = self._waits = None
            self._is_closed = True
        if waits is not None:
            waits.close()
        if queue is not None and queue.store is not self._location:
            queue.store.close()

    def abandon(self) -> None:
        """In a forked process: leave what the parent opened as it is, and open it anew when it is used."""
        # SQLite forbids closing a connection that the parent opened; the reference keeps it open.
        _ABANDONED.append((self._queue, self._waits))
        self._lock = Lock()
        self._queue = self._waits = None


_CONNECTIONS: WeakSet[Connection] = WeakSet()
_ABANDONED: list[object] = []


def _close_all() -> None:
    for connection in list(_CONNECTIONS):
        connection.close()


def _abandon_all() -> None:
    for connection in list(_CONNECTIONS):
        connection.abandon()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_all)


class StoreClient:
    """A store, opened when it is first used, and the options of the jobs that are submitted to it."""

    def __init__(
        self,
        store: StoreLocation = None,
        *,
        registry: CapabilityRegistry | str | os.PathLike[str] | None = None,
    ) -> None:
        """Create a client; nothing is opened yet.

        Args:
            store: The state folder of the jobs, or a store. The default is the user's state folder.
            registry: The registered capabilities, or their folder. The default is the folder of the jobs.
        """
        self._connection = Connection(store, registry)
        self.options = ClientOptions()

    def with_options(self, **options: Unpack[ClientOptions]) -> Self:
        """The same client with options for the jobs it submits. An option that is left out, or `None`, stays as it is."""
        client = copy(self)
        changes = {name: value for name, value in options.items() if value is not None}
        client.options = cast("ClientOptions", {**self.options, **changes})
        return client

    def _add_schedule(
        self, what: Callable[..., Any] | str, arguments: Mapping[str, Any] | None, **fields: Any
    ) -> JobSchedule:
        spec = ScheduleSpec(
            arguments=arguments or {},
            action=self.options.get("action", "execute"),
            priority=self.options.get("priority", 0),
            **fields,
        )
        return Schedules(self._connection.queue).add(instance_name(what), spec)


def not_ended(job: str, timeout: float | None) -> TimeoutError:
    """The error of a wait that was too short."""
    return TimeoutError(f"job {job} did not end within {timeout:g} s; it continues")
