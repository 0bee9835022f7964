"""The worker of `bench/temporal.py`, in a process of its own: workflow runs, and a workflow of bare activities.

The bare workflow is in a module of its own because Temporal's sandbox imports it again.
"""

import asyncio
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio import activity, workflow
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    from failwell.temporal.connection import ConnectionOptions

BARE, OURS = "bare", "ours"
"""Their task queues."""


@activity.defn
async def run_command(command: str) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    out, err = await process.communicate()
    return {"stdout": out.decode(), "stderr": err.decode(), "exit_code": process.returncode}


@workflow.defn
class Bare:
    """The same work by hand: one activity for each step."""

    @workflow.run
    async def run(self, steps: int, wide: int) -> int:
        left = steps

        async def lane() -> None:
            nonlocal left
            while left > 0:
                left -= 1
                await workflow.execute_activity(
                    run_command,
                    "/bin/true",
                    start_to_close_timeout=timedelta(minutes=1),
                    heartbeat_timeout=timedelta(seconds=30),
                    summary=f"step {left}",
                )

        await asyncio.gather(*(lane() for _ in range(wide)))
        return steps


async def serve(address: str, folder: Path) -> None:
    from failwell.temporal.worker import TemporalWorker

    options = ConnectionOptions(address=address, task_queue=OURS)
    client = await options.connect()
    async with (
        TemporalWorker(options, folder),
        Worker(client, task_queue=BARE, workflows=[Bare], activities=[run_command]),
    ):
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], Path(sys.argv[2])))
