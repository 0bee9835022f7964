# ruff: noqa: T201
"""A host in a process of its own, to be killed: submit jobs, runs them, and says how far it is."""

import asyncio
import sys
from pathlib import Path

from failwell.jobs.job import JobState
from tests.jobs.queues import a_capability, a_runtime


async def serve(folder: Path, number: int, running: int) -> None:
    """Hand in `number` jobs the first time; afterwards go on with what is there."""
    manifest = a_capability("host", concurrency=running)
    async with a_runtime(folder, manifest, measured=False, lanes=running) as jobs:
        if not any(jobs.counts().values()):
            await jobs.call("host", action="pid")
            for value in range(number):
                path = str(folder / f"go-{value}")
                await jobs.submit("host", {"path": path, "value": value}, action="until", key=f"job-{value}")
        print("ready", flush=True)
        while any(jobs.counts()[state] for state in ("pending", "running", "waiting")):
            busy = sum(entry.state is JobState.RUNNING for entry in jobs.queue.state.live.values())
            print(f"running {busy}", flush=True)
            await asyncio.sleep(0.01)
        print("empty", flush=True)


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
