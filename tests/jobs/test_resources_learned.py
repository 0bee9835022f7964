# pyright: reportPrivateUsage=false
"""What is learned of a call is what it needed itself, with the configuration that it had."""

from pathlib import Path

import pytest

from failwell.jobs.memory.ledger import Pool
from failwell.jobs.memory.machine import since, written
from tests.jobs.queues import OutsideWorld, a_capability, a_runtime, began, book_of, learned
from tests.jobs.workers import run, until


def test_a_job_that_began_before_a_change_of_configuration_teaches_nothing_of_the_new_one(
    tmp_path: Path,
) -> None:
    async def work() -> None:
        go = tmp_path / "go"
        async with a_runtime(tmp_path, a_capability(concurrency=2)) as jobs:
            job = await jobs.submit("worker", {"path": str(go)}, action="until")
            await began(go)
            await jobs.configure("worker", {"model": "ten times as large"})
            go.touch()
            await jobs.wait(job.id)
            after_the_old_one = learned(jobs, "worker")
            await jobs.call("worker", action="pid")

            assert after_the_old_one is None
            assert learned(jobs, "worker") is not None

    run(work())


def test_a_configuration_that_is_known_is_not_let_in_on_what_was_promised_to_another(tmp_path: Path) -> None:
    async def work() -> None:
        world, go = OutsideWorld(), tmp_path / "go"
        world.ram = Pool(2_000.0, 1_500.0)
        async with a_runtime(tmp_path, world=world) as jobs:
            jobs.register(a_capability(concurrency=2), config={"size": "large"})
            await jobs.call("worker", {"path": str(_there(tmp_path)), "mb": 300}, action="until")
            await jobs.configure("worker", {"size": "small"})
            await jobs.worker("worker").stop()
            await jobs.call("worker", action="pid")
            small = await jobs.submit("worker", {"path": str(go)}, action="until")
            await began(go)
            before = book_of(jobs).reserved()["worker"]["ram"]
            await jobs.configure("worker", {"size": "large"})
            large = await jobs.submit("worker", {"path": str(go)}, action="until")
            await until(lambda: jobs.job(large.id).state == "running")
            after = book_of(jobs).reserved()["worker"]["ram"]
            go.touch()
            for one in (small, large):
                await jobs.wait(one.id)

            assert before is not None
            assert after is not None
            assert before < 300 < after
            assert book_of(jobs).reserved() == {}

    run(work())


def test_what_other_programs_write_meanwhile_is_not_put_down_to_a_job(tmp_path: Path) -> None:
    async def work() -> None:
        world, go = OutsideWorld(), tmp_path / "go"
        async with a_runtime(tmp_path, world=world) as jobs:
            jobs.register(a_capability())
            job = await jobs.submit("worker", {"path": str(go), "disk_mb": 20}, action="until")
            await began(go)
            assert world.disk is not None
            world.disk = Pool(world.disk.total, world.disk.free - 50_000)
            go.touch()
            await jobs.wait(job.id)
            profile = learned(jobs, "worker")

            assert profile is not None
            assert 20 <= profile.disk_mb < 30

    run(work())


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="the kernel does not count here")
def test_the_kernel_counts_what_a_process_writes(tmp_path: Path) -> None:
    import os

    before = written([os.getpid()])
    (tmp_path / "file").write_bytes(b"x" * (4 << 20))
    wrote = since(before, written([os.getpid()]))

    assert wrote is not None
    assert 4 <= wrote < 6


def test_where_the_kernel_does_not_count_nobody_is_told_anything(tmp_path: Path) -> None:
    assert written([1], proc=tmp_path) is None
    assert since(None, None) is None


def _there(tmp_path: Path) -> Path:
    path = tmp_path / "there"
    path.touch()
    return path
