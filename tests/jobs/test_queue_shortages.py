# pyright: reportPrivateUsage=false
"""What follows when a job was short of something: one more try after a bounded effort, or none at all."""

from pathlib import Path

import pytest

from failwell.jobs.job import JobState
from failwell.jobs.manifest import Manifest
from failwell.jobs.memory import evict as resources_evict
from failwell.jobs.memory.ledger import Pool
from failwell.jobs.memory.machine import MachineMemory
from tests.jobs.queues import OutsideWorld, a_runtime, began, lines, types
from tests.jobs.workers import SAMPLES, run


def a_short_one(**fields: object) -> Manifest:
    return Manifest(name="short", object="timing:Short", path=(SAMPLES,), cancel_grace=5.0, **fields)  # pyright: ignore[reportArgumentType]


def test_a_release_that_hangs_is_waited_for_so_long_and_the_worker_is_then_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources_evict, "_RELEASE_SECONDS", 0.3)

    async def work() -> None:
        gate, count = tmp_path / "gate", tmp_path / "count"
        async with a_runtime(tmp_path) as jobs:
            jobs.register(a_short_one(stop_grace=0.2), config={"hangs": str(gate)})
            before = await jobs.call("short", action="pid")
            job = await jobs.submit("short", {"path": str(count)})
            ended = await jobs.wait(job.id, timeout=20)

            assert (ended.state, ended.attempt) == (JobState.COMPLETED, 2)
            assert await jobs.call("short", action="pid") != before

    run(work())


def test_nothing_is_started_in_a_worker_that_is_being_cleaned(tmp_path: Path) -> None:
    async def work() -> None:
        gate, count = tmp_path / "gate", tmp_path / "count"
        async with a_runtime(tmp_path) as jobs:
            jobs.register(a_short_one(concurrency=2), config={"hangs": str(gate)})
            await jobs.call("short", action="pid")
            failing = await jobs.submit("short", {"path": str(count)})
            await began(gate)
            other = await jobs.submit("short", action="pid")
            assert jobs.reorder(failing.id, 5)
            states = jobs.job(failing.id).state, jobs.job(other.id).state
            gate.touch()
            ended = [await jobs.wait(one.id) for one in (failing, other)]

            assert states == (JobState.WAITING, JobState.PENDING)
            assert [(one.state, one.attempt) for one in ended] == [
                (JobState.COMPLETED, 2),
                (JobState.COMPLETED, 1),
            ]
            assert types(jobs, other) == ["submitted", "started", "completed"]

    run(work())


@pytest.mark.parametrize(
    ("resource", "words"), [("system_ram_mb", "memory"), ("disk_mb", "disk space")], ids=["memory", "disk"]
)
def test_who_needs_more_than_the_whole_machine_is_not_tried_again_and_told_so(
    tmp_path: Path, resource: str, words: str
) -> None:
    async def work() -> None:
        count, world = tmp_path / "count", OutsideWorld()
        world.ram = world.disk = Pool(20_000.0, 15_000.0)
        async with a_runtime(tmp_path, a_short_one(), world=world) as jobs:
            job = await jobs.submit(
                "short", {"path": str(count), "resource": resource, "needed": 9_000_000, "available": 100}
            )
            ended = await jobs.wait(job.id)

            assert ended.error is not None
            assert (ended.state, ended.error.kind, ended.error.retryable) == (
                JobState.FAILED,
                "resource.never_fits",
                False,
            )
            assert len(lines(count)) == 1
            short = ended.error.resource_shortfall
            assert short is not None
            assert (short.resource, short.needed, short.available) == (resource, 9_000_000, 18_000)
            assert f"9,000,000 MB of {words}" in ended.error.message
            assert [cause.kind for cause in ended.error.causes][:1] in (
                ["resource.system_memory"],
                ["resource.disk"],
            )
            assert types(jobs, job) == ["submitted", "started", "failed"]

    run(work())


def test_a_need_that_a_limit_of_ones_own_forbids_is_never_met_either(tmp_path: Path) -> None:
    from failwell.jobs.memory.machine import Limits

    async def work() -> None:
        count = tmp_path / "count"
        async with a_runtime(tmp_path, a_short_one(), limits=Limits(memory_mb=5_000)) as jobs:
            job = await jobs.submit(
                "short", {"path": str(count), "resource": "system_ram_mb", "needed": 6_000}
            )
            ended = await jobs.wait(job.id)

            assert ended.error is not None
            assert (ended.error.kind, len(lines(count))) == ("resource.never_fits", 1)

    run(work())


class Broken(OutsideWorld):
    """A machine that cannot be looked at, once it was told to be."""

    is_broken = False

    def read(self) -> MachineMemory:
        if self.is_broken:
            raise RuntimeError("nobody foresaw this")
        return super().read()


def test_a_job_is_tried_again_whatever_goes_wrong_with_making_room_for_it(tmp_path: Path) -> None:
    async def work() -> None:
        world, count = Broken(), tmp_path / "count"
        async with a_runtime(tmp_path, a_short_one(), world=world) as jobs:
            world.is_broken = True
            job = await jobs.submit("short", {"path": str(count), "resource": "system_ram_mb"})
            ended = await jobs.wait(job.id, timeout=10)
            told = [
                event.data["instance"] for event in jobs.store.events() if event.type == "worker:not_freed"
            ]

            assert (ended.state, ended.attempt) == (JobState.COMPLETED, 2)
            assert told == ["short"]

    run(work())
