# ruff: noqa: T201
"""Several hosts in processes of their own on one store, and two campaigns with them.

`python -m tests.jobs.many_hosts kill FOLDER HOSTS KILLS SEED` kills hosts at random under load;
`python -m tests.jobs.many_hosts flood FOLDER HOSTS SUBMITTERS JOBS BATCH` has many processes submit at once.
"""

import asyncio
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from failwell.jobs.capabilities import CapabilityRegistry
from failwell.jobs.client.client import Client
from failwell.jobs.queue.state import Rules
from failwell.jobs.runtime import Runtime
from failwell.jobs.store.sqlite import JobStore
from failwell.jobs.workers.protocol import Supervision
from tests.jobs.queues import OutsideWorld
from tests.jobs.workers import SAMPLES

ROOT = Path(__file__).resolve().parents[2]
BUDGET = 9_000.0
"""Megabytes of the GPU that jobs may use together."""
_MOST_AT_ONCE = 150
"""Jobs that are submitted between two kills."""


class HostProcess:
    """One host, to be suspended and killed."""

    def __init__(self, folder: Path, lanes: int, *warm: str) -> None:
        self.process = _start("serve", folder, lanes, *warm)
        self.pid = self.process.pid

    def is_ready(self) -> bool:
        assert self.process.stdout is not None
        return self.process.stdout.readline() == "ready\n"

    def kill(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
        if number == signal.SIGKILL:
            self.process.communicate()

    def end(self) -> None:
        """Let it end by itself."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.communicate("")


def _start(command: str, *words: object) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "tests.jobs.many_hosts", command, *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
    )


@contextmanager
def started_hosts(
    folder: Path, number: int, *, lanes: int, warm: Sequence[str] = ()
) -> Generator[list[HostProcess]]:
    """Hosts that end with the block, with workers for `warm`. Those that are added to the list end with it too."""
    hosts = [HostProcess(folder, lanes, *warm) for _ in range(number)]
    try:
        assert all(host.is_ready() for host in hosts)
        yield hosts
    finally:
        for host in hosts:
            host.end()


async def serve(folder: Path, lanes: int, *warm: str) -> None:
    """Run jobs until the standard input ends. A folder `gpu` is a GPU. The workers of the capabilities `warm` are started first."""
    gpu = folder / "gpu"
    runtime = Runtime(
        folder / "state",
        registry=folder / "registry",
        rules=Rules(lanes=lanes, rescan=0.1, calm=0.1),
        probe=OutsideWorld(gpu) if gpu.exists() else None,
        supervision=Supervision(pulse=0.05),
        drain=0.5,
    )
    async with runtime:
        for capability in warm:
            await runtime.worker(capability).start()
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)


# -------------------------------------------------------------- killing hosts under load


@dataclass
class Campaign:
    """What a campaign did and found."""

    submitted: int = 0
    kills: int = 0
    suspensions: int = 0
    states: Counter[str] = field(default_factory=Counter[str])
    requeued: int = 0
    doubled: int = 0
    """Jobs that began more than once, each with a record of why."""
    mistakes: list[str] = field(default_factory=list[str])
    highest_mb: float = 0.0
    """The most that all hosts had reserved together at any moment."""
    by_host: list[int] = field(default_factory=list[int])
    seconds: float = 0.0


def kill_hosts(folder: Path, *, hosts: int, kills: int, seed: int, load: int = 150) -> Campaign:
    """Kill hosts at random while jobs are submitted, then let the others finish, and compare."""
    rng, seen, log = random.Random(seed), Campaign(), folder / "log"
    (folder / "gpu").mkdir()
    _register(folder, "worker", "Worker", "concurrency = 4")
    _register(folder, "big", "Model", "resources = { gpu = true }", gpu=str(folder / "gpu"), keeps=False)
    _register(folder, "middle", "Model", "resources = { gpu = true }", gpu=str(folder / "gpu"), keeps=False)
    begun = time.monotonic()
    with (
        closing(JobStore(folder / "state")) as store,
        Client(folder / "state", registry=folder / "registry") as client,
        started_hosts(folder, hosts, lanes=2) as alive,
    ):
        _log_reservations(folder)
        dead: list[HostProcess] = []
        while seen.kills < kills:
            _submit(client, seen, rng, log, until=lambda: _open(store) >= load)
            time.sleep(rng.random() * 0.5)
            victim = alive.pop(rng.randrange(len(alive)))
            if rng.random() < 0.15:
                seen.suspensions += 1
                victim.kill(signal.SIGSTOP)
                time.sleep(rng.random() * 0.2)
                victim.kill(signal.SIGCONT)
            victim.kill(signal.SIGKILL)
            seen.kills += 1
            dead.append(victim)
            # Sometimes fewer hosts are there for a while.
            alive.append(HostProcess(folder, 2))
            if rng.random() < 0.7:
                assert alive[-1].is_ready()
        _wait(lambda: _open(store) == 0, 300)
        seen.seconds = time.monotonic() - begun
        _compare(folder, store, seen, log)
    return seen


def _register(folder: Path, name: str, kind: str, *words: str, **config: Any) -> None:
    file = folder / f"{name}.toml"
    file.write_text(
        "\n".join([f'name = "{name}"', f'object = "queueing:{kind}"', f'path = ["{SAMPLES}"]', *words])
    )
    registry = CapabilityRegistry(folder / "registry")
    registry.add(file)
    if config:
        registry.set_config(name, config)


def _submit(client: Client, seen: Campaign, rng: random.Random, log: Path, until: Callable[[], bool]) -> None:
    end = seen.submitted + _MOST_AT_ONCE
    while seen.submitted < end and not until():
        if rng.random() < 0.25:
            name, mb = rng.choice([("big", 4_000), ("middle", 2_500)])
            client.with_options(action="hold").submit(name, mb=mb, seconds=rng.choice([0.05, 0.2, 0.4]))
        else:
            value = seen.submitted
            seconds = rng.choice([0.0, 0.01, 0.05, 0.2, 0.5])
            client.with_options(action="effects").submit(
                "worker", value=value, path=str(log), seconds=seconds
            )
        seen.submitted += 1


def _log_reservations(folder: Path) -> None:
    """Let the database itself note what is reserved after each change."""
    with closing(sqlite3.connect(folder / "state" / "journal.db", timeout=30)) as raw:
        raw.executescript("""
            CREATE TABLE reservations_seen (pool TEXT NOT NULL, mb REAL NOT NULL);
            CREATE TRIGGER log_reserved AFTER INSERT ON job_reserved BEGIN
                INSERT INTO reservations_seen SELECT NEW.pool, sum(mb) FROM job_reserved WHERE pool = NEW.pool;
            END;
        """)


def _open(store: JobStore) -> int:
    counts = store.counts()
    return counts["pending"] + counts["running"] + counts["waiting"]


def _wait(holds: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def _compare(folder: Path, store: JobStore, seen: Campaign, log: Path) -> None:
    jobs, events = store.jobs(), store.events()
    seen.states = Counter(job.state.value for job in jobs)
    started, again, ends = Counter[str](), Counter[str](), Counter[str]()
    for event in events:
        started[event.job] += event.type == "started"
        again[event.job] += event.type in ("requeued", "retrying")
        ends[event.job] += bool(event.job) and event.is_final
    seen.requeued = sum(event.type == "requeued" for event in events)
    words = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
    began = Counter(int(value) for what, value in words if what == "began")
    finished = Counter(int(value) for what, value in words if what == "finished")
    for job in jobs:
        value = job.request.arguments.get("value")
        if ends[job.id] != 1:
            seen.mistakes.append(f"{job.id} has {ends[job.id]} ends")
        if started[job.id] != job.attempt or not started[job.id] - 1 <= again[job.id] <= started[job.id]:
            seen.mistakes.append(
                f"{job.id} was started {started[job.id]} times, {again[job.id]} with a record"
            )
        if value is not None and began[value] > started[job.id]:
            seen.mistakes.append(
                f"{job.id} began {began[value]} times, and was started {started[job.id]} times"
            )
        if value is not None and job.state.value == "completed" and not finished[value]:
            seen.mistakes.append(f"{job.id} completed, and did nothing")
        seen.doubled += value is not None and began[value] > 1
    if [event.seq for event in events] != list(range(1, len(events) + 1)):
        seen.mistakes.append("events are missing")
    if len(jobs) != seen.submitted or sum(store.counts().values()) != seen.submitted:
        seen.mistakes.append(f"{seen.submitted} jobs were submitted, and {len(jobs)} are stored")
    with closing(sqlite3.connect(folder / "state" / "journal.db")) as raw:
        query = "SELECT coalesce(max(mb), 0) FROM reservations_seen WHERE pool = 'gpu:0'"
        seen.highest_mb = raw.execute(query).fetchone()[0]


# -------------------------------------------------------------- submitting from many processes


def flood(folder: Path, *, hosts: int, submitters: int, jobs: int, batch: int) -> Campaign:
    """Submit from many processes at once; compare the totals and how many jobs each host ran."""
    seen = Campaign(submitted=jobs)
    _register(folder, "echo", "echo", "concurrency = 8")
    with (
        closing(JobStore(folder / "state")) as store,
        # A host whose worker starts late has less than its share of a few jobs.
        started_hosts(folder, hosts, lanes=4, warm=["echo"]) as alive,
    ):
        begun = time.monotonic()
        each = jobs // submitters
        senders = [_start("submit", folder, number * each, each, batch) for number in range(submitters)]
        for sender in senders:
            assert sender.wait() == 0
            sender.communicate()
        print(f"submitted after {time.monotonic() - begun:.1f} s", flush=True)
        _wait(lambda: _open(store) == 0, 1_200)
        seen.seconds = time.monotonic() - begun
        seen.states = Counter({state: number for state, number in store.counts().items() if number})
        pids = {host.pid for host in alive}
        _compare_flood(folder, seen, jobs, pids)
    return seen


def _compare_flood(folder: Path, seen: Campaign, jobs: int, pids: set[int]) -> None:
    with closing(sqlite3.connect(folder / "state" / "journal.db")) as raw:
        values = raw.execute("SELECT count(*), count(DISTINCT result), sum(result) FROM jobs").fetchone()
        events = dict(raw.execute("SELECT type, count(*) FROM job_events WHERE job NOT NULL GROUP BY type"))
        doubles = raw.execute(
            "SELECT count(*) FROM (SELECT job FROM job_events WHERE job NOT NULL GROUP BY job, type HAVING count(*) > 1)"
        ).fetchone()[0]
        rows = raw.execute(
            "SELECT count(*), pid FROM jobs LEFT JOIN job_hosts ON owner = job_hosts.key GROUP BY owner"
        ).fetchall()
    seen.by_host = sorted(number for number, _ in rows)
    if values != (jobs, jobs, jobs * (jobs - 1) // 2):
        seen.mistakes.append(f"jobs, different results and their sum are {values}")
    if {kind: events.get(kind) for kind in ("submitted", "started", "completed")} != dict.fromkeys(
        ("submitted", "started", "completed"), jobs
    ):
        seen.mistakes.append(f"events: {events}")
    if doubles:
        seen.mistakes.append(f"{doubles} events were recorded twice")
    if {pid for _, pid in rows} != pids:
        seen.mistakes.append(f"hosts {rows}")


def submit(folder: Path, first: int, number: int, batch: int) -> None:
    """Submit so many jobs through the client, `batch` in a call."""
    with Client(folder / "state", registry=folder / "registry") as client:
        for start in range(first, first + number, batch):
            values = range(start, min(start + batch, first + number))
            if batch == 1:
                client.submit("echo", value=start)
            else:
                client.submit_many("echo", [{"value": value} for value in values])


def main(command: str, folder: str, *words: str) -> None:
    """Run a host, a submitter, or a campaign."""
    place = Path(folder)
    if command == "serve":
        asyncio.run(serve(place, int(words[0]), *words[1:]))
        return
    numbers = [int(word) for word in words]
    if command == "submit":
        submit(place, *numbers)
    elif command == "kill":
        place.mkdir(parents=True)
        hosts, kills, seed = numbers
        print(kill_hosts(place, hosts=hosts, kills=kills, seed=seed))
    else:
        place.mkdir(parents=True)
        hosts, submitters, jobs, batch = numbers
        print(flood(place, hosts=hosts, submitters=submitters, jobs=jobs, batch=batch))


if __name__ == "__main__":
    main(*sys.argv[1:])
