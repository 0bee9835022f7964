"""Nothing of a run is alive after it, however it ends: not even what hides and does not listen."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.running import environment, failwell

# A script with a child, a grandchild in a session of its own and one whose parent is gone, all deaf to SIGTERM.
STUBBORN = r"""
trap '' TERM HUP INT
sh -c "trap '' TERM HUP INT; sleep 600 & wait; sleep 600" &
setsid sh -c "trap '' TERM HUP INT; sleep 600 & wait; sleep 600" &
( ( setsid sh -c "trap '' TERM HUP INT; sleep 600; sleep 600" & ) & )
sleep 0.1
touch "$1"
sleep 600
"""
ENDINGS: dict[str, str] = {
    "script_timeout": "    timeout: 2\n",
    "run_timeout": "",
    "fail_fast": "",
    "stop": "",
    "interrupt": "",
    "kill": "",
}


def a_workflow(folder: Path, ending: str) -> str:
    script = folder / "stubborn.sh"
    script.write_text(STUBBORN)
    limits = "  limits: {timeout_seconds: 3}\n" if ending == "run_timeout" else ""
    member = f"""
  - name: long
    type: script
    command: sh
    args: ["{script}", "{folder}/began"]
{ENDINGS[ending]}"""
    entry = "pair" if ending == "fail_fast" else "long"
    group = ""
    if ending == "fail_fast":
        wait = f"until test -e '{folder}/began'; do sleep 0.05; done; exit 1"
        member += f"""
  - name: quick
    type: script
    command: sh
    args: ["-c", "{wait}"]
    raises: [external.x]
"""
        group = "parallel:\n  - {name: pair, agents: [long, quick]}\n"
    file = folder / "flow.yaml"
    file.write_text(f"workflow:\n  name: flow\n  entry_point: {entry}\n{limits}agents:{member}{group}")
    return str(file)


def alive(run: str) -> list[int]:
    """Every process that carries the run's name in its environment."""
    mark = f"FAILWELL_RUN_ID={run}".encode()
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                variables = (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if mark in variables:
                found.append(int(entry.name))
    return found


def _until(there: Callable[[], bool], seconds: float, what: str) -> None:
    until = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < until, what
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.acceptance("conductor 65", "conductor 43")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("ending", list(ENDINGS))
def test_no_process_of_a_run_is_alive_five_seconds_after_its_end(ending: str, tmp_path: Path) -> None:
    name = f"hygiene-{ending}-{os.getpid()}"
    store = str(tmp_path / "store")
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "failwell",
            "run",
            a_workflow(tmp_path, ending),
            "--store",
            store,
            "--run-id",
            name,
        ],
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    _until((tmp_path / "began").exists, 30, "the script never began")
    assert len(alive(name)) >= 4

    if ending == "stop":
        assert failwell("stop", name, "--store", store).code == 0
    elif ending == "interrupt":
        process.send_signal(signal.SIGINT)
    elif ending == "kill":
        process.send_signal(signal.SIGKILL)
    _, said = process.communicate(timeout=60)

    _until(lambda: not alive(name), 5, f"still alive: {alive(name)}")
    wanted = {"script_timeout": 1, "run_timeout": 1, "fail_fast": 3, "stop": 1, "interrupt": 130, "kill": -9}
    assert process.returncode == wanted[ending], said.decode()
