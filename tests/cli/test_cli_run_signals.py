"""Signals to `failwell run` and `failwell resume`: exit codes, what is recorded, and no traceback."""

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.running import environment, failwell
from tests.cli.test_cli_run import a_file, events, processes_with, wait_for

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
NAMES = [number.name for number in CODES]
Start = Callable[..., "subprocess.Popen[bytes]"]
STUBBORN = "trap '' TERM; touch '{mark}'; sleep 300 & wait; sleep 300"


def a_long_file(folder: Path, script: str = STUBBORN) -> tuple[str, Path]:
    mark = folder / "began"
    text = script.format(mark=mark)
    steps = f'[{{name: long, type: script, command: sh, args: ["-c", "{text}"]}}]'
    return a_file(folder, f"workflow: {{name: flow, entry_point: long}}\nagents: {steps}\n"), mark


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts the command; what a failed test leaves running is killed."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(*arguments: str) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(
            [sys.executable, "-m", "failwell", *arguments, "--store", str(tmp_path / "store")],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        with process:
            process.kill()


def end(process: "subprocess.Popen[bytes]") -> tuple[int, str]:
    out, err = process.communicate(timeout=30)
    assert out == b""
    return process.returncode, err.decode()


@pytest.mark.parametrize("number", CODES, ids=NAMES)
def test_the_first_signal_cancels_the_run_and_the_exit_code_names_the_signal(
    tmp_path: Path, start: Start, number: signal.Signals
) -> None:
    file, mark = a_long_file(tmp_path)
    process = start("run", file, "--run-id", "r1")
    wait_for(mark)

    process.send_signal(number)
    code, err = end(process)

    assert code == CODES[number], err
    assert f"{number.name}: stopping what runs" in err
    assert "Traceback" not in err
    assert f"next: failwell resume r1 --store {tmp_path / 'store'}" in err
    assert events(tmp_path, "r1")[-1]["type"] == "run:cancelled"
    assert not processes_with(str(mark))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=NAMES[:2])
def test_a_second_signal_ends_it_at_once_without_a_traceback_and_the_run_is_closed(
    tmp_path: Path, start: Start, number: signal.Signals
) -> None:
    file, mark = a_long_file(tmp_path)
    process = start("run", file, "--run-id", "r1", "--progress", "plain")
    wait_for(mark)
    assert process.stderr is not None

    process.send_signal(signal.SIGINT)
    while b"once more to stop at once" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(number)
    code, err = end(process)

    assert code in (CODES[number], 130), err
    assert "Traceback" not in err
    assert "failwell resume r1" in err
    assert events(tmp_path, "r1")[-1]["type"] == "run:cancelled"


def test_a_signal_while_a_resumed_run_works_has_the_same_codes(tmp_path: Path, start: Start) -> None:
    file, mark = a_long_file(tmp_path)
    store = ("--store", str(tmp_path / "store"))
    first = start("run", file, "--run-id", "r1")
    wait_for(mark)
    first.kill()
    first.communicate(timeout=30)
    mark.unlink()

    process = start("resume", "r1")
    wait_for(mark)
    process.send_signal(signal.SIGTERM)
    code, err = end(process)

    assert (code, "Traceback" in err) == (143, False), err
    assert failwell("runs", "show", "r1", "--format", "json", *store).data["status"] == "cancelled"


def test_ctrl_c_at_a_question_of_a_terminal_leaves_no_traceback(tmp_path: Path) -> None:
    file = a_file(
        tmp_path,
        "workflow: {name: flow, entry_point: ask}\n"
        "agents: [{name: ask, type: human_gate, prompt: Go on?, options: [{label: a, value: a, route: $end}]}]\n",
    )
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "failwell", "run", file, "--store", str(tmp_path / "store"), "--run-id", "r1"],
        env=environment(),
        stdin=slave,
        stdout=subprocess.PIPE,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    shown = b""
    while b"choose:" not in shown:
        shown += os.read(master, 4096)

    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    try:
        while chunk := os.read(master, 4096):
            shown += chunk
    except OSError:
        pass
    os.close(master)

    assert (process.returncode, out, b"Traceback" in shown) == (130, b"", False), shown
    assert events(tmp_path, "r1")[-1]["type"] == "run:cancelled"


@pytest.mark.slow
def test_a_signal_before_the_run_has_begun_ends_the_command_with_its_code(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir(mode=0o700)
    code = (
        "import os, signal, sys\n"
        "from failwell.workflows.running import launch\n"
        "check = launch.check_file\n"
        "def interrupted(*args, **kwargs):\n"
        "    os.kill(os.getpid(), int(sys.argv[1]))\n"
        "    return check(*args, **kwargs)\n"
        "launch.check_file = interrupted\n"
        "from failwell.cli.main import entry\n"
        f"sys.argv[1:] = ['run', {a_long_file(tmp_path)[0]!r}, '--store', {str(store)!r}]\n"
        "sys.exit(entry())\n"
    )
    for number, expected in list(CODES.items())[:2]:
        source = code.replace("int(sys.argv[1])", str(int(number)))
        done = subprocess.run(
            [sys.executable, "-c", source],
            env=environment(),
            capture_output=True,
            timeout=30,
            check=False,
        )

        assert (done.returncode, b"Traceback" in done.stderr) == (expected, False), done.stderr
