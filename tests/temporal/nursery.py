"""Workers in processes of their own that start at once: they are forks of a process that has imported everything.

`python -m tests.temporal.nursery ADDRESS QUEUE FOLDER` starts a worker for each line of its stdin, and prints the process
id of each when it polls its queue.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.cli.running import environment

ROOT = Path(__file__).parents[2]


class Nursery:
    """The parent of workers that tests kill."""

    def __init__(self, address: str, queue: str, folder: Path) -> None:
        env = environment()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.temporal.nursery", address, queue, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**env, "PYTHONPATH": f"{ROOT}{os.pathsep}{env['PYTHONPATH']}"},
        )
        self.workers: list[int] = []

    def start_worker(self) -> None:
        """Start one, and wait until it polls."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        self.workers.append(int(self._process.stdout.readline()))

    def kill(self, pid: int) -> bool:
        """Kill a worker as a crash does. Returns whether it was one."""
        if pid not in self.workers:
            return False
        self.workers.remove(pid)
        os.kill(pid, signal.SIGKILL)
        return True

    def close(self) -> None:
        """Kill all."""
        for pid in list(self.workers):
            self.kill(pid)
        self._process.kill()
        self._process.communicate()


def _serve(address: str, queue: str, folder: Path) -> None:
    import asyncio

    from failwell.temporal.connection import ConnectionOptions
    from failwell.temporal.worker import TemporalWorker

    async def work(number: int) -> None:
        options = ConnectionOptions(address=address, task_queue=queue)
        async with TemporalWorker(options, folder / f"worker-{number}"):
            sys.stdout.write(f"{os.getpid()}\n")
            sys.stdout.flush()
            await asyncio.Event().wait()

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for number, _ in enumerate(sys.stdin):
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            asyncio.run(work(number))


if __name__ == "__main__":
    _serve(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
