"""A machine with a defect: what was running is stopped, and the run ends with one terminal event."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from failwell.calls.clock import SYSTEM_CLOCK
from failwell.testing import FakeClock
from failwell.testing.memory_store import MemoryStore
from failwell.workflows.machine.advance import Machine
from failwell.workflows.machine.fold import fold
from failwell.workflows.machine.messages import Begin, Cancel, Event, Request, Resume, Stopped
from failwell.workflows.machine.run_state import State
from failwell.workflows.machine.turn import Turn
from failwell.workflows.plan import Limits, Plan
from failwell.workflows.running.driver import Driver
from failwell.workflows.running.settings import DriveResult, Settings
from tests.workflows.plans import a_parallel, a_plan, a_script, on_error
from tests.workflows.run.test_driver import Leaves

PLAN = a_plan(a_parallel("group", members=("a", "b")), a_script("a"), a_script("b", on_error(to="$end")))


class DefectiveMachine(Machine):
    """Raises a program error when it is passed some event."""

    __slots__ = ("is_defective",)

    def __init__(self, plans: dict[str, Plan], is_defective: Callable[[State, Event], bool]) -> None:
        super().__init__(plans)
        self.is_defective = is_defective

    def advance(self, state: State, event: Event) -> Turn:
        if self.is_defective(state, event):
            raise ZeroDivisionError("a program error")
        return super().advance(state, event)


async def drive(
    folder: Path, leaves: Leaves, is_defective: Callable[[State, Event], bool], event: Event, **more: Any
) -> tuple[DriveResult, MemoryStore]:
    store = more.pop("store", None) or MemoryStore()
    plan = more.pop("plan", PLAN)
    settings = Settings(
        store=store,
        folder=folder,
        executors={"script": leaves},
        clock=more.pop("clock", SYSTEM_CLOCK),
        grace=0.01,
    )
    driver = Driver({PLAN.file: plan}, settings, folder, opener=_no_files, **more)
    driver.machine = DefectiveMachine({PLAN.file: plan}, is_defective)
    leaves.driver = driver
    return await driver.drive(event), store


async def _no_files(file: str, folder: str) -> Plan:
    raise AssertionError(f"{folder}/{file} is not to be opened")


def begin(store: MemoryStore, at: float = 100.0) -> Begin:
    store.create("r1", at=at)
    return Begin(at=at, run="r1", file=PLAN.file, inputs={})


def kinds_in(folder: Path) -> list[str]:
    lines = (folder / "errors.jsonl").read_text().splitlines()
    return [json.loads(line)["envelope"]["kind"] for line in lines]


def test_what_was_running_has_been_stopped_when_the_run_ends(tmp_path: Path) -> None:
    stopped: list[str] = []

    async def long(request: Request) -> Any:
        try:
            await asyncio.sleep(3600)
        finally:
            stopped.append(request.path)

    store = MemoryStore()
    leaves = Leaves({"group/a": long})
    ended, _ = asyncio.run(
        drive(tmp_path, leaves, lambda _, event: hasattr(event, "output"), begin(store), store=store)
    )

    assert (ended.status, ended.error_type) == ("failed", "MachineDefect")
    assert ended.failure is not None
    assert (ended.failure.kind, ended.failure.report.scene.node) == ("internal.bug", "b")
    assert stopped == ["group/a"]
    assert [event.type for event in store.read("r1")][-2:] == ["run:ending", "run:failed"]
    assert kinds_in(tmp_path) == ["internal.bug"]


def test_a_run_that_was_being_cancelled_is_cancelled_and_the_defect_is_written_down(tmp_path: Path) -> None:
    async def cancels(_: Request) -> Any:
        assert leaves.driver is not None
        leaves.driver.submit(Cancel(at=101.0, by="ada"))
        await asyncio.sleep(3600)

    store = MemoryStore()
    leaves = Leaves({"group/a": cancels, "group/b": lambda _: asyncio.sleep(3600)})
    ended, _ = asyncio.run(
        drive(tmp_path, leaves, lambda _, event: isinstance(event, Stopped), begin(store), store=store)
    )

    assert ended.status == "cancelled"
    assert [event.type for event in store.read("r1") if event.is_terminal] == ["run:cancelled"]
    assert kinds_in(tmp_path) == ["internal.bug"]


def test_a_run_that_was_failing_keeps_its_failure_and_names_the_defect_too(tmp_path: Path) -> None:
    store = MemoryStore()
    leaves = Leaves({"group/a": lambda _: asyncio.sleep(3600), "group/b": lambda _: asyncio.sleep(3600)})
    ended, _ = asyncio.run(
        drive(
            tmp_path,
            leaves,
            lambda _, event: isinstance(event, Stopped),
            begin(store, at=SYSTEM_CLOCK.now().timestamp()),
            store=store,
            plan=replace(PLAN, limits=Limits(timeout_seconds=0.02)),
        )
    )

    assert (ended.status, ended.error_type) == ("failed", "LimitReached")
    assert kinds_in(tmp_path) == ["limit.run_timeout", "internal.bug"]


def test_a_defect_while_a_run_is_resumed_counts_no_time_in_which_nothing_drove_it(tmp_path: Path) -> None:
    store = MemoryStore()
    never = Leaves({"group/a": lambda _: asyncio.sleep(3600), "group/b": lambda _: asyncio.sleep(3600)})

    async def killed() -> None:
        driving = asyncio.ensure_future(
            drive(tmp_path, never, lambda _, __: False, begin(store), store=store, clock=FakeClock())
        )
        await asyncio.sleep(0.01)
        driving.cancel()
        await asyncio.wait((driving,))

    asyncio.run(killed())
    state = fold([(event.type, event.at, dict(event.data)) for event in store.read("r1")])
    resumed = Resume(at=state.at + 50_000.0)

    ended, _ = asyncio.run(
        drive(
            tmp_path, Leaves(), lambda _, event: isinstance(event, Resume), resumed, store=store, state=state
        )
    )

    assert ended.status == "failed"
    assert [event.type for event in store.read("r1")][-3:] == ["run:resumed", "run:ending", "run:failed"]
    assert ended.state.active < 1_000
