"""The same workflow on both engines, and what may differ between them."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from temporalio.worker import Worker

from failwell.store.event import Event
from failwell.temporal.connection import ConnectionOptions
from failwell.temporal.runs.remote_driver import TemporalEngine
from failwell.temporal.runs.step_activities import StepActivities, run_worker_options
from tests.temporal_server import server, task_queue

_VOLATILE = frozenset(
    {
        "at", "until", "begun", "delay", "duration", "duration_ms", "started", "occurred_at", "id", "run", "run_id", "key", "errors_file",
        "waited_seconds", "elapsed", "seconds", "idle", "active", "execution_time",
        "blocked_until", "expires_at",
    }
)  # fmt: skip
"""Names of values that differ between two runs of the same workflow on the same engine."""


@asynccontextmanager
async def temporal_engine(
    store: Path, *, address: str | None = None, **options: Any
) -> AsyncGenerator[TemporalEngine]:
    """An engine whose one worker is in this process."""
    connection = ConnectionOptions(address=address or server().address, task_queue=task_queue())
    client = await connection.connect()
    steps = StepActivities(store, linger=0.2)
    async with Worker(client, task_queue=connection.task_queue, **run_worker_options(steps)):
        yield TemporalEngine(connection=connection, **options)
    await steps.close()


def sequences(events: list[Event]) -> dict[str, list[Any]]:
    """The events by the path of their step, in order, without ids and times.

    Steps that run side by side end in any order, on either engine; those of one path do not.
    """
    paths: dict[str, list[Any]] = {}
    for event in events:
        data = event.data
        path = str(data.get("path", ""))
        paths.setdefault(path, []).append([event.type, comparable(data)])
    return paths


def comparable(value: Any) -> Any:
    """A value without ids and times."""
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value)
        return {name: comparable(item) for name, item in items.items() if name not in _VOLATILE}
    if isinstance(value, list):
        return [comparable(item) for item in cast("list[Any]", value)]
    return value
