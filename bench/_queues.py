"""Celery and dramatiq on Redis, set up as those who know them would, for the bench of jobs.

They run in the interpreter that `BENCH_QUEUES_PYTHON` names, this one by default, with a `redis-server` of
their own on a socket. Nothing of theirs is imported here.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from json import loads
from pathlib import Path
from typing import NamedTuple

from bench._processes import Figures, Sizes

ROOT = Path(__file__).resolve().parents[1]
STOPPING = 15.0
"""Seconds that a process has to end when it is script to."""
MEASURING = 300.0

CELERY = """
from celery import Celery

URL = "redis+socket://SOCKET"
app = Celery("bench_celery", broker=URL, backend=URL)
app.conf.update(
    accept_content=["json"],
    broker_connection_retry_on_startup=True,
    worker_disable_rate_limits=True,
    worker_enable_remote_control=False,
    worker_prefetch_multiplier=16,
)


@app.task(name="echo")
def echo(value):
    return value


def run(measure, sizes):
    with app.producer_pool.acquire(block=True) as producer:
        return measure(
            lambda given: echo.apply_async((given,), producer=producer),
            lambda result: result.get(timeout=60),
            sizes,
        )
"""
DRAMATIQ = """
import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

URL = "unix://SOCKET"
broker = RedisBroker(url=URL)
broker.add_middleware(Results(backend=RedisBackend(url=URL)))
dramatiq.set_broker(broker)


@dramatiq.actor(store_results=True)
def echo(value):
    return value


def run(measure, sizes):
    return measure(echo.send, lambda sent: sent.get_result(block=True, timeout=60_000), sizes)
"""
SUBMITTER = """
import json, sys
from bench._processes import Sizes, measure
import bench_NAME
print(json.dumps(bench_NAME.run(measure, Sizes(*map(int, sys.argv[1:])))))
"""


class QueueFailed(Exception):
    """Somebody else's queue is installed and yet did not get through a round."""


class OtherQueue(NamedTuple):
    """A queue of somebody else's, in one way of setting it up."""

    name: str
    """Of the package."""
    label: str
    """Of the row."""
    module: str
    """What the workers and the submitter load."""
    workers: Sequence[Sequence[str]]
    """Arguments of the interpreter, for each process that is started."""
    environment: dict[str, str]
    """What is set for all of its processes."""


_QUIET = ("--loglevel", "ERROR", "--without-gossip", "--without-mingle", "--without-heartbeat")
_CELERY = ("-m", "celery", "-A", "bench_celery", "worker", *_QUIET)
# Of Celery's pools, solo spends less processor time on a job and answers sooner on a quiet machine; prefork is
# the usual one and was at times ahead on a busy machine. So both have a row. Results over rpc:// and results
# collected in one go cost more. Other prefetch multipliers, -O fair, a pool of threads, no expiry, one priority
# step and RESP 2 made no difference that stood out from the noise.
OTHERS = (
    OtherQueue(
        name="celery",
        label="celery, two solo workers",
        module=CELERY,
        workers=[(*_CELERY, "--pool", "solo", "--hostname", f"{name}@bench") for name in "ab"],
        environment={},
    ),
    OtherQueue(
        name="celery",
        label="celery, a prefork pool of two",
        module=CELERY,
        workers=[(*_CELERY, "--pool", "prefork", "--concurrency", "2")],
        environment={},
    ),
    # An idle worker asks Redis again after a pause, of 1 s at most unless told otherwise. With a timeout of 2
    # it is 1 ms; with 1 it is none at all, and the asking takes the processor from the jobs.
    OtherQueue(
        name="dramatiq",
        label="dramatiq, two processes",
        module=DRAMATIQ,
        workers=[("-m", "dramatiq", "bench_dramatiq", "--processes", "2", "--threads", "1")],
        environment={"dramatiq_worker_timeout": "2", "dramatiq_queue_prefetch": "64"},
    ),
)
ABOUT = {
    "celery": (
        "prefetch multiplier 16, JSON, one producer kept open, results by publish and subscribe; no rate limits,",
        "remote control, gossip, mingle, heartbeat; a job counts as done once it begins (the default), so a",
        "dying worker loses its own",
    ),
    "dramatiq": (
        "one thread each, prefetch 64, worker timeout 2 (an idle worker asks again after 1 ms), results by",
        "blocking pop; a job counts as done once it ended, so that of a dying worker is given out again",
    ),
}
"""How each is set up and what it keeps when a worker dies."""

LOGGED = ("--appendonly", "yes", "--appendfsync", "no")
"""Redis writes to its log before it answers and leaves the flush to the system, as SQLite does with a
write-ahead log and `synchronous = NORMAL`, which the durable queue uses: both outlive the death of every
process, and neither is sure to outlive the loss of power."""
IN_MEMORY = ("--appendonly", "no")
"""Redis keeps nothing through its own death."""


@cache
def python() -> str:
    """The interpreter that their queues run in."""
    return os.environ.get("BENCH_QUEUES_PYTHON", sys.executable)


@cache
def version(name: str) -> str | None:
    """The version of that queue; `None` where it or its client for Redis is not installed."""
    script = f"import redis, {name}; from importlib.metadata import version; print(version({name!r}))"
    done = subprocess.run([python(), "-c", script], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def missing(name: str) -> str | None:
    """Why that queue cannot be measured here; `None` if it can."""
    if shutil.which("redis-server") is None:
        return "not measured: no redis-server on the PATH"
    if version(name) is None:
        return f'not measured: "{name}[redis]" is not installed (BENCH_QUEUES_PYTHON names an interpreter)'
    return None


@contextmanager
def _process(command: Sequence[str], folder: str, environment: dict[str, str], log: Path) -> Generator[None]:
    """A process that is gone when the block is left."""
    with log.open("ab") as written:
        served = subprocess.Popen(command, cwd=folder, env=environment, stdout=written, stderr=written)
    try:
        yield
    finally:
        served.terminate()
        try:
            served.wait(STOPPING)
        except subprocess.TimeoutExpired:
            served.kill()
            served.wait()


@contextmanager
def _redis(folder: str, keeping: Sequence[str]) -> Generator[str]:
    """A Redis of our own on a socket of its own."""
    place = Path(folder, "redis.sock")
    command = ["redis-server", "--port", "0", "--unixsocket", str(place), "--save", "", "--dir", folder]
    with _process([*command, *keeping], folder, dict(os.environ), Path(folder, "redis.log")):
        until = time.monotonic() + STOPPING
        while not place.exists():
            if time.monotonic() > until:
                raise QueueFailed(f"redis-server did not start: {_last(Path(folder, 'redis.log'))}")
            time.sleep(0.01)
        yield str(place)


def measured(queue: OtherQueue, keeping: Sequence[str], sizes: Sizes) -> Figures:
    """One round of that queue, with a fresh Redis and fresh workers.

    Raises:
        QueueFailed: it did not get through; the message says why.
    """
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-"))
        socket = stack.enter_context(_redis(folder, keeping))
        Path(folder, f"bench_{queue.name}.py").write_text(
            queue.module.replace("SOCKET", socket), encoding="utf-8"
        )
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join((folder, str(ROOT))), **queue.environment}
        log = Path(folder, "workers.log")
        for arguments in queue.workers:
            stack.enter_context(_process([python(), *arguments], folder, environment, log))
        code = SUBMITTER.replace("NAME", queue.name)
        try:
            done = subprocess.run(
                [python(), "-c", code, *map(str, sizes)],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=MEASURING,
            )
        except subprocess.TimeoutExpired as error:
            raise QueueFailed(f"it took more than {MEASURING:.0f} s; {_last(log)}") from error
        if done.returncode:
            said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            raise QueueFailed(f"{said[-1]}; {_last(log)}")
        return Figures(*loads(done.stdout))


def _last(log: Path) -> str:
    said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return f"its processes said: {said[-1]}" if said else "its processes said nothing"
