"""Background runs: `run --detach`, `resume --detach`, `stop`, with real processes, terminals and kills."""

import json
import os
import select
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from failwell import workflows
from failwell.store.sqlite.run_store import SqliteStore
from tests.cli.running import Done, environment, failwell, failwell_process

pytestmark = pytest.mark.skipif(
    not hasattr(os, "pidfd_open"), reason="waits for processes by their descriptors"
)

FLOW = """
workflow: {name: slow, entry_point: first, input: {count: {type: number, default: 1}}}
agents:
  - {name: first, type: script, command: echo, args: [ready], routes: [{to: hold}]}
  - name: hold
    type: script
    command: sh
    args: [hold.sh]
output: {last: "{{ hold.output.stdout | trim }}"}
"""
HOLD = """
echo $$ >pids
sh -c 'trap "" TERM HUP; echo $$ >>pids; echo holding; exec sleep 1000' &
while read -r line; do echo "$line"; exit 0; done <pipe
"""


def a_place(folder: Path) -> list[str]:
    """A workflow whose second step waits for the pipe. Returns the arguments that run it."""
    os.mkfifo(folder / "pipe")
    (folder / "slow.yaml").write_text(FLOW)
    (folder / "hold.sh").write_text(HOLD)
    return ["run", "slow.yaml", "--detach", "--run-id", "r", "--store", "store"]


def start(folder: Path, *options: str) -> Done:
    return failwell_process(*a_place(folder), *options, cwd=folder)


def release(folder: Path) -> None:
    """Let the step end, and wait for the end of the run."""
    (folder / "pipe").write_text("released\n")
    follow(folder)


def follow(folder: Path, run: str = "r") -> list[str]:
    return failwell_process("runs", "logs", run, "--follow", "--store", "store", cwd=folder).out.splitlines()


def holding(folder: Path) -> list[int]:
    """Descriptors of the processes of the step and of the run, once all of them are there."""
    entries = workflows.read_logs("r", "hold", store=folder / "store", follow=True)
    assert next(entries).text == "holding\n"
    pids = [int(pid) for pid in (folder / "pids").read_text().split()]
    run = workflows.get_run("r", store=folder / "store")
    assert run.pid is not None
    return [os.pidfd_open(pid) for pid in [*pids, run.pid]]


def have_ended(descriptors: list[int]) -> bool:
    """Whether every process ends within some seconds."""
    is_over = all(select.select([each], [], [], 20)[0] for each in descriptors)
    for each in descriptors:
        os.close(each)
    return is_over


def shown(folder: Path) -> dict[str, Any]:
    return failwell("runs", "show", "r", "--json", "--store", str(folder / "store")).data


def test_a_detached_run_is_accepted_at_once_and_its_log_has_its_progress_and_its_result(
    tmp_path: Path,
) -> None:
    started = start(tmp_path)

    assert (started.code, started.err) == (0, "")
    assert "run r is running in the background" in started.out
    assert "follow: failwell runs logs r --follow --store store" in started.out
    assert "stop:   failwell stop r --store store" in started.out
    processes = holding(tmp_path)
    running = shown(tmp_path)
    assert running["status"] == "running"
    release(tmp_path)
    assert have_ended(processes)

    log = Path(shown(tmp_path)["log"])
    assert log == tmp_path / "store/runs/r/run.log"
    assert log.stat().st_mode & 0o777 == 0o600
    assert "hold: done in" in log.read_text()
    assert log.read_text().endswith('{\n  "last": "holding\\nreleased"\n}\n')
    assert failwell("runs", "list", "--store", str(tmp_path / "store")).out.split()[7:8] == ["completed"]


def test_bad_input_is_told_before_anything_is_detached(tmp_path: Path) -> None:
    refused = start(tmp_path, "-i", "count=many", "--json")
    broken = failwell_process("run", "missing.yaml", "--detach", "--store", "store", cwd=tmp_path)

    assert (refused.code, refused.out, broken.code, broken.out) == (2, "", 2, "")
    assert "the input `count` must be of type number" in refused.error["mistakes"][0]["message"]
    assert "missing.yaml" in broken.err
    assert workflows.list_runs(store=tmp_path / "store") == []


def test_a_taken_id_is_told_too_and_json_names_id_process_and_log(tmp_path: Path) -> None:
    first = start(tmp_path, "--json")
    processes = holding(tmp_path)
    second = failwell_process(
        "run", "slow.yaml", "--detach", "--run-id", "r", "--store", "store", "--json", cwd=tmp_path
    )
    release(tmp_path)

    assert have_ended(processes)
    assert first.data["id"] == "r"
    assert first.data["pid"] == workflows.get_run("r", store=tmp_path / "store").pid
    assert first.data["log"].endswith("store/runs/r/run.log")
    assert (second.code, second.error["kind"]) == (2, "session.locked")


def test_it_survives_the_end_of_its_terminal(tmp_path: Path) -> None:
    arguments = a_place(tmp_path)
    ours, theirs = os.openpty()
    # The first terminal that the leader of a session opens becomes the terminal of the session.
    script = 'tty=$1; shift; exec <"$tty" >"$tty" 2>&1; "$@"; echo accepted; read forever'
    shell = subprocess.Popen(
        ["sh", "-c", script, "sh", os.ttyname(theirs), sys.executable, "-m", "failwell", *arguments],
        cwd=tmp_path,
        env=environment(),
        start_new_session=True,
    )
    seen = b""
    # While the shell has not opened its end yet, this one keeps the terminal alive.
    while b"accepted" not in seen:
        seen += os.read(ours, 4096)
    os.close(theirs)
    processes = holding(tmp_path)
    run = workflows.get_run("r", store=tmp_path / "store")
    assert run.pid is not None
    assert os.getsid(run.pid) != shell.pid

    os.close(ours)
    shell.wait(20)
    os.kill(run.pid, signal.SIGHUP)
    release(tmp_path)

    assert have_ended(processes)
    assert shown(tmp_path)["status"] == "completed"


def test_it_can_be_started_with_closed_streams(tmp_path: Path) -> None:
    arguments = a_place(tmp_path)
    command = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-m", "failwell", *arguments]

    done = subprocess.run(command, cwd=tmp_path, env=environment(), check=False, timeout=30)
    processes = holding(tmp_path)
    release(tmp_path)

    assert done.returncode == 0
    assert have_ended(processes)
    assert "run completed" in (tmp_path / "store/runs/r/run.log").read_text()


def test_stop_ends_a_detached_run_with_everything_that_its_step_started(tmp_path: Path) -> None:
    start(tmp_path)
    processes = holding(tmp_path)

    stopped = failwell("stop", "r", "--reason", "enough", "--store", str(tmp_path / "store"))

    assert (stopped.code, stopped.out, stopped.err) == (0, "run r has ended: cancelled\n", "")
    assert have_ended(processes)
    assert shown(tmp_path)["status"] == "cancelled"


@pytest.mark.slow
def test_a_run_that_does_not_react_is_killed_recorded_and_can_be_resumed(tmp_path: Path) -> None:
    start(tmp_path)
    processes = holding(tmp_path)
    run = workflows.get_run("r", store=tmp_path / "store")
    assert run.pid is not None
    os.kill(run.pid, signal.SIGSTOP)

    status = workflows.cancel_run("r", by="me", force_after=0.2, store=tmp_path / "store")

    assert status == "cancelled"
    assert have_ended(processes)
    end = workflows.read_events("r", store=tmp_path / "store")[-1]
    assert (end.type, end.data["by"], end.data["forced"]) == ("run:cancelled", "me", True)
    (tmp_path / "hold.sh").write_text("echo resumed")
    resumed = failwell("resume", "r", "-q", "--store", str(tmp_path / "store"), cwd=tmp_path)
    assert resumed.data == {"last": "resumed"}


def test_a_killed_one_is_interrupted_and_resumed_in_the_background(tmp_path: Path) -> None:
    start(tmp_path)
    processes = holding(tmp_path)
    run = workflows.get_run("r", store=tmp_path / "store")
    assert run.pid is not None
    os.kill(run.pid, signal.SIGKILL)
    assert have_ended(processes)
    listed = failwell("runs", "list", "--json", "--store", str(tmp_path / "store")).data
    assert listed[0]["status"] == "interrupted"

    (tmp_path / "hold.sh").write_text("echo again")
    resumed = failwell_process("resume", "r", "--detach", "--json", "--store", "store", cwd=tmp_path)
    follow(tmp_path)

    assert (resumed.code, json.loads(resumed.out)["id"]) == (0, "r")
    assert shown(tmp_path)["status"] == "completed"
    assert shown(tmp_path)["outputs"] == {"last": "again"}


def test_a_gate_of_a_detached_run_waits_to_be_answered(tmp_path: Path) -> None:
    (tmp_path / "gate.yaml").write_text("""
workflow: {name: gate, entry_point: ask}
agents:
  - name: ask
    type: human_gate
    prompt: ship?
    options: [{label: "yes", value: "yes", route: $end}]
""")
    arguments = ["--run-id", "r", "--store", "store"]

    started = failwell_process("run", "gate.yaml", "--detach", "--wait", *arguments, cwd=tmp_path)
    process = [os.pidfd_open(workflows.get_run("r", store=tmp_path / "store").pid or 0)]
    with closing(SqliteStore(tmp_path / "store")) as store:
        assert any(event.type == "human_gate:paused" for event in store.tail("r"))
    answered = failwell("gates", "answer", "r", "ask", "yes", "--store", str(tmp_path / "store"))

    assert (started.code, answered.code) == (0, 0)
    assert have_ended(process)
    assert shown(tmp_path)["status"] == "completed"


def test_a_run_that_waits_can_be_stopped_and_resumed(tmp_path: Path) -> None:
    (tmp_path / "gate.yaml").write_text("""
workflow: {name: gate, entry_point: ask}
agents:
  - name: ask
    type: human_gate
    prompt: ship?
    options: [{label: "yes", value: "yes", route: $end}]
""")
    store = ["--store", str(tmp_path / "store")]
    failwell("run", str(tmp_path / "gate.yaml"), "--run-id", "r", *store)

    stopped, again = failwell("stop", "r", *store), failwell("stop", "r", *store)
    resumed = failwell("resume", "r", "--skip-gates", "-q", *store)

    assert (stopped.code, stopped.out) == (0, "run r has ended: cancelled\n")
    assert (again.code, again.out) == (2, "")
    assert "its status is cancelled" in again.err
    assert resumed.code == 0
