"""An instance whose needs are not known runs beside the others, under a reserve, and holds nothing but its own lane."""

from pathlib import Path

import pytest

from failwell.jobs.capabilities import CapabilityRegistry
from failwell.jobs.job import JobState
from failwell.jobs.memory.ledger import RAM, Pool
from failwell.jobs.queue.state import Rules
from tests.jobs.queues import (
    OutsideWorld,
    a_capability,
    a_gpu,
    a_model,
    a_runtime,
    began,
    book_of,
    forget_it_began,
    learned,
)
from tests.jobs.workers import run, until

WHOLE = 10_000.0


def a_machine() -> OutsideWorld:
    """A machine of which jobs may use 9,000 MB."""
    world = OutsideWorld()
    world.ram = Pool(WHOLE, 9_500.0)
    return world


@pytest.mark.acceptance("cjm-substrate 42")
def test_what_was_never_measured_runs_beside_others_under_a_share_until_it_ended_well(tmp_path: Path) -> None:
    async def work() -> None:
        go, fresh_go, count = tmp_path / "go", tmp_path / "fresh", tmp_path / "count"
        async with a_runtime(tmp_path, a_capability("known"), world=a_machine()) as jobs:
            jobs.register(a_capability("fresh"))
            busy = await jobs.submit("known", {"path": str(go)}, action="until")
            await began(go)

            # Beside another job; a failure teaches nothing, so the next run is a first run as well.
            failing = await jobs.submit(
                "fresh", {"times": 1, "path": str(count)}, action="fail_first", control={"max_attempts": 1}
            )
            assert (await jobs.wait(failing.id)).state is JobState.FAILED
            assert learned(jobs, "fresh") is None
            first = await jobs.submit("fresh", {"path": str(fresh_go)}, action="until")
            await began(fresh_go)
            share = book_of(jobs).reserved()["fresh"][RAM]
            assert jobs.job(busy.id).state is JobState.RUNNING
            assert share == pytest.approx(9_000 / 4)
            fresh_go.touch()
            await jobs.wait(first.id)

            # One that ended well did teach: from now on its peak is reserved.
            profile = learned(jobs, "fresh")
            assert profile is not None
            fresh_go.unlink()
            forget_it_began(fresh_go)
            second = await jobs.submit("fresh", {"path": str(fresh_go)}, action="until")
            await began(fresh_go)
            assert book_of(jobs).reserved()["fresh"][RAM] == profile.ram_mb < share
            fresh_go.touch()
            await jobs.wait(second.id)

            # Another configuration is measured again.
            await jobs.configure("fresh", {"other": True})
            assert learned(jobs, "fresh") is None
            fresh_go.unlink()
            forget_it_began(fresh_go)
            third = await jobs.submit("fresh", {"path": str(fresh_go)}, action="until")
            await began(fresh_go)
            assert book_of(jobs).reserved()["fresh"][RAM] == pytest.approx(9_000 / 4)
            fresh_go.touch()
            await jobs.wait(third.id)
            assert learned(jobs, "fresh") is not None
            assert jobs.job(busy.id).state is JobState.RUNNING
            go.touch()
            await jobs.wait(busy.id)

    run(work())


def test_a_first_run_that_hangs_holds_its_own_lane_and_no_other(tmp_path: Path) -> None:
    async def work() -> None:
        go = tmp_path / "go"
        async with a_runtime(tmp_path, a_capability("known"), lanes=2) as jobs:
            jobs.register(a_capability("hanging"))
            jobs.register(a_capability("fresh"))
            stuck = await jobs.submit("hanging", {"path": str(go)}, action="until")
            behind = await jobs.submit("hanging", {"value": 1}, priority=9)
            await began(go)

            assert [await jobs.call("known", {"value": number}) for number in range(3)] == [0, 1, 2]
            assert await jobs.call("fresh", {"value": 3}) == 3
            assert jobs.job(stuck.id).state is JobState.RUNNING
            assert jobs.job(behind.id).state is JobState.PENDING
            go.touch()
            await jobs.drained()

    run(work())


def test_what_a_manifest_declares_is_reserved_until_the_needs_are_known(tmp_path: Path) -> None:
    async def work() -> None:
        go, other_go = tmp_path / "go", tmp_path / "other"
        async with a_runtime(tmp_path, world=a_machine()) as jobs:
            jobs.register(a_capability("one", memory_limit=5_000))
            jobs.register(a_capability("two", memory_limit=50_000))
            first = await jobs.submit("one", {"path": str(go)}, action="until")
            await began(go)
            second = await jobs.submit("two", {"path": str(other_go)}, action="until")
            await until(lambda: jobs.job(second.id).block_reason is not None)

            reason = jobs.job(second.id).block_reason
            assert book_of(jobs).reserved() == {"one": {RAM: 5_000}}
            # No more than the budget can be reserved, however much is declared.
            assert reason == "needs 9,000 MB of memory, and running jobs leave 4,000 MB"
            go.touch()
            other_go.touch()
            assert {(await jobs.wait(job.id)).state for job in (first, second)} == {JobState.COMPLETED}
            assert book_of(jobs).reserved() == {}

    run(work())


def test_on_a_crowded_machine_a_first_run_starts_and_leaves_the_others_what_is_free(tmp_path: Path) -> None:
    async def work() -> None:
        go = tmp_path / "go"
        world = a_machine()
        async with a_runtime(tmp_path, a_capability("known"), world=world) as jobs:
            await jobs.worker("known").stop()
            world.ram = Pool(WHOLE, 400.0)
            await book_of(jobs).look()
            jobs.register(a_capability("fresh"))
            first = await jobs.submit("fresh", {"path": str(go)}, action="until")
            await began(go)

            assert book_of(jobs).reserved()["fresh"][RAM] == pytest.approx(400 / 4)
            assert await jobs.call("known", {"value": 1}) == 1
            go.touch()
            await jobs.wait(first.id)

    run(work())


def test_what_was_learned_with_another_configuration_counts_as_declared(tmp_path: Path) -> None:
    async def work() -> None:
        go = tmp_path / "go"
        go.touch()
        world = OutsideWorld()
        world.ram = Pool(400.0, 390.0)
        async with a_runtime(tmp_path, world=world, lanes=1) as jobs:
            jobs.register(a_capability("large"))
            await jobs.call("large", {"path": str(go), "mb": 150}, action="until")
        async with a_runtime(tmp_path, world=world, lanes=4) as jobs:
            jobs.register(a_capability("large"), config={"size": "other"})
            instance = jobs.queue.state.find_instance("large")
            await book_of(jobs).look()

            assert instance is not None
            assert learned(jobs, "large") is None
            limit = book_of(jobs).limit(instance)
            assert limit is not None
            assert limit.source == "share"
            assert limit.megabytes > 150 * 1.25 > 400 * 0.9 / 4

    run(work())


# ------------------------------------------------------------------ lanes


def test_a_capability_that_hangs_in_all_its_places_leaves_a_lane_to_the_others(tmp_path: Path) -> None:
    async def work() -> None:
        go = tmp_path / "go"
        async with a_runtime(tmp_path, a_capability("greedy", concurrency=8), lanes=3) as jobs:
            jobs.register(a_capability("other"))
            stuck = [await jobs.submit("greedy", {"path": str(go)}, action="until") for _ in range(4)]
            await began(go)

            assert [await jobs.call("other", {"value": number}) for number in range(3)] == [0, 1, 2]
            assert [jobs.job(job.id).state.value for job in stuck].count("running") == 2
            go.touch()
            await jobs.drained()

    run(work())


def test_further_instances_of_a_capability_do_not_get_the_last_lane_either(tmp_path: Path) -> None:
    async def work() -> None:
        go = tmp_path / "go"
        async with a_runtime(tmp_path, a_capability("greedy"), a_capability("other"), lanes=2) as jobs:
            twin = jobs.add_instance("greedy", "twin")
            stuck = [await jobs.submit(name, {"path": str(go)}, action="until") for name in ("greedy", twin)]
            await began(go)

            assert await jobs.call("other", {"value": 1}) == 1
            assert jobs.job(stuck[1].id).state is JobState.PENDING
            go.touch()
            await jobs.drained()

    run(work())


def test_a_capability_that_is_registered_and_not_used_yet_has_its_lane(tmp_path: Path) -> None:
    async def work() -> None:
        go, manifest = tmp_path / "go", tmp_path / "later.toml"
        manifest.write_text(f'name = "later"\nobject = "queueing:Worker"\npath = ["{_samples()}"]\n')
        CapabilityRegistry(tmp_path / "registry").add(manifest)
        async with a_runtime(tmp_path, a_capability("greedy", concurrency=8), lanes=2) as jobs:
            stuck = [await jobs.submit("greedy", {"path": str(go)}, action="until") for _ in range(2)]
            await began(go)

            assert await jobs.call("later", {"value": 1}) == 1
            assert [jobs.job(job.id).state for job in stuck] == [JobState.RUNNING, JobState.PENDING]
            go.touch()
            await jobs.drained()

    run(work())


def test_the_only_capability_has_every_lane(tmp_path: Path) -> None:
    async def work() -> None:
        go = tmp_path / "go"
        async with a_runtime(tmp_path, a_capability("only", concurrency=8), lanes=3) as jobs:
            running = [await jobs.submit("only", {"path": str(go)}, action="until") for _ in range(3)]
            await until(lambda: {jobs.job(job.id).state for job in running} == {JobState.RUNNING})
            go.touch()
            await jobs.drained()

    run(work())


# ------------------------------------------------------------------ what cannot be measured, and what does not end


def test_jobs_on_a_card_that_cannot_be_measured_take_turns_and_stop_nobody_else(tmp_path: Path) -> None:
    async def work() -> None:
        gpu, go = a_gpu(tmp_path), tmp_path / "go"
        world = OutsideWorld(gpu)
        async with a_runtime(tmp_path, a_capability("known"), world=world) as jobs:
            for name in ("one", "two"):
                jobs.register(a_model(name), config={"gpu": str(gpu)})
                await jobs.call(name, {"mb": 3_000})
                await jobs.worker(name).stop()
            world.gpus = ()
            await book_of(jobs).look()
            first = await jobs.submit("one", {"mb": 3_000, "until": str(go)})
            await began(go)
            second = await jobs.submit("two", {"mb": 3_000})
            await until(lambda: jobs.job(second.id).block_reason is not None)

            assert "take turns" in str(jobs.job(second.id).block_reason)
            assert await jobs.call("known", {"value": 1}) == 1
            jobs.register(a_capability("fresh"))
            assert await jobs.call("fresh", {"value": 2}) == 2
            go.touch()
            assert {(await jobs.wait(job.id)).state for job in (first, second)} == {JobState.COMPLETED}

    run(work())


@pytest.mark.slow
@pytest.mark.parametrize("is_long", [pytest.param(False, marks=pytest.mark.slow), True])
def test_nobody_stands_back_for_a_job_that_waits_for_one_that_does_not_end(
    tmp_path: Path, is_long: bool
) -> None:
    async def work() -> None:
        go, there = tmp_path / "go", tmp_path / "there"
        there.touch()
        world = OutsideWorld()
        world.ram = Pool(800.0, 790.0)
        rules = Rules(lanes=4, rescan=0.05, calm=0.05, starving=0.0, long=0.0 if is_long else 300.0)
        async with a_runtime(tmp_path, world=world, rules=rules) as jobs:
            for name in ("hanging", "large", "small"):
                jobs.register(a_capability(name, memory_limit=700))
                mb = 50 if name == "small" else 400
                await jobs.call(name, {"path": str(there), "mb": mb}, action="until")
                await jobs.worker(name).stop()
            stuck = await jobs.submit("hanging", {"path": str(go), "mb": 300}, action="until")
            await began(go)
            large = await jobs.submit("large", {"path": str(there), "mb": 300}, action="until")
            await until(lambda: jobs.job(large.id).block_reason is not None)
            small = await jobs.submit("small", {"value": 1})
            if is_long:
                assert (await jobs.wait(small.id)).result == 1
            await book_of(jobs).look()
            waits = jobs.job(small.id).state is JobState.PENDING
            go.touch()
            await jobs.drained()

            assert waits is not is_long
            assert jobs.job(stuck.id).state is JobState.COMPLETED

    run(work())


def _samples() -> str:
    return str(Path(__file__).with_name("samples"))
