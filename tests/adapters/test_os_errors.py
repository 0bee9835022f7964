"""Operating-system errors: the errno decides, then the class."""

import ast
import errno
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import failwell
from failwell.adapters.vendors.python import read_oserror
from tests.adapters.raisers import CANARY, Action, caught, closed_port
from tests.specimens import each

KINDS = {
    "resource.disk": "ENOSPC EDQUOT EFBIG",
    "resource.system_memory": "ENOMEM ENOBUFS",
    "resource.file_handles": "EMFILE ENFILE",
    "validation.path_not_found": "ENOENT ENXIO ENODEV",
    "validation.path_wrong_type": "ENOTDIR EISDIR ELOOP",
    "validation.path_denied": "EACCES EPERM EROFS",
    "validation.input_invalid": "EINVAL ENAMETOOLONG EDOM ERANGE E2BIG EILSEQ",
    "internal.spawn_failed": "ENOEXEC",
    "validation.config_invalid": "EADDRINUSE",
    "tool.busy": "EAGAIN EINTR EBUSY ETXTBSY EDEADLK ENOLCK EALREADY EINPROGRESS",
    "provider.connection": "ECONNREFUSED ENETUNREACH EHOSTUNREACH ENETDOWN EHOSTDOWN EADDRNOTAVAIL",
    "provider.outcome_unknown": "ECONNRESET ECONNABORTED EPIPE ESHUTDOWN ENOTCONN ENETRESET",
}
NUMBERED = [(name, kind) for kind, names in KINDS.items() for name in names.split() if hasattr(errno, name)]


def failing_with(name: str) -> OSError:
    """As the system raises it: the constructor picks the subclass by the number."""
    number = getattr(errno, name)
    return OSError(number, os.strerror(number), f"/home/{CANARY}")


STARVED = """
import asyncio, gc, os, resource, sqlite3, subprocess, sys, urllib.request
from pathlib import Path
import aiohttp, httpx, openai, requests
import failwell
from failwell.store.faults import sqlite_fault

URL = "http://127.0.0.1:1"
client, session = httpx.Client(timeout=5), requests.Session()
sdk = openai.OpenAI(api_key="x", base_url=URL, max_retries=0, timeout=5)


async def main():
    aclient, asession = httpx.AsyncClient(timeout=5), aiohttp.ClientSession()
    calls = {
        "httpx": lambda: client.get(URL), "requests": lambda: session.get(URL), "openai": sdk.models.list,
        "urllib": lambda: urllib.request.urlopen(URL), "spawn": lambda: subprocess.run(["true"]),
        "open": lambda: open("/dev/null"), "ahttpx": lambda: aclient.get(URL), "aiohttp": lambda: asession.get(URL),
        "sqlite": lambda: sqlite3.connect("never.sqlite"),
    }
    for starved in (False, True):
        # The first round loads whatever a library loads lazily.
        if starved:
            # A collection in the middle would close sockets of the first round, and their handles would be free again.
            gc.collect()
            gc.disable()
            resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
            try:
                while True:
                    os.dup(0)
            except OSError:
                pass
        kinds = {}
        for name, call in calls.items():
            try:
                result = call()
                if asyncio.iscoroutine(result) or hasattr(result, "__await__"):
                    await result
            except Exception as error:
                if isinstance(error, sqlite3.Error):
                    error = sqlite_fault(error, Path("never.sqlite"))
                kinds[name] = failwell.describe(error).kind
    print(sorted(kinds.items()))


asyncio.run(main())
sys.stdout.flush()
os._exit(0)  # nothing is left to clean up with
"""


def test_without_a_file_handle_every_client_names_the_resource(tmp_path: Path) -> None:
    """In a process of its own, whose handles are used up."""
    done = subprocess.run(
        [sys.executable, "-c", STARVED],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=tmp_path,
    )

    assert {kind for _, kind in ast.literal_eval(done.stdout)} == {"resource.file_handles"}, done.stdout
    assert len(ast.literal_eval(done.stdout)) == 9, done.stdout


def refuse_a_connection() -> None:
    socket.create_connection(("127.0.0.1", closed_port()), timeout=5)


def read_from_nobody() -> None:
    with socket.socket() as line:
        line.recv(1)


def read_what_is_not_there_yet() -> None:
    one, other = socket.socketpair()
    with one, other:
        one.settimeout(0)
        one.recv(1)


def write_to_nobody() -> None:
    one, other = socket.socketpair()
    other.close()
    with one:
        one.send(b"x")
        one.send(b"x")


def take_a_port_twice() -> None:
    with socket.create_server(("127.0.0.1", 0)) as first, socket.socket() as second:
        second.bind(first.getsockname())


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    return tmp_path


@each(("name", "kind"), NUMBERED)
def test_the_number_decides(name: str, kind: str) -> None:
    report = failwell.describe(failing_with(name), origin="input")

    said = report.details["errno"]
    assert report.kind == kind
    assert getattr(errno, said) == getattr(errno, name)
    assert (report.evidence[0].basis, report.evidence[0].saw) == ("errno", said)
    assert CANARY not in report.to_json()


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("missing", "validation.path_not_found"),
        ("file/inside", "validation.path_wrong_type"),
        (".", "validation.path_wrong_type"),
        ("loop", "validation.path_wrong_type"),
        ("n" * 300, "validation.input_invalid"),
    ],
)
def test_files_that_cannot_be_opened(here: Path, path: str, kind: str) -> None:
    assert failwell.describe(caught((here / path).read_text), origin="input").kind == kind


def test_a_file_that_exists_already_is_a_failure_of_the_system_in_general(here: Path) -> None:
    report = failwell.describe(caught((here / "file").mkdir), origin="input")

    assert (report.kind, report.error_type) == ("internal.io_error", "FileExistsError")
    assert (report.evidence[0].basis, report.evidence[0].saw) == ("errno", f"errno {errno.EEXIST}")


@pytest.mark.parametrize(
    ("action", "kind", "certainty"),
    [
        (refuse_a_connection, "provider.connection", "not_sent"),
        (read_from_nobody, "provider.outcome_unknown", "unknown"),
        (read_what_is_not_there_yet, "tool.busy", "not_sent"),
        (write_to_nobody, "provider.outcome_unknown", "unknown"),
        (take_a_port_twice, "validation.config_invalid", "not_sent"),
    ],
)
def test_sockets_that_fail(action: Action, kind: str, certainty: str) -> None:
    report = failwell.describe(caught(action), origin="input")

    assert (report.kind, report.certainty) == (kind, certainty)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (FileNotFoundError("x"), "validation.path_not_found"),
        (NotADirectoryError("x"), "validation.path_wrong_type"),
        (IsADirectoryError("x"), "validation.path_wrong_type"),
        (PermissionError("x"), "validation.path_denied"),
        (ConnectionRefusedError("x"), "provider.connection"),
        (ConnectionResetError("x"), "provider.outcome_unknown"),
        (ConnectionAbortedError("x"), "provider.outcome_unknown"),
        (BrokenPipeError("x"), "provider.outcome_unknown"),
        (ConnectionError("x"), "provider.outcome_unknown"),
        (InterruptedError("x"), "tool.busy"),
        (BlockingIOError("x"), "tool.busy"),
        (ProcessLookupError("x"), "internal.io_error"),
        (OSError("x"), "internal.io_error"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, OSError) else None,
)
def test_without_a_number_the_class_decides(error: OSError, kind: str) -> None:
    report = failwell.describe(error, origin="input")

    assert report.kind == kind
    assert report.evidence[0].basis == "type"


def test_a_line_that_timed_out_leaves_the_outcome_unknown() -> None:
    assert failwell.describe(failing_with("ETIMEDOUT"), origin="input").kind == "provider.outcome_unknown"


def test_the_number_beats_the_class() -> None:
    error = PermissionError("x")
    error.errno = errno.ENOSPC

    assert failwell.describe(error, origin="input").kind == "resource.disk"


def test_a_full_disk_is_a_resource_whatever_its_class() -> None:
    class AcmeStorageError(OSError):
        """A library's own name for it."""

    report = failwell.describe(AcmeStorageError(errno.ENOSPC, "No space left on device"), origin="input")

    assert (report.kind, report.category, report.retryable) == ("resource.disk", "resource", False)


def test_a_number_that_is_no_number_is_passed_over() -> None:
    error = FileNotFoundError("x")
    error.errno = "ENOENT"  # pyright: ignore[reportAttributeAccessIssue]

    assert read_oserror(error).kind == "validation.path_not_found"
