"""What a worker costs: a warm call, a start, and the time until a death is known.

Beside the floor, a bare `multiprocessing` pipe to a warm process, and beside `ProcessPoolExecutor`. The
figures are medians; a loaded machine adds to all of them alike.
"""

import asyncio
import multiprocessing
import os
import signal
import statistics
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from failwell.fault.base import Fault
from failwell.jobs.manifest import Manifest
from failwell.jobs.supervisor import SupervisedWorker

QUICK = "--quick" in sys.argv
CALLS = 200 if QUICK else 5000
DEATHS = 3 if QUICK else 40
CAPABILITY = """
import time

class Echo:
    def execute(self, value):
        return value

    def wait(self):
        time.sleep(60)
"""


def echo(value: Any) -> Any:
    return value


def _serve(end: Connection) -> None:
    while (given := end.recv()) is not None:
        end.send(given)


def pipe() -> float:
    """Seconds for one round trip over a bare pipe."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=_serve, args=(theirs,))
    process.start()
    took: list[float] = []
    for number in range(CALLS):
        begun = time.perf_counter()
        ours.send({"value": number})
        ours.recv()
        took.append(time.perf_counter() - begun)
    ours.send(None)
    process.join()
    return statistics.median(took)


def pool() -> float:
    """Seconds for one call through the standard library's pool of processes."""
    took: list[float] = []
    with ProcessPoolExecutor(1) as made:
        made.submit(echo, 0).result()
        for number in range(CALLS):
            begun = time.perf_counter()
            made.submit(echo, number).result()
            took.append(time.perf_counter() - begun)
    return statistics.median(took)


async def worker(folder: str) -> dict[str, float]:
    """Seconds for a warm call, for a start, and until a killed worker is known to be gone."""
    made = SupervisedWorker(Manifest(name="echo", object="bench_echo:Echo", path=(folder,)))
    calls: list[float] = []
    starts: list[float] = []
    deaths: list[float] = []
    try:
        await made.start()
        for number in range(CALLS):
            begun = time.perf_counter()
            await made.call(str(number), {"value": number})
            calls.append(time.perf_counter() - begun)
        for _ in range(DEATHS):
            deaths.append(await _death(made))
            await made.stop()
            begun = time.perf_counter()
            await made.start()
            starts.append(time.perf_counter() - begun)
            await made.call("well", {"value": 1})
    finally:
        await made.stop()
    return {
        "call": statistics.median(calls),
        "start": statistics.median(starts),
        "death": statistics.median(deaths),
    }


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


def main() -> None:
    multiprocessing.set_start_method("fork")
    floor, standard = pipe(), pool()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "bench_echo.py").write_text(CAPABILITY)
        found = asyncio.run(worker(folder))
    rows = [
        ("a round trip over a bare multiprocessing pipe", f"{floor * 1e6:.0f} µs", "the floor"),
        ("a call through ProcessPoolExecutor", f"{standard * 1e6:.0f} µs", ""),
        ("a warm call to a worker", f"{found['call'] * 1e6:.0f} µs", "aim: 150 µs"),
        ("from SIGKILL to a classified failure", f"{found['death'] * 1e3:.1f} ms", "aim: 5 ms"),
        ("a start, until it takes calls", f"{found['start'] * 1e3:.0f} ms", ""),
    ]
    print("workers")
    for name, figure, aim in rows:
        print(f"  {name:<48} {figure:>10}  {aim}".rstrip())


if __name__ == "__main__":
    main()
