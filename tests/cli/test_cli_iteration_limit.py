"""At an iteration limit a terminal is asked for more steps; without one the run fails and names the command."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import environment, failwell

LOOP = """
workflow: {name: loop, entry_point: work, limits: {max_iterations: 3}}
agents:
  - name: work
    type: set
    value: "{{ context.iteration }}"
    routes:
      - {to: work, when: "{{ context.iteration < 6 }}"}
      - {to: $end}
"""


def at_a_terminal(folder: Path, typed: bytes, *options: str) -> tuple[int, str, str]:
    """Run the loop with a terminal as stdin and stderr, and type something when it asks. Code, stdout, screen."""
    (folder / "loop.yaml").write_text(LOOP)
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "failwell",
            "run",
            "loop.yaml",
            "--progress",
            "plain",
            "--store",
            "store",
            *options,
        ],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        cwd=folder,
        env=environment(),
        start_new_session=True,
    )
    os.close(theirs)
    screen = b""
    try:
        while True:
            screen += os.read(ours, 4096)
            if screen.rstrip().endswith(b"0 stops]:") and typed:
                os.write(ours, typed)
                typed = b""
    except OSError:
        # The terminal is closed by the end of the program.
        pass
    out, _ = process.communicate(timeout=30)
    os.close(ours)
    return process.returncode, out.decode(), screen.decode().replace("\r\n", "\n")


def test_a_number_goes_on_in_the_same_run(tmp_path: Path) -> None:
    code, out, screen = at_a_terminal(tmp_path, b"some\n10\n", "--run-id", "r")

    assert "? `loop` has taken 3 steps, which is its limit. How many more, from `work` on?" in screen
    assert "write a number of steps" in screen
    assert (code, out.strip()) == (0, '{\n  "result": 5\n}')
    listed = failwell("runs", "list", "--json", "--store", str(tmp_path / "store")).data
    assert [(run["id"], run["status"]) for run in listed] == [("r", "completed")]


@pytest.mark.parametrize("typed", [b"0\n", b"\x04"], ids=["zero", "end of input"])
def test_stopping_is_the_failure_that_others_get(typed: bytes, tmp_path: Path) -> None:
    code, out, screen = at_a_terminal(tmp_path, typed)

    assert (code, out) == (1, "")
    assert "limit.iterations" in screen


@pytest.mark.parametrize("option", ["--no-input", "--skip-gates"])
def test_a_terminal_that_must_not_be_asked_is_not(option: str, tmp_path: Path) -> None:
    code, _out, screen = at_a_terminal(tmp_path, b"", option)

    assert code == 1
    assert "How many more" not in screen


def test_without_a_terminal_the_command_that_raises_the_limit_works(tmp_path: Path) -> None:
    (tmp_path / "loop.yaml").write_text(LOOP)
    store = str(tmp_path / "store")

    failed = failwell("run", str(tmp_path / "loop.yaml"), "--store", store)
    resumed = failwell("resume", "last", "--raise-limit", "max_iterations=20", "-q", "--store", store)

    assert failed.code == 1
    assert "How many more" not in failed.err
    assert resumed.data == {"result": 5}
