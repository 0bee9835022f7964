"""Real servers for the tests of database drivers: PostgreSQL and Redis as the system has them, in folders of their own."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

_PATIENCE = 60.0
_POSTGRES_BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def wait_for(port: int, process: subprocess.Popen[bytes] | None = None) -> None:
    """Return when something accepts connections on `port`."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        if process is not None and process.poll() is not None:
            raise AssertionError(f"the server ended with {process.returncode}")
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise AssertionError(f"nothing listens on {port}")


@dataclass(frozen=True, slots=True)
class Postgres:
    """A cluster with the superuser `owner`, password `right`, that accepts few connections."""

    port: int
    folder: Path
    binaries: Path

    def dsn(self, *, user: str = "owner", password: str = "right", database: str = "postgres") -> str:
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database}"

    def stop(self, mode: str = "fast") -> None:
        _as_user([str(self.binaries / "pg_ctl"), "-D", str(self.folder), "-m", mode, "-w", "stop"])


def _as_user(command: Sequence[str]) -> None:
    """Run a command that PostgreSQL refuses to run as root."""
    account = pwd.getpwnam("postgres") if os.geteuid() == 0 else None
    subprocess.run(
        command, check=True, capture_output=True, cwd="/",
        user=None if account is None else account.pw_uid, group=None if account is None else account.pw_gid,
    )  # fmt: skip


@contextmanager
def postgres() -> Generator[Postgres]:
    """A fresh cluster on a free port; skipped where PostgreSQL is not installed."""
    if not _POSTGRES_BINARIES:
        pytest.skip("PostgreSQL's server is not installed")
    binaries, port = _POSTGRES_BINARIES[0], free_port()
    folder = Path(tempfile.mkdtemp(prefix="failwell-postgres-"))
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres", "postgres")
        password = folder.with_suffix(".password")
        password.write_text("right\n", encoding="utf-8")
        data = folder / "data"
        _as_user(
            [str(binaries / "initdb"), "-D", str(data), "-U", "owner", "--auth", "scram-sha-256", "--pwfile", str(password)]
        )  # fmt: skip
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off -c max_connections=8 -c superuser_reserved_connections=1 -c deadlock_timeout=100ms"
        _as_user(
            [
                str(binaries / "pg_ctl"),
                "-D",
                str(data),
                "-o",
                options,
                "-l",
                str(folder / "log"),
                "-w",
                "start",
            ]
        )
        server = Postgres(port, data, binaries)
        try:
            yield server
        finally:
            with suppress(subprocess.CalledProcessError):
                server.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        folder.with_suffix(".password").unlink(missing_ok=True)


def start_redis(port: int, *options: str) -> subprocess.Popen[bytes]:
    """A Redis that stores nothing, on `port` of this machine; skipped where Redis is not installed."""
    binary = shutil.which("redis-server") or shutil.which("valkey-server")
    if binary is None:
        pytest.skip("Redis's server is not installed")
    command = [
        binary,
        "--port",
        str(port),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--appendonly",
        "no",
        *options,
    ]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=tempfile.gettempdir()
    )
    wait_for(port, process)
    return process


@contextmanager
def redis_server(*options: str) -> Generator[int]:
    """The port of a fresh Redis that stores nothing."""
    port = free_port()
    process = start_redis(port, *options)
    try:
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)
