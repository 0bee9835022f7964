"""One worker, asked for many things at once: everything is answered, and nothing is left of any process."""

import asyncio
import os
import random
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest

from failwell.errors.fault import Fault
from failwell.jobs.workers.protocol import Died, Started, Supervision
from failwell.jobs.workers.supervisor import SupervisedWorker
from tests.jobs.workers import a_worker, is_alive, run


async def _ask(worker: SupervisedWorker, job: str, rng: random.Random) -> Any:
    """One thing of all that can be asked, at some moment."""
    await asyncio.sleep(rng.random() * 0.5)

    async def killed() -> None:
        if worker.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(worker.pid, signal.SIGKILL)

    async def cancelled() -> None:
        for running in worker.in_flight[:1]:
            await worker.cancel(running, grace=rng.choice([0.0, 0.1]))

    async def left(work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.ensure_future(work)
        await asyncio.sleep(rng.random() * 0.05)
        task.cancel()
        await asyncio.wait([task])

    patient = {"seconds": 0.2}
    asked: list[Callable[[], Coroutine[Any, Any, Any]]] = [
        lambda: worker.call(job, {"value": job}),
        lambda: worker.call(job, patient, action="patient"),
        lambda: worker.call(job, patient, action="patient", timeout=0.05),
        lambda: left(worker.call(job, patient, action="patient")),
        lambda: left(worker.stop()),
        worker.start,
        worker.restart,
        worker.stop,
        lambda: worker.stop(grace=0),
        killed,
        cancelled,
    ]
    with suppress(Fault):
        await rng.choice(asked)()


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3))])
def test_whatever_is_asked_of_a_worker_at_the_same_time_is_answered(seed: int) -> None:
    rng = random.Random(seed)
    care = Supervision(deaths=1000)

    async def work() -> Any:
        limits: dict[str, Any] = {"concurrency": 3, "cancel_grace": 0.2, "stop_grace": 0.5}
        async with a_worker("rough:Rough", config={"slow": 0.02}, care=care, **limits) as (worker, told):
            async with asyncio.timeout(40):
                await asyncio.gather(*(_ask(worker, f"job-{n}", rng) for n in range(50)))
                last = await worker.call("last", {"value": "last"})
            in_flight = worker.in_flight
        return last, in_flight, told

    last, in_flight, told = run(work())

    assert (last, in_flight) == ("last", ())
    pids = [one.pid for one in told.of(Started)]
    assert sorted(one.pid for one in told.of(Died)) == sorted(pids)
    assert not any(is_alive(pid) for pid in pids)
