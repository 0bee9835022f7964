"""Who waits without sleeping: the host and a worker between short jobs, and nobody where that does not help."""

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import cast

from failwell.jobs.job import JobRequest
from failwell.jobs.queue.busy_wait import BusyWait
from failwell.jobs.queue.entry import Entry
from failwell.jobs.workers.protocol import Worker

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

    def run(self, jobs: int) -> list[str]:
        """What the worker is told while so many jobs run one after another."""
        self.process.told.clear()
        for _ in range(jobs):
            self.answer(self.start())
        return self.process.told


def test_a_worker_is_woken_while_the_start_of_its_job_is_recorded() -> None:
    machine = Machine()

    assert machine.run(1) == ["wake"]
    assert not machine.loop.ready


def test_between_short_jobs_that_follow_each_other_nobody_sleeps() -> None:
    machine = Machine()
    machine.run(2)

    looks = machine.answer(machine.start())

    # The second one was close to the first, so the worker waited for the third, and need not be woken.
    assert machine.process.told == ["wake", "wake", "await next", "await next"]
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


TRIAL, ROUNDS, HOLD = 64, 2, 1024
FIRST = 2 * TRIAL * ROUNDS
"""Jobs until the ways have been compared."""


def _seconds(machine: Machine, awake: float, asleep: float, jobs: int) -> list[bool]:
    """Run jobs that take `awake` seconds where nobody sleeps, else `asleep`; returns for which of them nobody slept."""
    waits: list[bool] = []
    for _ in range(jobs):
        machine.process.told.clear()
        entry = machine.start()
        waits.append(bool(machine.process.told))
        machine.answer(entry, (awake if waits[-1] else asleep) - RECORDED)
    return waits


def test_both_ways_are_tried_in_turns_and_the_faster_one_is_kept() -> None:
    waits = _seconds(Machine(), awake=0.0003, asleep=0.0004, jobs=FIRST + HOLD)

    for first in range(0, FIRST, 2 * TRIAL):
        assert waits[first + 1 : first + TRIAL] == [True] * (TRIAL - 1)
        assert waits[first + TRIAL + 1 : first + 2 * TRIAL] == [False] * (TRIAL - 1)
    assert waits[FIRST + 1 :] == [True] * (HOLD - 1)


def test_what_disturbs_the_first_jobs_of_a_way_does_not_decide_against_it() -> None:
    machine = Machine()
    _seconds(machine, awake=0.0009, asleep=0.0004, jobs=TRIAL)

    waits = _seconds(machine, awake=0.0003, asleep=0.0004, jobs=FIRST)

    assert waits[-TRIAL:] == [True] * TRIAL


def test_where_waits_take_the_processor_from_the_other_process_everybody_sleeps() -> None:
    waits = _seconds(Machine(), awake=0.0009, asleep=0.0004, jobs=FIRST + HOLD)

    assert waits[FIRST - TRIAL + 1 :] == [False] * (TRIAL + HOLD - 1)


def test_the_ways_are_tried_again_later_and_less_and_less_often() -> None:
    waits = _seconds(Machine(), awake=0.0009, asleep=0.0004, jobs=20 * HOLD)

    starts = [number for number in range(1, len(waits)) if waits[number] and not waits[number - 1]]
    # The second round of a trial starts one round after its first.
    trials = [later for earlier, later in pairwise(starts) if later - earlier > 2 * TRIAL]
    pauses = [later - earlier for earlier, later in pairwise(trials)]
    assert len(pauses) >= 3
    assert all(later == earlier * 2 - FIRST for earlier, later in pairwise(pauses))


def test_a_machine_that_becomes_busy_is_noticed_soon() -> None:
    machine = Machine()
    assert _seconds(machine, awake=0.0003, asleep=0.0004, jobs=FIRST + 2 * TRIAL)[-1]

    waits = _seconds(machine, awake=0.0009, asleep=0.0005, jobs=FIRST + 5 * TRIAL)

    assert waits[-TRIAL:] == [False] * TRIAL


def test_a_disturbance_does_not_start_another_trial() -> None:
    machine = Machine()
    _seconds(machine, awake=0.0003, asleep=0.0004, jobs=FIRST)

    waits: list[bool] = []
    for _ in range(5):
        waits += _seconds(machine, awake=0.0006, asleep=0.0004, jobs=2 * TRIAL)
        waits += _seconds(machine, awake=0.0003, asleep=0.0004, jobs=TRIAL)

    assert all(waits[1:])


def test_disturbances_before_a_trial_do_not_count_after_it() -> None:
    machine = Machine()
    quick = {"awake": 0.0003, "asleep": 0.0004}
    _seconds(machine, **quick, jobs=FIRST + HOLD - 2 * TRIAL)
    _seconds(machine, awake=0.0006, asleep=0.0004, jobs=2 * TRIAL)
    _seconds(machine, **quick, jobs=FIRST)

    waits = _seconds(machine, awake=0.0006, asleep=0.0004, jobs=TRIAL)
    waits += _seconds(machine, **quick, jobs=FIRST)

    assert all(waits)


def test_a_worker_whose_wake_delays_its_host_is_woken_no_more() -> None:
    machine = Machine()

    for _ in range(FIRST + TRIAL):
        machine.process.told.clear()
        entry = machine.start(0.003 if machine.waits.prefers_awake else RECORDED)
        machine.answer(entry)

    assert not machine.process.told


def test_pauses_between_jobs_are_no_part_of_the_comparison() -> None:
    machine = Machine()
    _seconds(machine, awake=0.0003, asleep=0.0004, jobs=FIRST + TRIAL)

    for _ in range(3 * TRIAL):
        machine.loop.now += 0.1
        machine.run(1)

    assert machine.run(2) == ["wake", "await next", "await next"]
