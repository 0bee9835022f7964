# ruff: noqa: T201
"""Several hosts in processes of their own, on one store.

`python -m tests.jobs.many_hosts serve FOLDER LANES` is one of them.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from failwell.jobs.runtime import Runtime
from failwell.jobs.worker.protocol import Supervision

ROOT = Path(__file__).resolve().parents[2]


class HostProcess:
    """One host, to be suspended and killed."""

    def __init__(self, folder: Path, lanes: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.jobs.many_hosts", "serve", str(folder), str(lanes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        )
        self.pid = self.process.pid

    def is_ready(self) -> bool:
        assert self.process.stdout is not None
        return self.process.stdout.readline() == "ready\n"

    def kill(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
        if number == signal.SIGKILL:
            self.process.wait()

    def end(self) -> None:
        """Let it end by itself."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
        self.process.communicate("")


@contextmanager
def started_hosts(folder: Path, number: int, *, lanes: int) -> Generator[list[HostProcess]]:
    """Hosts that end with the block."""
    hosts = [HostProcess(folder, lanes) for _ in range(number)]
    try:
        assert all(host.is_ready() for host in hosts)
        yield hosts
    finally:
        for host in hosts:
            host.end()


async def serve(folder: Path, lanes: int) -> None:
    """Run jobs until the standard input ends."""
    runtime = Runtime(
        folder / "state",
        registry=folder / "registry",
        lanes=lanes,
        supervision=Supervision(pulse=0.05),
        drain=0.5,
    )
    async with runtime:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[2]), int(sys.argv[3])))
