"""What a job costs through the durable queue: latency of one, throughput of many, memory of ten thousand.

Beside the floor, a bare `multiprocessing` pipe to a warm process; beside `ProcessPoolExecutor`; and beside
Celery and dramatiq on Redis where they are there. Theirs runs in the interpreter that `BENCH_QUEUES_PYTHON`
names, this one by default, and with a `redis-server` of its own. All of it in one run on one machine.
"""

import asyncio
import multiprocessing
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from json import loads
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from failwell.jobs.manifest import Manifest
from failwell.jobs.runtime import Runtime

QUICK = "--quick" in sys.argv
ONE_BY_ONE = 100 if QUICK else 2000
MANY = 400 if QUICK else 10_000
AT_ONCE = 64
CAPABILITY = """
def echo(value):
    return value
"""
CELERY = """
import sys, time, json, statistics
from celery import Celery
from celery.result import ResultSet
app = Celery("bench_queues", broker=URL, backend=URL)
app.conf.update(worker_prefetch_multiplier=64, broker_connection_retry_on_startup=True)

@app.task(name="echo")
def echo(value):
    return value

def main(one_by_one, many):
    echo.delay(0).get(timeout=30)
    took = []
    for number in range(one_by_one):
        begun = time.perf_counter()
        echo.delay(number).get(timeout=30, interval=0.0001)
        took.append(time.perf_counter() - begun)
    begun = time.perf_counter()
    ResultSet([echo.delay(number) for number in range(many)]).get(timeout=120)
    print(json.dumps([statistics.median(took), many / (time.perf_counter() - begun)]))
"""
DRAMATIQ = """
import sys, time, json, statistics
import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend
broker = RedisBroker(url=URL)
broker.add_middleware(Results(backend=RedisBackend(url=URL)))
dramatiq.set_broker(broker)

@dramatiq.actor(store_results=True)
def echo(value):
    return value

def main(one_by_one, many):
    echo.send(0).get_result(block=True, timeout=30000)
    took = []
    for number in range(one_by_one):
        begun = time.perf_counter()
        echo.send(number).get_result(block=True, timeout=30000)
        took.append(time.perf_counter() - begun)
    begun = time.perf_counter()
    for message in [echo.send(number) for number in range(many)]:
        message.get_result(block=True, timeout=120000)
    print(json.dumps([statistics.median(took), many / (time.perf_counter() - begun)]))
"""
Figures = tuple[float, float | None]
"""Seconds for one, and how many a second."""


def echo(value: Any) -> Any:
    return value


def _serve(end: Connection) -> None:
    while (given := end.recv()) is not None:
        end.send(given)


def pipe() -> Figures:
    """A round trip over a bare pipe."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=_serve, args=(theirs,))
    process.start()
    took: list[float] = []
    for number in range(ONE_BY_ONE):
        begun = time.perf_counter()
        ours.send({"value": number})
        ours.recv()
        took.append(time.perf_counter() - begun)
    ours.send(None)
    process.join()
    return statistics.median(took), None


def pool() -> Figures:
    """The standard library's pool of processes, which forgets everything when it dies."""
    took: list[float] = []
    with ProcessPoolExecutor(2) as made:
        made.submit(echo, 0).result()
        for number in range(ONE_BY_ONE):
            begun = time.perf_counter()
            made.submit(echo, number).result()
            took.append(time.perf_counter() - begun)
        begun = time.perf_counter()
        for future in [made.submit(echo, number) for number in range(MANY)]:
            future.result()
        rate = MANY / (time.perf_counter() - begun)
    return statistics.median(took), rate


async def queue(folder: str) -> tuple[Figures, float]:
    """The durable queue with two workers; and by how many MB the host grew over all of its jobs."""
    async with Runtime(Path(folder, "state"), lanes=16, history=100) as jobs:
        for name in ("a", "b"):
            jobs.register(Manifest(name=name, object="bench_echo:echo", path=(folder,), concurrency=8))
            await jobs.call(name, {"value": 0})
        took: list[float] = []
        for number in range(ONE_BY_ONE):
            begun = time.perf_counter()
            await jobs.call("a", {"value": number})
            took.append(time.perf_counter() - begun)
        before = _resident()
        left = iter(range(MANY))

        async def lane(name: str) -> None:
            for number in left:
                await jobs.call(name, {"value": number})

        begun = time.perf_counter()
        await asyncio.gather(*(lane("ab"[n % 2]) for n in range(AT_ONCE)))
        rate = MANY / (time.perf_counter() - begun)
        assert jobs.counts()["completed"] == ONE_BY_ONE + MANY + 2
        return (statistics.median(took), rate), _resident() - before


def _resident() -> float:
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1048576
    except OSError:
        return 0.0


@contextmanager
def redis(folder: str) -> Generator[str | None]:
    """A Redis of our own on a socket of its own; `None` where there is none."""
    program = shutil.which("redis-server")
    if program is None:
        yield None
        return
    place = Path(folder, "redis.sock")
    served = subprocess.Popen(
        [program, "--port", "0", "--unixsocket", str(place), "--save", "", "--dir", folder],
        stdout=subprocess.DEVNULL,
    )
    try:
        while not place.exists() and served.poll() is None:
            time.sleep(0.01)
        yield str(place)
    finally:
        served.terminate()
        served.wait()


def elsewhere(name: str, folder: str, socket: str) -> Figures | None:
    """Celery or dramatiq with two worker processes; `None` where it is not installed."""
    python = os.environ.get("BENCH_QUEUES_PYTHON", sys.executable)
    asked = [python, "-c", f"import redis, {name}"]
    if subprocess.run(asked, capture_output=True, check=False).returncode:
        return None
    url = f"redis+socket://{socket}" if name == "celery" else f"unix://{socket}"
    text = (
        CELERY.replace("sys.argv[1] if len(sys.argv) > 3 else URL", "URL") if name == "celery" else DRAMATIQ
    )
    Path(folder, f"bench_{name}.py").write_text(f"URL = {url!r}\n{text}")
    command = (
        [python, "-m", "celery", "-A", "bench_celery", "worker", "-c", "2", "-l", "ERROR", "--without-gossip"]
        if name == "celery"
        else [python, "-m", "dramatiq", "bench_dramatiq", "--processes", "2", "--threads", "1"]
    )
    served = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        code = f"import bench_{name}; bench_{name}.main({ONE_BY_ONE}, {MANY})"
        done = subprocess.run(
            [python, "-c", code], cwd=folder, capture_output=True, text=True, check=False, timeout=300
        )
    finally:
        served.terminate()
        served.wait()
    if done.returncode:
        print(f"  {name} could not be measured: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    one, rate = loads(done.stdout)
    return one, rate


def main() -> None:
    multiprocessing.set_start_method("fork")
    found: dict[str, Figures | None] = {"a bare multiprocessing pipe": pipe(), "ProcessPoolExecutor": pool()}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "bench_echo.py").write_text(CAPABILITY)
        own, grew = asyncio.run(queue(folder))
        found["the durable queue"] = own
        with redis(folder) as socket:
            for name in ("celery", "dramatiq"):
                found[f"{name} on Redis"] = None if socket is None else elsewhere(name, folder, socket)
    print(f"jobs, two workers{'':<17} {'one, median':>12} {'many at once':>14}")
    for name, figures in found.items():
        if figures is None:
            print(f"  {name:<32} not installed")
            continue
        rate = "" if figures[1] is None else f"{figures[1]:>8,.0f} /s"
        print(f"  {name:<32} {figures[0] * 1e6:>9,.0f} µs {rate:>14}".rstrip())
    print(f"  aim of the durable queue         {'≤ 500 µs':>12} {'≥ 4,000 /s':>14}")
    print(f"  the host grew by {grew:.1f} MB over {MANY:,} jobs")


if __name__ == "__main__":
    main()
