"""Builders for the tests of the queue: a runtime, a machine to look at, a GPU that is a folder."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from failwell.jobs.job import Job
from failwell.jobs.manifest import Manifest, Resources
from failwell.jobs.memory.book import Book
from failwell.jobs.memory.ledger import Pool
from failwell.jobs.memory.machine import MachineMemory
from failwell.jobs.queue.state import Rules
from failwell.jobs.runtime import Runtime
from failwell.jobs.store.records import Profile
from failwell.jobs.store.rows import job_values
from failwell.jobs.store.sqlite import JobStore
from failwell.jobs.workers.protocol import Supervision
from tests.jobs.workers import SAMPLES, is_alive, until

PLENTY = Pool(1_000_000.0, 900_000.0)


class OutsideWorld:
    """A machine as tests want it. GPUs are folders that the workers themselves write into."""

    def __init__(self, *gpus: Path, total: float = 10_000.0) -> None:
        self.gpus = gpus
        self.total = total
        self.ram: Pool | None = PLENTY
        self.disk: Pool | None = PLENTY
        self.looks = 0

    def read(self) -> MachineMemory:
        self.looks += 1
        pools: list[Pool] = []
        processes: dict[tuple[int, int], float] = {}
        for index, folder in enumerate(self.gpus):
            used = 0.0
            for file in folder.iterdir():
                if not file.name.isdecimal() or not (file.name == "0" or is_alive(int(file.name))):
                    continue
                held = _number(file)
                used += held
                processes[index, int(file.name)] = held
            pools.append(Pool(self.total, self.total - used))
        return MachineMemory(ram=self.ram, disk=self.disk, gpus=tuple(pools), gpu_processes=processes)

    def close(self) -> None:
        return None


def _number(file: Path) -> float:
    try:
        return float(file.read_text() or 0)
    except OSError:
        return 0.0


def a_capability(name: str = "worker", kind: str = "Worker", **fields: Any) -> Manifest:
    known: dict[str, Any] = {"path": (SAMPLES,), "cancel_grace": 5.0, **fields}
    return Manifest(name=name, object=f"queueing:{kind}", **known)


def a_model(name: str, kind: str = "Model", **fields: Any) -> Manifest:
    return a_capability(name, kind, resources=Resources(gpu=True), **fields)


def a_gpu(tmp_path: Path, name: str = "gpu") -> Path:
    folder = tmp_path / name
    folder.mkdir()
    return folder


@asynccontextmanager
async def a_runtime(
    folder: Path,
    *manifests: Manifest,
    world: OutsideWorld | None = None,
    measured: bool = True,
    **wishes: Any,
) -> AsyncGenerator[Runtime]:
    """A runtime that is stopped when the block ends; its capabilities have had their measurement run."""
    rules = wishes.pop("rules", None) or Rules(lanes=wishes.pop("lanes", 4), rescan=0.05, calm=0.05)
    runtime = Runtime(
        wishes.pop("store", folder / "state"),
        registry=folder / "registry",
        probe=world or OutsideWorld(),
        rules=rules,
        supervision=Supervision(pulse=0.05),
        **wishes,
    )
    async with runtime:
        for manifest in manifests:
            runtime.register(manifest)
            if measured:
                await runtime.call(manifest.name, action="pid")
        yield runtime


async def began(path: Path) -> None:
    """Wait until the job that runs until `path` is there has begun."""
    await until(Path(f"{path}.began").exists)


def lines(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


def types(runtime: Runtime, job: Job | str) -> list[str]:
    """What happened to a job, in order."""
    return [event.type for event in runtime.store.events(job=job if isinstance(job, str) else job.id)]


def forget_it_began(path: Path) -> None:
    Path(f"{path}.began").unlink()


def when(runtime: Runtime, job: Job, what: str) -> float:
    """When something happened to a job for the first time."""
    return next(event.at for event in runtime.store.events(job=job.id) if event.type == what)


def learned(jobs: Runtime, name: str) -> Profile | None:
    """What the queue knows of an instance."""
    instance = jobs.queue.state.find_instance(name)
    book = book_of(jobs)
    return None if instance is None else book.profile(instance)


def evicted(jobs: Runtime) -> list[tuple[str, str]]:
    told = [event.data for event in jobs.store.events() if event.type == "worker:evicted"]
    return [(one["instance"], one["how"]) for one in told]


def pids(jobs: Runtime, *names: str) -> dict[str, int | None]:
    return {name: jobs.worker(name).pid for name in names}


def spans(path: Path) -> list[tuple[float, float]]:
    """From when to when the calls held their memory."""
    return [tuple(json.loads(line)) for line in path.read_text().splitlines()]


def meet(ones: list[tuple[float, float]], others: list[tuple[float, float]]) -> bool:
    return any(one[0] < other[1] and other[0] < one[1] for one in ones for other in others)


@asynccontextmanager
async def a_holder(script: str, mb: int) -> AsyncGenerator[None]:
    """Somebody else's program, which holds memory until the block ends."""
    other = await asyncio.create_subprocess_exec(
        sys.executable,
        str(Path(SAMPLES) / script),
        str(mb),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert other.stdout is not None
        assert await other.stdout.readline() == b"holds\n"
        yield
    finally:
        await other.communicate(b"")


def change_stored(store: JobStore, **changes: Any) -> None:
    """Let the oldest unfinished job be stored as something else, as another process would have."""
    job = store.jobs(states=("pending", "running", "waiting"))[-1]
    store.commit([job_values(replace(job, **changes), job.state.value)])


def book_of(jobs: Runtime) -> Book:
    """What a running queue knows of memory."""
    hosting = jobs._hosting  # pyright: ignore[reportPrivateUsage]
    assert hosting is not None
    return hosting.book
