"""The values that the store of jobs takes and returns."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from failwell.errors.frozen import frozen

Values = tuple[Any, ...]
"""A job as the store writes it: the state in which it was stored last, then its values in the order of `COLUMNS`."""
COLUMNS = (
    "key", "id", "instance", "state", "priority", "submitted", "started", "ended", "attempt", "charged", "losses",
    "due", "reason", "cancelled", "phase", "request", "result", "error", "once",
    "deadline",
)  # fmt: skip
"""Times are seconds since 1970; the request, the result and the error are JSON. `key` is a number that the store
assigns."""

FREE = ""
"""In place of a key: the key of this job may be used by another one."""


@dataclass(slots=True, kw_only=True)
class Profile:
    """What calls of one instance with one configuration need, as measured; megabytes and seconds.

    Each call changes it, so it is not frozen.
    """

    instance: str
    config: str
    """The hash of the configuration. Another configuration has its own profile."""
    samples: int = 0
    successes: int = 0
    gpu_mb: float = 0.0
    ram_mb: float = 0.0
    disk_mb: float = 0.0
    seconds: float = 0.0
    """The mean duration of calls that succeeded."""
    updated: float = 0.0


class ControlRequest(NamedTuple):
    """What another process asks the host to do with a job."""

    key: int
    job: str
    action: str
    at: float


class Host(NamedTuple):
    """A process that runs jobs of the store, as the store lists it."""

    key: int
    name: str
    pid: int
    folder: Path
    """Its own folder, which it locks as long as it lives."""
    lanes: int
    """How many jobs it runs at a time."""
    serves_all: bool = True
    """Whether it runs all jobs of the store, and not only those that it was started for."""


class Reserved(NamedTuple):
    """What a host has reserved of a pool, in megabytes, and what its workers hold of it already."""

    mb: float
    used: float


HostReserves = Mapping[int, Mapping[str, Reserved]]
"""Host → pool → what it has reserved."""


class HostLook(NamedTuple):
    """What a host looks at once a second: the other hosts, and what they and other processes have stored."""

    live: Sequence[Host]
    """The other hosts that run."""
    dead: Sequence[Host]
    """Those that have ended, and whose jobs were not taken over yet."""
    elsewhere: HostReserves
    """What the other hosts have reserved."""
    profiles: Sequence[Profile]
    requests: Sequence[ControlRequest]
    """Control requests that no host has applied yet, oldest first."""


class Booking(NamedTuple):
    """The answer to a reservation."""

    is_granted: bool
    others: HostReserves
    """What the other hosts have reserved."""


class Want(NamedTuple):
    """How many jobs of an instance a host claims at most."""

    number: int
    before: float = math.inf
    """Only jobs that come before this rank: when they were submitted, less a minute for each step of priority."""


class Ownership(NamedTuple):
    """Where the open jobs of a store are."""

    unowned: Mapping[str, int]
    """Instance → how many of its jobs no host owns."""
    elsewhere: int
    """How many the other hosts own."""


class Unowned(NamedTuple):
    """Jobs that wait for a host to claim them."""

    instances: Sequence[str]
    """The instances for which such jobs are ready."""
    next_time: float
    """When the next one becomes due or reaches its deadline."""


class Committed(NamedTuple):
    """The result of a commit."""

    keys: Mapping[str, int]
    """Job → key, for new rows."""
    twins: Mapping[str, str]
    """Job → the earlier job with the same idempotency key. The new one was not stored."""
    last: int
    """The number of the last event."""
    cancelled: Collection[str] = ()
    """Jobs that were to start and that another process had cancelled. Their start was not stored."""
    callbacks: int = 0
    """How many callbacks of groups were submitted with it."""


@frozen
class Forgotten:
    """What `forget` deleted, or would delete."""

    jobs: tuple[str, ...] = ()
    events: int = 0
    files: int = 0
    """Files of their results."""
    files_left: tuple[str, ...] = ()
    """Files that could not be deleted."""
    needed: tuple[str, ...] = ()
    """Jobs that stay because their run has not ended: it asks for them when it is resumed."""
