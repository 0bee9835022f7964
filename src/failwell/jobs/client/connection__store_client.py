"""What `Client` and `AsyncClient` have in common: the store, and the options of the jobs they submit."""

import os
from copy import copy
from dataclasses import replace
from datetime import datetime
from typing import Literal, Self

from failwell.jobs.capabilities import CapabilityRegistry
from failwell.jobs.client.connection import Connection
from failwell.jobs.client.submission import JobOptions
from failwell.jobs.host import StoreLocation


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
