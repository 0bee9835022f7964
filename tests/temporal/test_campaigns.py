"""Runs whose workers and server are killed complete, and nothing is lost."""

import asyncio
import random
from pathlib import Path

import pytest

pytest.importorskip("temporalio")

from failwell import workflows
from failwell.temporal.connection import ConnectionOptions
from failwell.temporal.runs.remote_driver import TemporalEngine
from tests.temporal.nursery import Nursery
from tests.temporal.worker_process import wait_until, worker_process
from tests.temporal_server import TemporalServer, server, task_queue

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

EACH = """
workflow:
  name: many
  entry_point: list
agents:
  - {name: list, type: set, value: "{{ range(ITEMS) | list | tojson }}", output_type: list, routes: [{to: each}]}
  - name: last
    type: script
    command: sh
    args: [-c, "echo {{ each.count }}"]
    routes: [{to: $end}]
for_each:
  - name: each
    source: list.output
    as: item
    max_concurrent: WIDE
    agent:
      name: step
      type: script
      command: sh
      args: [-c, "echo $FAILWELL_IDEMPOTENCY_KEY $PPID >> FOLDER/started; sleep PAUSE; echo $FAILWELL_IDEMPOTENCY_KEY $PPID >> FOLDER/ended; echo '{\\"n\\": {{ item }}}'"]
    routes: [{to: last}]
output: {count: "{{ each.count }}", sum: "{{ each.outputs | map(attribute='n') | sum }}", last: "{{ last.output.stdout }}"}
"""


def _file(folder: Path, *, items: int, wide: int, pause: float) -> Path:
    text = EACH.replace("FOLDER", str(folder)).replace("ITEMS", str(items)).replace("WIDE", str(wide))
    file = folder / "workflow.yaml"
    file.write_text(text.replace("PAUSE", str(pause)), encoding="utf-8")
    return file


def _lines(file: Path) -> list[list[str]]:
    return [line.split() for line in file.read_text().splitlines()] if file.exists() else []


def _check(done: workflows.RunResult, folder: Path, items: int) -> None:
    assert done.ok, done.report
    assert done.output == {"count": items, "sum": items * (items - 1) // 2, "last": items}
    events = workflows.read_events(done.id, store=folder / "store")
    assert [event.seq for event in events] == list(range(len(events)))
    ends = [event.data["path"] for event in events if event.type == "node:completed"]
    assert sorted(ends) == sorted({*ends}), "each step ends once"
    assert len([path for path in ends if path.startswith("each[")]) == items
    assert len({key for key, _ in _lines(folder / "ended")}) == items


def test_a_run_completes_although_workers_are_killed_50_times_and_the_server_once(tmp_path: Path) -> None:
    items, kills = 400, 50
    file = _file(tmp_path, items=items, wide=6, pause=0.2)
    killed = 0

    async def work(own: TemporalServer) -> workflows.RunResult:
        nonlocal killed
        queue = task_queue()
        nursery = Nursery(own.address, queue, tmp_path)
        engine = TemporalEngine(
            connection=ConnectionOptions(address=own.address, task_queue=queue), heartbeat=1.5
        )
        try:
            for _ in range(3):
                await asyncio.to_thread(nursery.start_worker)
            running = asyncio.ensure_future(workflows.arun(file, store=tmp_path / "store", engine=engine))
            while killed < kills and not running.done():
                killed += await _kill_one(nursery, tmp_path / "started", is_in_step=bool(killed % 2))
                if killed == kills // 2:
                    await asyncio.to_thread(own.kill)
                    await asyncio.to_thread(own.start)
                await asyncio.to_thread(nursery.start_worker)
            return await running
        finally:
            nursery.close()

    with TemporalServer(database=tmp_path / "temporal.db") as own:
        done = asyncio.run(work(own))

    _check(done, tmp_path, items)
    assert killed == kills, "the run was too short"


async def _kill_one(nursery: Nursery, started: Path, *, is_in_step: bool) -> int:
    """Kill a worker while it runs a step, or whatever it does: it may be advancing the run."""
    dice = random.Random(len(_lines(started)))
    await asyncio.sleep(dice.random() * 0.4)
    if is_in_step:
        before = len(_lines(started))
        await asyncio.to_thread(wait_until, lambda: len(_lines(started)) > before)
        return nursery.kill(int(_lines(started)[-1][1])) or nursery.kill(nursery.workers[0])
    return nursery.kill(dice.choice(nursery.workers))


def test_two_workers_share_200_items_and_one_is_killed(tmp_path: Path) -> None:
    items = 200
    file = _file(tmp_path, items=items, wide=20, pause=0.05)
    queue = task_queue()

    async def work() -> workflows.RunResult:
        engine = TemporalEngine(
            connection=ConnectionOptions(address=server().address, task_queue=queue), heartbeat=2
        )
        running = asyncio.ensure_future(workflows.arun(file, store=tmp_path / "store", engine=engine))
        await asyncio.to_thread(wait_until, lambda: len(_lines(tmp_path / "ended")) >= items // 4)
        await asyncio.to_thread(second.kill)
        return await running

    with (
        worker_process(server().address, queue, tmp_path / "one", capabilities=None) as first,
        worker_process(server().address, queue, tmp_path / "two", capabilities=None) as second,
    ):
        done = asyncio.run(work())
        assert first.process.poll() is None

    _check(done, tmp_path, items)
    shares = [pid for _, pid in _lines(tmp_path / "ended")]
    assert {str(first.process.pid), str(second.process.pid)} == {*shares}
