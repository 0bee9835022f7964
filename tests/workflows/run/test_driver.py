"""The driver: what is told and when, what survives trouble, and that nothing outlives a run."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from errno import ENOSPC
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from failwell.calls.clock import SYSTEM_CLOCK
from failwell.store.event import TERMINAL, Event, Fact
from failwell.store.faults import StoreUnavailable
from failwell.testing import FakeClock
from failwell.testing.memory_store import MemoryStore
from failwell.workflows.failure import Failure
from failwell.workflows.machine.messages import Begin, Cancel, Failed, Request
from failwell.workflows.plan import Limits, Plan
from failwell.workflows.running.driver import Driver
from failwell.workflows.running.executor import Success, Tools
from failwell.workflows.running.settings import DriveResult, Settings
from tests.workflows.plans import a_parallel, a_plan, a_script, on_error, to

GRACE, STOP_TIMEOUT = 0.05, 0.2
Leaf = Callable[[Request], Any]


class Leaves:
    """Runs leaves as functions: what a function returns is the output, what it raises is its own trouble."""

    def __init__(self, by_path: Mapping[str, Leaf] | None = None) -> None:
        self.by_path = by_path or {}
        self.driver: Driver | None = None
        self.at_once = 0
        self.most_at_once = 0

    async def run(self, request: Request, tools: Tools) -> Success | Failure:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            leaf = self.by_path.get(request.path)
            came = leaf(request) if leaf is not None else {"ok": True}
            if asyncio.iscoroutine(came):
                came = await came
            return came if isinstance(came, (Success, Failure)) else Success(output=came)
        finally:
            self.at_once -= 1

    async def close(self, run: str, *, grace: float = 2.0) -> object:
        return None


class Refusing(MemoryStore):
    """A store that takes nothing from some moment on."""

    def __init__(self, after: int = 0) -> None:
        super().__init__()
        self.left = after

    def append(self, run: str, facts: Sequence[Fact]) -> list[Event]:
        self.left -= 1
        if self.left < 0:
            raise StoreUnavailable(message="the disk is gone")
        return super().append(run, facts)


async def drive(
    plan: Plan,
    leaves: Leaves,
    *,
    store: MemoryStore | None = None,
    heard: Callable[[Event], None],
    **more: Any,
) -> DriveResult:
    used = store or MemoryStore()
    with used.lock("r1"):
        used.create("r1", at=0.0)

        def all_heard(events: Sequence[Event], hear: Callable[[Event], None]) -> None:
            for event in events:
                hear(event)

        settings = Settings(
            store=used,
            folder=Path("/nonexistent"),
            executors={"script": leaves},
            clock=more.pop("clock", FakeClock()),
            watchers=tuple(partial(all_heard, hear=hear) for hear in (heard, *more.pop("also", ()))),
            jitter=lambda: 0.5,
            **more,
        )
        driver = Driver({plan.file: plan}, settings, Path("/nonexistent"), opener=_no_files)
        begin = Begin(at=driver.now(), run="r1", file=plan.file, inputs={})
        leaves.driver = driver
        return await driver.drive(begin)


async def _no_files(file: str, folder: str) -> Plan:
    raise AssertionError(f"{folder}/{file} is not to be opened")


@pytest.mark.acceptance("relavium 53", "relavium 40")
def test_events_are_told_in_the_order_of_their_numbers_and_after_they_are_written() -> None:
    store = MemoryStore()
    told: list[int] = []

    def heard(event: Event) -> None:
        assert event.seq in {one.seq for one in store.read("r1")}
        told.append(event.seq)

    members = tuple(f"m{index}" for index in range(20))
    plan = a_plan(a_parallel("group", members=members), *(a_script(name) for name in members))

    ended = asyncio.run(drive(plan, Leaves(), store=store, heard=heard))

    assert ended.status == "completed"
    assert told == list(range(len(told)))


class OutOfOrder(MemoryStore):
    """A store whose writes are done later than it is asked for: each is refused once, and leaves end meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.end_a_leaf: Callable[[], None] = lambda: None

    def append(self, run: str, facts: Sequence[Fact]) -> list[Event]:
        first = f"{facts[0][0]} {facts[0][2].get('path')}"
        if first not in self.asked:
            self.asked.append(first)
            self.end_a_leaf()
            raise StoreUnavailable(message="busy")
        return super().append(run, facts)


@pytest.mark.acceptance("relavium 53")
def test_a_store_whose_writes_resolve_late_and_in_another_order_changes_nothing_in_the_order_of_events() -> (
    None
):
    store = OutOfOrder()
    told: list[tuple[int, int]] = []
    members = tuple(f"m{index}" for index in range(12))
    gates = {f"group/{name}": asyncio.Event() for name in members}
    # The last member ends first.
    left = list(reversed(gates.values()))
    store.end_a_leaf = lambda: left.pop(0).set() if left else None
    leaves = Leaves({path: partial(_until, gate) for path, gate in gates.items()})
    plan = a_plan(a_parallel("group", members=members), *(a_script(name) for name in members))

    ended = asyncio.run(
        drive(plan, leaves, store=store, heard=lambda event: told.append((event.seq, store.run("r1").events)))
    )

    assert ended.status == "completed"
    assert len(store.asked) > len(members)
    assert [seq for seq, _ in told] == list(range(store.run("r1").events))
    assert all(written > seq for seq, written in told)
    assert [event.seq for event in store.read("r1")] == [seq for seq, _ in told]


async def _until(gate: asyncio.Event, _request: Request) -> dict[str, bool]:
    await gate.wait()
    return {"ok": True}


@pytest.mark.acceptance("relavium 54")
def test_a_listener_that_fails_disturbs_neither_the_run_nor_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told: list[str] = []

    def breaks(event: Event) -> None:
        raise RuntimeError("mine alone")

    plan = a_plan(a_script("a"))

    def hears(event: Event) -> None:
        told.append(event.type)

    with caplog.at_level(logging.ERROR, "failwell.workflows"):
        ended = asyncio.run(drive(plan, Leaves(), heard=breaks, also=(hears,)))

    assert ended.status == "completed"
    assert told[-1] == "run:completed"
    assert "watcher" in caplog.text


@pytest.mark.acceptance("relavium 52")
@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_store_that_refuses_still_gives_one_end_and_nothing_is_left_running(after: int) -> None:
    told: list[str] = []
    leaves = Leaves()
    plan = a_plan(a_script("a", to("b")), a_script("b"))

    async def all_of_it() -> tuple[DriveResult, int]:
        ended = await drive(plan, leaves, store=Refusing(after), heard=lambda event: told.append(event.type))
        return ended, len(asyncio.all_tasks()) - 1

    ended, left = asyncio.run(all_of_it())

    assert ended.status == "failed"
    assert ended.failure is not None
    assert ended.failure.kind == "session.store_unavailable"
    assert [one for one in told if one in ("run:completed", "run:failed", "run:cancelled")] == ["run:failed"]
    assert leaves.at_once == 0
    assert left == 0


class Away(MemoryStore):
    """A store that is away for two appends and then comes back."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def append(self, run: str, facts: Sequence[Fact]) -> list[Event]:
        self.asked += 1
        if self.asked in (2, 3):
            raise StoreUnavailable(message="busy")
        return super().append(run, facts)


def test_a_store_that_is_away_for_a_moment_costs_a_run_nothing() -> None:
    told: list[str] = []
    clock = FakeClock()
    plan = a_plan(a_script("a", to("b")), a_script("b"))

    ended = asyncio.run(
        drive(plan, Leaves(), store=Away(), heard=lambda event: told.append(event.type), clock=clock)
    )

    assert ended.status == "completed"
    assert [seconds for seconds in clock.slept if seconds > 0] == [2.0, 4.0]
    assert told.count("node:completed") == 2


@pytest.mark.acceptance("relavium 41")
def test_an_unforeseen_exception_ends_the_run_with_one_id_everywhere_and_none_of_its_text(
    caplog: pytest.LogCaptureFixture,
) -> None:
    events: list[Event] = []

    def breaks(_: Request) -> Any:
        raise KeyError("secret-in-the-text")

    with caplog.at_level(logging.ERROR, "failwell.workflows"):
        ended = asyncio.run(drive(a_plan(a_script("a")), Leaves({"a": breaks}), heard=events.append))

    failed = next(event for event in events if event.type == "node:failed").data["failure"]["report"]
    last = events[-1]
    assert ended.error_type == "ExecutionError"
    assert last.type == "run:failed"
    assert last.data["failure"]["report"]["id"] == failed["id"]
    assert failed["retryable"] is False
    assert failed["id"] in caplog.text
    assert "KeyError" in caplog.text
    assert not any("secret-in-the-text" in str(event.data) for event in events)


def test_a_defect_of_an_executor_is_a_bug_that_only_a_route_for_bugs_takes() -> None:
    def breaks(_: Request) -> Any:
        raise KeyError("secret-in-the-text")

    def refused(_: Request) -> Any:
        raise OSError(ENOSPC, "No space left on device")

    def run(leaf: Leaf, *kinds: str) -> DriveResult:
        plan = a_plan(a_script("a", on_error(*kinds, to="$end")))
        return asyncio.run(drive(plan, Leaves({"a": leaf}), heard=lambda _: None))

    caught_all, caught_bugs, system = run(breaks), run(breaks, "internal.bug"), run(refused)

    assert caught_all.status == "failed"
    assert caught_all.failure is not None
    assert caught_all.failure.kind == "internal.bug"
    assert caught_bugs.status == "completed"
    assert system.status == "completed"


@pytest.mark.acceptance("relavium 51")
def test_a_leaf_that_ignores_its_end_cannot_hold_the_run_up(caplog: pytest.LogCaptureFixture) -> None:
    told: list[str] = []

    async def stubborn() -> Any:
        for _ in range(2):
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                continue
        return {}

    leaves = Leaves({"a": lambda _: stubborn()})
    plan = a_plan(a_script("a"), limits=Limits(timeout_seconds=0.05))
    heard_at: dict[str, float] = {}

    def heard(event: Event) -> None:
        told.append(event.type)
        heard_at[event.type] = time.monotonic()

    ended = asyncio.run(
        drive(plan, leaves, heard=heard, clock=SYSTEM_CLOCK, grace=GRACE, stop_timeout=STOP_TIMEOUT)
    )

    waited = heard_at["run:failed"] - heard_at["run:timeout"]
    assert ended.status == "failed"
    assert ended.failure is not None
    assert ended.failure.kind == "limit.run_timeout"
    assert told.index("run:timeout") < told.index("run:failed") == len(told) - 1
    # The leaf would hold the run up for an hour. A second more is what a busy machine takes.
    assert waited + 0.01 >= GRACE + STOP_TIMEOUT
    assert waited <= GRACE + STOP_TIMEOUT + 1.0
    assert "the run continues without it" in caplog.text


@pytest.mark.acceptance("relavium 42")
def test_a_cancel_reaches_a_leaf_and_the_run_waits_for_it_to_end() -> None:
    told: list[str] = []
    ended_leaves: list[str] = []
    leaves = Leaves()

    async def long(_: Request) -> Any:
        driver = leaves.driver
        assert driver is not None
        driver.submit(Cancel(at=driver.now(), reason="user", by="ada"))
        try:
            await asyncio.sleep(3600)
        finally:
            ended_leaves.append("a")

    leaves.by_path = {"a": long}
    ended = asyncio.run(
        drive(a_plan(a_script("a", on_error(to="$end"))), leaves, heard=lambda e: told.append(e.type))
    )

    assert ended.status == "cancelled"
    assert ended_leaves == ["a"]
    assert told[-1] == "run:cancelled"


@pytest.mark.acceptance("relavium 42")
@pytest.mark.parametrize("order", ["cancel first", "failure first", "instead of stopping"])
def test_a_failure_that_races_with_a_cancel_is_taken_and_the_only_end_is_cancelled(order: str) -> None:
    told: list[str] = []
    leaves = Leaves()
    failure = Failure.of("external.x", "it failed", typed=True)

    async def racing(request: Request) -> Any:
        driver = leaves.driver
        assert driver is not None
        now = driver.now()
        pair = (Cancel(at=now, by="ada"), Failed(at=now, path=request.path, failure=failure))
        if order == "instead of stopping":
            driver.submit(pair[0])
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                return failure
        # Both events reach the machine in one turn, while the leaf is still running.
        for event in pair if order == "cancel first" else reversed(pair):
            driver.submit(event)
        return await asyncio.sleep(3600)

    async def long(_: Request) -> Any:
        await asyncio.sleep(3600)

    leaves.by_path = {"group/a": racing, "group/b": long}
    plan = a_plan(a_parallel("group", on_error(to="$end"), members=("a", "b")), a_script("a"), a_script("b"))
    failures: list[str] = []

    def heard(event: Event) -> None:
        told.append(event.type)
        if event.type == "node:failed":
            failures.append(event.data["failure"]["envelope"]["kind"])

    ended = asyncio.run(drive(plan, leaves, heard=heard, clock=SYSTEM_CLOCK, grace=0.01))

    assert ended.status == "cancelled"
    assert "external.x" in failures
    assert [type_ for type_ in told if type_ in TERMINAL] == ["run:cancelled"]
    assert told[-1] == "run:cancelled"
    assert "route:taken" not in told


@pytest.mark.acceptance("relavium 49")
def test_the_cap_holds_for_real_tasks() -> None:
    members = tuple(f"m{index}" for index in range(5))
    leaves = Leaves({f"group/{name}": lambda _: asyncio.sleep(0.001) for name in members})
    plan = a_plan(
        a_parallel("group", members=members),
        *(a_script(name) for name in members),
        limits=Limits(max_parallel=2),
    )

    ended = asyncio.run(drive(plan, leaves, heard=lambda _: None))

    assert ended.status == "completed"
    assert leaves.most_at_once == 2
