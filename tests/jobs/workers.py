"""Builders for the tests of workers: a manifest, a worker, and what it told."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import failwell
from failwell.errors.fault import Fault
from failwell.errors.report import ErrorReport
from failwell.jobs.manifest import Manifest
from failwell.jobs.workers.protocol import Supervision, WorkerEvent
from failwell.jobs.workers.supervisor import SupervisedWorker

SAMPLES = str(Path(__file__).with_name("samples"))
_T = TypeVar("_T")
_E = TypeVar("_E")


def a_manifest(object: str = "sample:Sample", **fields: Any) -> Manifest:  # noqa: A002
    known: dict[str, Any] = {"name": "sample", "path": (SAMPLES,), "cancel_grace": 5.0, **fields}
    return Manifest(object=object, **known)


class Told(list[WorkerEvent]):
    """What a worker told, in order."""

    def of(self, cls: type[_E]) -> list[_E]:
        return [event for event in self if isinstance(event, cls)]


@asynccontextmanager
async def a_worker(
    object: str = "sample:Sample",  # noqa: A002
    *,
    config: dict[str, Any] | None = None,
    care: Supervision | None = None,
    folder: str | None = None,
    secrets: dict[str, str] | None = None,
    **manifest: Any,
) -> AsyncGenerator[tuple[SupervisedWorker, Told]]:
    """A worker that is stopped when the block ends."""
    worker = SupervisedWorker(
        a_manifest(object, **manifest), config=config, supervision=care, folder=folder, secrets=secrets
    )
    told = Told()
    worker.listen(told.append)
    try:
        yield worker, told
    finally:
        await worker.stop()


def run(work: Coroutine[Any, Any, _T]) -> _T:
    return asyncio.run(work)


async def failure(work: Coroutine[Any, Any, Any]) -> Fault:
    """The fault that `work` ends with."""
    try:
        value = await work
    except Fault as fault:
        return fault
    raise AssertionError(f"it returned {value!r}")


async def reported(work: Coroutine[Any, Any, Any]) -> ErrorReport:
    return failwell.describe(await failure(work))


def is_alive(pid: int) -> bool:
    """Whether there is such a process, zombies not counted."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])


async def until(condition: Any, seconds: float = 20.0) -> None:
    """Wait for something that another process does."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while not condition():
        if loop.time() > end:
            raise AssertionError("it did not happen")
        await asyncio.sleep(0.002)


def exists(path: Path) -> Any:
    return path.exists
