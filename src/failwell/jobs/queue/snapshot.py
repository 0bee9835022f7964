"""A snapshot of a running queue: totals, workers, memory, waiting jobs and why they wait. Plain JSON.

Each host leaves it in a file every second, so that other processes can look without asking.
"""

import os
from collections.abc import Callable, Mapping
from json import dumps, loads
from pathlib import Path
from time import time
from typing import Any, cast

from failwell.errors.fault import Fault
from failwell.jobs.memory.book import Book
from failwell.jobs.memory.ledger import resource_of
from failwell.jobs.queue.order import Instance
from failwell.jobs.queue.queue import Queue
from failwell.jobs.store.hosts import SNAPSHOT, live_folders
from failwell.jobs.store.sqlite import JobStore
from failwell.store.private_files import replace_private

_MOST_WAITING = 50
_OF_HOST = ("pid", "at", "lanes", "running", "paused", "trouble")
"""What the snapshot says of the host itself."""


def picture(store: JobStore, queue: Queue, book: Book, instances: Mapping[str, Instance]) -> dict[str, Any]:
    """The current state of the queue."""
    unowned, counts = store.overview(_MOST_WAITING)
    waiting = queue.waiting(_MOST_WAITING, unowned)
    machine = {} if book.machine is None else book.machine.pools()
    return {
        "pid": os.getpid(),
        "at": time(),
        "paused": queue.state.is_paused,
        "trouble": None if queue.trouble is None else str(queue.trouble),
        "lanes": queue.state.rules.lanes,
        "running": queue.state.running,
        "machine": [
            {
                "id": name,
                "resource": resource_of(name),
                "total_mb": round(pool.total),
                "free_mb": round(pool.free),
            }
            for name, pool in machine.items()
        ],
        "workers": [_worker(instance, book, instances) for instance in instances.values()],
        "jobs": [
            {
                "id": entry.id,
                "host": os.getpid(),
                "instance": entry.request.instance,
                "attempt": entry.attempt,
                "started": entry.started,
                "progress": entry.progress,
                "message": entry.message,
            }
            for instance in instances.values()
            for entry in instance.entries.values()
        ],
        "waiting": [
            {
                "id": job.id,
                "instance": job.request.instance,
                "state": job.state.value,
                "priority": job.request.priority,
                "submitted": job.submitted_at.timestamp(),
                "not_before": None if job.not_before is None else job.not_before.timestamp(),
                "reason": job.block_reason,
            }
            for job in waiting
        ],
        "waiting_total": counts["pending"] + counts["waiting"],
        "counts": counts,
    }


def _worker(instance: Instance, book: Book, instances: Mapping[str, Instance]) -> dict[str, Any]:
    memory = instance.worker.memory()
    memory_by_pool = book.snapshot(instances.values()).usage.get(instance.id, {})
    profile, limit = book.profile(instance), book.limit(instance)
    gpu = sum(much for pool, much in memory_by_pool.items() if pool.startswith("gpu:"))
    return {
        "id": instance.id,
        "host": os.getpid(),
        "capability": instance.manifest.name,
        "state": instance.worker.state.value,
        "enabled": instance.is_enabled,
        "pid": instance.worker.pid,
        "generation": instance.worker.generation,
        "concurrency": instance.manifest.concurrency,
        "jobs": len(instance.entries),
        "ram_mb": None if memory is None else round(memory.rss_mb, 1),
        "limit_mb": None if limit is None else round(limit.megabytes, 1),
        "gpu_mb": round(gpu, 1) if gpu else None,
        "learned": None
        if profile is None
        else {
            "ram_mb": round(profile.ram_mb, 1),
            "gpu_mb": round(profile.gpu_mb, 1),
            "disk_mb": round(profile.disk_mb, 1),
            "seconds": round(profile.seconds, 4),
            "samples": profile.samples,
        },
    }


def leave_picture(file: Path, draw: Callable[[], dict[str, Any]]) -> None:
    """Write a snapshot to a file for other processes. A failure to write it is ignored."""
    try:
        replace_private(file, dumps(draw(), allow_nan=False))
    except (Fault, OSError, TypeError, ValueError):
        # The next snapshot follows in a second.
        return


def read_pictures(folder: Path) -> list[dict[str, Any]]:
    """The last snapshots of all live hosts; `folder` is that of the jobs."""
    return [picture for host in live_folders(folder) if (picture := _read(host / SNAPSHOT)) is not None]


def read_picture(folder: Path) -> dict[str, Any] | None:
    """The last snapshots of all live hosts as one; `None` if there is none.

    `hosts` has what differs: the process, its lanes, and what it does. Each worker and running job names its host.
    """
    pictures = read_pictures(folder)
    if not pictures:
        return None
    latest = max(pictures, key=lambda picture: picture["at"])
    hosts = [{name: picture[name] for name in _OF_HOST} for picture in pictures]
    waiting = {job["id"]: job for picture in pictures for job in picture["waiting"]}
    return {
        **latest,
        "hosts": hosts,
        "paused": all(picture["paused"] for picture in pictures),
        "trouble": next((picture["trouble"] for picture in pictures if picture["trouble"]), None),
        "running": sum(picture["running"] for picture in pictures),
        "workers": [worker for picture in pictures for worker in picture["workers"]],
        "jobs": [job for picture in pictures for job in picture["jobs"]],
        "waiting": list(waiting.values())[:_MOST_WAITING],
    }


def _read(file: Path) -> dict[str, Any] | None:
    try:
        data: object = loads(file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return cast("dict[str, Any]", data) if isinstance(data, dict) else None
