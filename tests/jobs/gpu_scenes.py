# ruff: noqa: T201
"""What the queue does about the memory of a real CUDA card: the scenes that the tests of it are made of.

They need torch with CUDA, nvidia-ml-py and a card of 24 GiB or more that nobody else uses; sizes are shares
of the card. Without pytest they are run by `PYTHONPATH=src:. python tests/jobs/gpu_scenes.py [NAME...]`.
"""

import asyncio
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from failwell.jobs.job import Job, JobState
from failwell.jobs.manifest import Manifest, Resources
from failwell.jobs.memory.gpu import Gpus
from failwell.jobs.memory.ledger import Pool
from failwell.jobs.runtime import Runtime
from tests.jobs.queues import (
    a_capability,
    a_holder,
    began,
    evicted,
    learned,
    meet,
    pids,
    spans,
    types,
    when,
)
from tests.jobs.workers import SAMPLES, until

CONTEXT = 2_000
"""Megabytes that a process may hold beside its tensors: the CUDA context, and what the allocator rounds up."""
SMALLEST = 24_000
PATIENCE = 180.0
"""Seconds that loading torch may take."""
BOUND = 5.0
"""Seconds within which room that somebody else made is noticed: the queue looks once a second."""


class Card(NamedTuple):
    """The first card, in megabytes."""

    total: float
    free: float

    def share(self, part: float) -> int:
        return int(self.total * part)


def find_card() -> Card | str:
    """The card; or why there is none to run this on."""
    if find_spec("pynvml") is None:
        return "needs nvidia-ml-py"
    if find_spec("torch") is None:
        return "needs torch"
    pool = _pool()
    if pool is None:
        return "needs a CUDA card that NVML sees"
    if pool.total < SMALLEST:
        return f"needs a card of {SMALLEST} MB or more; this one has {pool.total:.0f}"
    if pool.free < pool.total * 0.95:
        return f"needs a card that nobody uses; {pool.free:.0f} of {pool.total:.0f} MB are free"
    asked = "import torch; raise SystemExit(not torch.cuda.is_available())"
    if subprocess.run([sys.executable, "-c", asked], capture_output=True, check=False).returncode:
        return "needs torch with CUDA"
    return Card(pool.total, pool.free)


def _pool() -> Pool | None:
    gpus = Gpus()
    pools, _ = gpus.read()
    gpus.close()
    return pools[0] if pools else None


def a_model(name: str, kind: str = "Model", **fields: Any) -> Manifest:
    return Manifest(
        name=name,
        object=f"gpu_model:{kind}",
        path=(SAMPLES,),
        resources=Resources(gpu=True, accelerators=("cuda",)),
        stall_after=PATIENCE,
        **fields,
    )


@asynccontextmanager
async def a_runtime(folder: Path, **wishes: Any) -> AsyncGenerator[Runtime]:
    """A runtime as it is shipped; if the block fails, everything that was seen is printed."""
    async with Runtime(folder / "state", registry=folder / "registry", **wishes) as jobs:
        try:
            yield jobs
        except BaseException:
            _tell(jobs)
            raise


def _tell(jobs: Runtime) -> None:
    gpus = Gpus()
    print("  the card:", *gpus.read())
    gpus.close()
    print(
        "  workers:", {name: (jobs.worker(name).pid, jobs.worker(name).memory()) for name in jobs.instances}
    )
    for name in jobs.instances:
        print("  learned:", learned(jobs, name))
    for event in jobs.store.events():
        print(f"  {event.at:.3f} {event.job[-6:]:6} {event.type} {dict(event.data)}")


async def started(jobs: Runtime, name: str, mb: int, path: Path, **more: Any) -> Job:
    """A job that holds `mb` until `path` is there, and does so already."""
    job = await jobs.submit(name, {"mb": mb, "until": str(path), **more})
    await until(Path(f"{path}.began").exists, PATIENCE)
    return job


def _is_near(seen: float, mb: float) -> bool:
    return mb <= seen <= mb + CONTEXT


# ------------------------------------------------------------------ the scenes


async def large_ones_take_turns(card: Card, folder: Path) -> None:
    """Two that do not fit together never run at once; a small one runs beside a large one."""
    sizes = {"one": card.share(0.55), "two": card.share(0.55), "small": card.share(0.15)}
    logs = {name: folder / f"{name}.log" for name in sizes}
    go = folder / "go"
    async with a_runtime(folder) as jobs:
        for name, mb in sizes.items():
            jobs.register(a_model(name))
            assert await jobs.call(name, {"mb": mb, "keep": False}) == 7
            profile = learned(jobs, name)
            assert profile is not None
            assert _is_near(profile.gpu_mb, mb), f"{name} took {mb} MB, and {profile.gpu_mb} was learned"

        first = await started(jobs, "one", sizes["one"], go, keep=False, log=str(logs["one"]))
        second = await jobs.submit("two", {"mb": sizes["two"], "keep": False, "log": str(logs["two"])})
        await until(lambda: jobs.job(second.id).block_reason is not None)
        why = str(jobs.job(second.id).block_reason)
        beside = await jobs.submit("small", {"mb": sizes["small"], "keep": False, "log": str(logs["small"])})
        assert (await jobs.wait(beside.id)).state is JobState.COMPLETED
        assert (jobs.job(first.id).state, jobs.job(second.id).state) == (JobState.RUNNING, JobState.PENDING)
        rest = [
            await jobs.submit(name, {"mb": sizes[name], "keep": False, "log": str(logs[name])})
            for _ in range(3)
            for name in ("one", "two")
        ]
        go.touch()
        ended = [await jobs.wait(one.id) for one in (first, second, *rest)]

        assert "running jobs leave" in why, why
        assert {one.state for one in ended} == {JobState.COMPLETED}
        held = {name: spans(path) for name, path in logs.items()}
        assert [len(held[name]) for name in sizes] == [4, 4, 1], held
        assert not meet(held["one"], held["two"]), held
        assert meet(held["one"], held["small"]), held
        assert evicted(jobs) == [], evicted(jobs)


async def what_never_fits_fails_at_once(card: Card, folder: Path) -> None:
    """A peak above the budget ends the job before it begins, with the numbers."""
    mb = card.share(0.6)
    async with a_runtime(folder, headroom=0.5) as jobs:
        jobs.register(a_model("large"))
        await jobs.call("large", {"mb": mb})
        await jobs.worker("large").stop()
        job = await jobs.submit("large", {"mb": mb})
        ended = await jobs.wait(job.id)

        assert (ended.state, ended.attempt) == (JobState.FAILED, 0)
        assert ended.error is not None
        assert (ended.error.kind, ended.error.retryable) == ("resource.never_fits", False)
        short = ended.error.resource_shortfall
        assert short is not None
        assert short.resource == "gpu_vram_mb"
        assert _is_near(short.needed or 0, mb), short
        assert abs((short.available or 0) - card.total / 2) < 1, short
        assert jobs.worker("large").pid is None


async def the_largest_idle_one_makes_room(card: Card, folder: Path) -> None:
    """One eviction: not of who is busy, has work waiting, or holds nothing there."""
    go, wanted_go = folder / "go", folder / "wanted"
    need = card.share(0.30)
    residents = {
        "wanted": card.share(0.33), "large": card.share(0.31), "small": card.share(0.06), "busy": card.share(0.02)
    }  # fmt: skip
    async with a_runtime(folder, lanes=4) as jobs:
        jobs.register(a_model("needy"))
        await jobs.call("needy", {"mb": need})
        await jobs.worker("needy").stop()
        jobs.register(a_capability("hollow"))
        await jobs.call("hollow", {"value": 1})
        for name, mb in residents.items():
            jobs.register(a_model(name))
            await jobs.call(name, {"mb": mb})
        # Somebody waits for the largest of all, which is switched off for the moment.
        before = await started(jobs, "wanted", residents["wanted"], wanted_go)
        waiting = await jobs.submit("wanted", {"mb": residents["wanted"]})
        await jobs.disable("wanted")
        wanted_go.touch()
        await jobs.wait(before.id)
        running = await started(jobs, "busy", residents["busy"], go)
        spared = pids(jobs, "wanted", "small", "busy", "hollow")

        job = await jobs.submit("needy", {"mb": need})
        ended = await jobs.wait(job.id)

        assert (ended.state, ended.attempt, ended.result) == (JobState.COMPLETED, 1, 7)
        assert types(jobs, job) == ["submitted", "blocked", "started", "completed"]
        assert evicted(jobs) == [("large", "stopped")], evicted(jobs)
        assert pids(jobs, *spared) == spared
        assert jobs.job(waiting.id).state is JobState.PENDING
        go.touch()
        await jobs.wait(running.id)
        await jobs.enable("wanted")
        assert (await jobs.wait(waiting.id)).state is JobState.COMPLETED


async def room_made_outside_is_noticed(card: Card, folder: Path) -> None:
    """Somebody else's program holds the card; the job says so once, and runs soon after that has ended."""
    need, theirs = card.share(0.5), card.share(0.7)
    async with a_runtime(folder) as jobs:
        jobs.register(a_model("needy"))
        await jobs.call("needy", {"mb": need})
        await jobs.worker("needy").stop()
        async with a_holder("gpu_holder.py", theirs):
            job = await jobs.submit("needy", {"mb": need})
            await until(lambda: jobs.job(job.id).block_reason is not None)
            why = str(jobs.job(job.id).block_reason)
        freed = time.time()
        ended = await jobs.wait(job.id)

        assert "MB more of memory of GPU 0" in why, why
        assert (ended.state, ended.attempt) == (JobState.COMPLETED, 1)
        assert types(jobs, job).count("blocked") == 1
        began_at = when(jobs, job, "started")
        assert began_at - freed < BOUND, f"it began {began_at - freed:.2f} s after there was room"
        assert evicted(jobs) == []


async def an_unmeasured_one_gets_all_that_idles(card: Card, folder: Path) -> None:
    """torch runs out of memory; everybody idle on the card goes; the second attempt is whole and ends well."""
    gate, go, busy_go = folder / "gate", folder / "go", folder / "busy"
    need, small = card.share(0.6), card.share(0.05)
    config = {"colour": "green"}
    async with a_runtime(folder, lanes=4) as jobs:
        jobs.register(a_capability("cpu"))
        await jobs.call("cpu", {"mb": 200}, action="keep")
        for name, kind, mb in (
            ("stiff", "Model", card.share(0.3)), ("giving", "Releasing", card.share(0.3)), ("busy", "Model", small)
        ):  # fmt: skip
            jobs.register(a_model(name, kind))
            await jobs.call(name, {"mb": mb})
        spared = pids(jobs, "cpu", "busy", "giving")
        jobs.register(a_model("needy", concurrency=2), config=config)

        job = await jobs.submit("needy", {"mb": need, "gate": str(gate), "until": str(go)})
        await began(gate)
        running = await jobs.submit("busy", {"mb": small, "until": str(busy_go)})
        gate.touch()
        await until(Path(f"{busy_go}.began").exists, PATIENCE)
        await until(lambda: len(evicted(jobs)) == 2, PATIENCE)
        waits = jobs.job(job.id)
        after = pids(jobs, "cpu", "busy", "giving", "stiff")
        busy_go.touch()
        await jobs.wait(running.id)
        await until(lambda: (jobs.job(job.id).attempt, jobs.job(job.id).progress) == (2, 0.25), PATIENCE)
        seen = jobs.job(job.id)
        go.touch()
        ended = await jobs.wait(job.id)

        assert waits.state is JobState.WAITING
        assert waits.error is not None
        assert waits.error.kind == "resource.gpu_memory", waits.error
        short = waits.error.resource_shortfall
        assert short is not None
        assert short.resource == "gpu_vram_mb"
        assert abs((short.needed or 0) - need) < need * 0.02, short
        assert 0 < (short.available or 0) < need, short
        assert sorted(evicted(jobs)) == [("giving", "released"), ("stiff", "stopped")]
        assert after == {**spared, "stiff": None}
        assert (seen.state, seen.retry_count) == (JobState.RUNNING, 1)
        assert (ended.state, ended.retry_count, ended.error) == (JobState.COMPLETED, 1, None)
        assert types(jobs, job).count("retrying") == 1
        profile = learned(jobs, "needy")
        assert profile is not None
        assert _is_near(profile.gpu_mb, need), profile
        assert await jobs.call("needy", action="seen_config") == config
        assert jobs.worker("needy").manifest.concurrency == 2


async def a_second_attempt_can_be_cancelled(card: Card, folder: Path) -> None:
    """After a real shortage and an eviction, the job is as live as any: it reports, and heeds a cancel."""
    go = folder / "go"
    async with a_runtime(folder) as jobs:
        jobs.register(a_model("resident"))
        await jobs.call("resident", {"mb": card.share(0.6)})
        jobs.register(a_model("needy"))

        job = await jobs.submit("needy", {"mb": card.share(0.6), "until": str(go)})
        await until(lambda: (jobs.job(job.id).attempt, jobs.job(job.id).progress) == (2, 0.25), PATIENCE)
        asked = jobs.cancel(job.id)
        ended = await jobs.wait(job.id)

        assert asked
        assert (ended.state, ended.attempt) == (JobState.CANCELLED, 2)
        assert types(jobs, job).count("retrying") == 1
        assert evicted(jobs) == [("resident", "stopped")]


SCENES: tuple[Callable[[Card, Path], Awaitable[None]], ...] = (
    large_ones_take_turns,
    what_never_fits_fails_at_once,
    the_largest_idle_one_makes_room,
    room_made_outside_is_noticed,
    an_unmeasured_one_gets_all_that_idles,
    a_second_attempt_can_be_cancelled,
)


def main(names: list[str]) -> int:
    card = find_card()
    if isinstance(card, str):
        print(f"SKIP: {card}")
        return 2
    print(f"card: {card.total:.0f} MB, {card.free:.0f} MB free")
    failed = 0
    for scene in SCENES:
        name = str(getattr(scene, "__name__", scene))
        if names and name not in names:
            continue
        start = time.monotonic()
        try:
            with tempfile.TemporaryDirectory() as folder:
                asyncio.run(asyncio.wait_for(_as_coroutine(scene(card, Path(folder))), 400))
        except Exception:
            failed += 1
            print(f"FAIL {name} ({time.monotonic() - start:.1f} s)\n{traceback.format_exc()}", flush=True)
        else:
            print(f"PASS {name} ({time.monotonic() - start:.1f} s)", flush=True)
    return 1 if failed else 0


async def _as_coroutine(work: Awaitable[None]) -> None:
    await work


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
