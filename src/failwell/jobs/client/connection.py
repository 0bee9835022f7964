"""The open store of a client: opened when it is first used, shared by threads, and opened again after a fork.

What `Client` and `AsyncClient` have in common: the store, and the options of the jobs they submit.
"""

import atexit
import os
from copy import copy
from dataclasses import replace
from datetime import datetime
from threading import Lock
from typing import Literal, Self
from weakref import WeakSet

from failwell.jobs.capabilities import CapabilityRegistry
from failwell.jobs.client.queue_client import QueueClient
from failwell.jobs.client.submission import JobOptions
from failwell.jobs.client.waits import ClientClosed, Waits
from failwell.jobs.faults import check_not_imported
from failwell.jobs.host import StoreLocation, folder_beside, open_store


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
        self.options = JobOptions()

    def with_options(
        self,
        *,
        instance: str | None = None,
        action: str | None = None,
        priority: int | None = None,
        timeout: float | Literal["none"] | None = None,
        deadline: datetime | None = None,
        key: str | None = None,
        unique: str | None = None,
        not_before: datetime | None = None,
        delay: float | None = None,
        run: str | None = None,
        actor: str | None = None,
        max_attempts: int | None = None,
        idempotent: bool | None = None,
    ) -> Self:
        """The same client with options for the jobs it submits. An option that is left out stays as it is.

        Args:
            instance: The instance that runs the job, if it is not the one that `submit` names.
            action: The method of the capability.
            priority: Jobs with a higher priority start first.
            timeout: Seconds that one attempt may run, or `"none"` for no limit. The default is the `timeout` of the
                manifest, else an hour.
            deadline: When the job must have ended, waiting included.
            key: Idempotency key: a second job with the same key is the first.
            unique: How long the key is taken: `forever`, as long as the job is stored, or until it has `ended`.
            not_before: When the first attempt may start; at once by default.
            delay: The same as seconds from the time when the job is submitted.
            run: The run that the job belongs to.
            actor: The user or program that submits it.
            max_attempts: Attempts in all.
            idempotent: Whether the job may be repeated after an attempt with an unknown outcome.
        """
        changes = {
            "instance": instance,
            "action": action,
            "priority": priority,
            "timeout": timeout,
            "deadline": deadline,
            "key": key,
            "unique": unique,
            "not_before": not_before,
            "delay": delay,
            "run": run,
            "actor": actor,
            "max_attempts": max_attempts,
            "idempotent": idempotent,
        }
        client = copy(self)
        client.options = replace(
            self.options, **{name: value for name, value in changes.items() if value is not None}
        )
        return client


def not_ended(job: str, timeout: float | None) -> TimeoutError:
    """The error of a wait that was too short."""
    return TimeoutError(f"job {job} did not end within {timeout:g} s; it continues")
