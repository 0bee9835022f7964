"""Who waits without sleeping: the host and a worker between short jobs, and nobody where that does not help."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from failwell.jobs.job import JobRequest
from failwell.jobs.queue.busy_wait import BusyWait
from failwell.jobs.queue.entry import Entry
from failwell.jobs.worker.protocol import Worker

RECORDED, ANSWERED = 0.0001, 0.0001


class Loop:
    """A loop whose time passes by hand."""

    def __init__(self) -> None:
        self.now = 100.0
        self.ready: list[Callable[[], None]] = []

    def time(self) -> float:
        return self.now

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.ready.append(callback)

    def run_once(self) -> None:
        ready, self.ready = self.ready, []
        for callback in ready:
            callback()


class Process:
    """A worker that notes what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def wake(self) -> None:
        self.told.append("wake")

    def await_next(self) -> None:
        self.told.append("await next")


class Machine:
    """A host that runs one job after another."""

    def __init__(self, cores: int = 2) -> None:
        self.loop = Loop()
        self.process = Process()
        self.waits = BusyWait(cast("asyncio.AbstractEventLoop", self.loop), cores)

    def start(self, recorded: float = RECORDED, *, is_only_job: bool = True) -> Entry:
        worker = cast("Worker", self.process)
        self.waits.before_start(worker, is_only_job=is_only_job)
        self.loop.now += recorded
        entry = Entry("job", JobRequest(instance="echo"), self.loop.now, 1)
        entry.is_sent = True
        if is_only_job:
            self.waits.started(worker, entry)
        return entry

    def answer(self, entry: Entry, seconds: float = ANSWERED) -> int:
        """Answer a job after `seconds`; returns how often the loop looked for events without sleeping."""
        looks, end = 0, self.loop.now + seconds
        while self.loop.ready and self.loop.now < end:
            self.loop.now += 0.00002
            self.loop.run_once()
            looks += 1
        self.loop.now = max(self.loop.now, end)
        entry.is_sent = False
        self.loop.run_once()
        return looks

    def run(self, jobs: int, **times: Any) -> list[str]:
        """What the worker is told while so many jobs run one after another."""
        self.process.told.clear()
        for _ in range(jobs):
            self.answer(self.start(times.get("recorded", RECORDED)), times.get("answered", ANSWERED))
        return self.process.told


def test_a_worker_is_woken_while_the_start_of_its_job_is_recorded() -> None:
    machine = Machine()

    assert machine.run(1) == ["wake"]
    assert not machine.loop.ready


def test_between_short_jobs_that_follow_each_other_nobody_sleeps() -> None:
    machine = Machine()
    machine.run(1)

    looks = machine.answer(machine.start())

    assert machine.process.told == ["wake", "await next"]
    assert looks > 1
    assert not machine.loop.ready


def test_the_host_sleeps_once_a_job_turns_out_to_be_long() -> None:
    machine = Machine()
    machine.run(1)

    looks = machine.answer(machine.start(), 60.0)

    assert looks < 30
    assert not machine.loop.ready


def test_jobs_that_come_now_and_then_keep_nobody_awake() -> None:
    machine = Machine()
    machine.run(1)
    machine.loop.now += 0.002

    assert machine.run(1) == ["wake"]


def test_jobs_of_several_callers_keep_nobody_awake() -> None:
    machine = Machine()
    machine.run(2)
    machine.process.told.clear()

    machine.start(is_only_job=False)

    assert machine.process.told == ["wake"]
    assert not machine.loop.ready


def test_jobs_of_two_workers_in_turn_keep_neither_awake() -> None:
    machine = Machine()
    first, second = machine.process, Process()
    for process in (first, second, first, second):
        machine.process = process
        machine.answer(machine.start())

    assert first.told == second.told == ["wake", "wake"]


def test_with_a_single_core_nobody_waits_without_sleeping() -> None:
    assert Machine(cores=1).run(10) == []


def test_waits_that_do_not_help_are_given_up_and_tried_again_later() -> None:
    machine = Machine()
    # Another program uses the processors, so every answer comes late.
    machine.run(64, answered=0.0008)
    assert machine.run(200, answered=0.0004) == []

    machine.loop.now += 1.0
    assert machine.run(2)[-1] == "await next"

    machine.run(62, answered=0.0008)
    machine.loop.now += 1.0
    assert machine.run(2) == []
    machine.loop.now += 1.0
    assert machine.run(2)[-1] == "await next"


def test_a_worker_that_takes_the_processor_from_its_host_is_woken_no_more() -> None:
    machine = Machine()
    machine.run(64, recorded=0.003)

    assert machine.run(10, recorded=0.003) == []


def test_a_late_answer_now_and_then_changes_nothing() -> None:
    machine = Machine()
    for _ in range(40):
        machine.run(9)
        machine.run(1, answered=0.0006)

    assert machine.run(3)[-1] == "await next"
