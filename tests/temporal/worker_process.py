"""`failwell temporal worker` in a process of its own, for tests that stop and kill it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from json import loads
from pathlib import Path
from typing import Any

from tests.cli.running import environment

CAPABILITIES = Path(__file__).with_name("capabilities")


class WorkerProcess:
    """A running worker."""

    def __init__(self, process: "subprocess.Popen[bytes]", started: dict[str, Any]) -> None:
        self.process = process
        self.started = started

    def kill(self) -> None:
        """End it as a crash does."""
        self.process.kill()
        self.process.wait(20)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End it as a service manager does, and return its exit code."""
        self.process.send_signal(number)
        return self.process.wait(30)


@contextmanager
def worker_process(
    address: str,
    queue: str,
    store: Path,
    *,
    capabilities: Path | None = CAPABILITIES,
    path: Path | None = None,
) -> Generator[WorkerProcess]:
    """A worker that polls its queues; it is killed at the end unless it has ended. `path` is added to its Python path."""
    command = [
        *(sys.executable, "-m", "failwell", "temporal", "worker", "--json"),
        *("--address", address, "--task-queue", queue, "--store", str(store)),
        *(() if capabilities is None else ("--capabilities", str(capabilities))),
    ]
    env = environment()
    if path is not None:
        env["PYTHONPATH"] += f"{os.pathsep}{path}"
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=env)
    with process:
        try:
            assert process.stdout is not None
            yield WorkerProcess(process, loads(process.stdout.readline() or b"{}"))
        finally:
            process.kill()


def wait_until(condition: Callable[[], object], seconds: float = 40) -> None:
    """Wait until something holds, and fail if it does not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
