"""What a worker costs: a warm call, a start, and the time until a death is known and recorded.

Beside the floor, a bare `multiprocessing` pipe to a warm process, and beside `ProcessPoolExecutor`. Each
figure comes with its spread; a loaded machine adds to all of them alike.
"""

import asyncio
import multiprocessing
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench._processes import (
    Sizes,
    check,
    percentile,
    pipe,
    pool,
    small,
)
from failwell.errors.fault import Fault
from failwell.jobs.manifest import Manifest
from failwell.jobs.runtime import Runtime
from failwell.jobs.workers.protocol import Supervision
from failwell.jobs.workers.supervisor import SupervisedWorker

QUICK = "--quick" in sys.argv
CALLS = 200 if QUICK else 5000
DEATHS = 3 if QUICK else 60
CALL_AIM = 150e-6
DEATH_AIM = 5e-3
RECORD_AIM = 10e-3
CAPABILITY = """
import time

class Echo:
    def execute(self, value):
        return value

    def wait(self):
        time.sleep(60)
"""


class Samples(NamedTuple):
    """Seconds, each time."""

    calls: list[float]
    starts: list[float]
    deaths: list[float]


async def worker(folder: str) -> Samples:
    """A warm call, a start, and the time until a killed worker is known to be gone, many times each."""
    made = SupervisedWorker(Manifest(name="echo", object="bench_echo:Echo", path=(folder,)))
    found = Samples([], [], [])
    try:
        await made.start()
        for number in range(CALLS):
            given = small(number)
            begun = time.perf_counter()
            got = await made.call(str(number), {"value": given})
            found.calls.append(time.perf_counter() - begun)
            check(given, got)
        for _ in range(DEATHS):
            found.deaths.append(await _death(made))
            await made.stop()
            begun = time.perf_counter()
            await made.start()
            found.starts.append(time.perf_counter() - begun)
            await made.call("well", {"value": 1})
    finally:
        await made.stop()
    return found


async def _death(made: SupervisedWorker) -> float:
    waiting = asyncio.ensure_future(made.call("dying", action="wait"))
    await asyncio.sleep(0.05)
    assert made.pid is not None
    begun = time.perf_counter()
    os.kill(made.pid, signal.SIGKILL)
    try:
        await waiting
    except Fault:
        return time.perf_counter() - begun
    raise AssertionError("a killed worker answered")


async def records(folder: str) -> list[float]:
    """The seconds from the death of a worker until the failure of its job is recorded, many times."""
    supervision = Supervision(deaths=DEATHS + 1)
    found: list[float] = []
    async with Runtime(Path(folder, "state"), supervision=supervision) as jobs:
        jobs.register(Manifest(name="echo", object="bench_echo:Echo", path=(folder,)))
        for number in range(DEATHS):
            # An answer shows that the worker is ready, and that the memory of the capability is known.
            await jobs.call("echo", {"value": number})
            job = await jobs.submit("echo", action="wait", control={"max_attempts": 1})
            await asyncio.sleep(0.05)
            pid = jobs.worker("echo").pid
            assert pid is not None
            killed = time.perf_counter()
            os.kill(pid, signal.SIGKILL)
            # Nobody is told of an end that is not in the store.
            ended = await jobs.wait(job.id)
            found.append(time.perf_counter() - killed)
            assert ended.error is not None
            assert ended.error.kind == "worker.oom"
    return found


def line(name: str, samples: Sequence[float], unit: str, note: str = "") -> str:
    """One row: median, p95 and worst."""
    scale, digits = {"µs": (1e6, 0), "ms": (1e3, 1)}[unit]
    spread = (statistics.median(samples), percentile(samples, 0.95), max(samples))
    figures = " ".join(f"{figure * scale:>7,.{digits}f} {unit}" for figure in spread)
    return f"  {name:<46} {figures}  {note}".rstrip()


def within(samples: Sequence[float], aim: float, said: str) -> str:
    """The aim, and how many samples were within it."""
    return f"aim: {said}, met by {sum(one <= aim for one in samples):,} of {len(samples):,}"


def main() -> None:
    multiprocessing.set_start_method("fork")
    floor, standard = pipe(CALLS).one, pool(1, Sizes(CALLS, 0)).one
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        Path(folder, "bench_echo.py").write_text(CAPABILITY, encoding="utf-8")
        found = asyncio.run(worker(folder))
        recorded = asyncio.run(records(folder))
    print(f"{'workers':<48} {'median':>10} {'p95':>10} {'worst':>10}")
    print(line("a round trip over a bare multiprocessing pipe", floor, "µs", "the floor"))
    print(line("a call through ProcessPoolExecutor", standard, "µs"))
    print(line("a warm call to a worker", found.calls, "µs", within(found.calls, CALL_AIM, "150 µs")))
    print(
        line(
            "from SIGKILL to a classified failure",
            found.deaths,
            "ms",
            within(found.deaths, DEATH_AIM, "5 ms"),
        )
    )
    late = percentile(recorded, 0.99)
    target = f"target: p99 ≤ {RECORD_AIM * 1e3:.0f} ms: {late * 1e3:.1f} ms, {'met' if late <= RECORD_AIM else 'missed'}"
    print(line("from SIGKILL to the durable record", recorded, "ms", target))
    print(line("a start, until it takes calls", found.starts, "ms"))


if __name__ == "__main__":
    main()
