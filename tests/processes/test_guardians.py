"""One guardian for scripts and workers: the same deaths of a host, and nothing is left of either."""

import asyncio
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from failwell.jobs.manifest import Manifest
from failwell.jobs.workers.supervisor import SupervisedWorker
from failwell.processes import run_processes, tree
from tests.workflows.run.scripting import SRC, Roll, all_end, all_live, sh, worked

pytestmark = pytest.mark.skipif(not tree.has_proc(), reason="needs /proc to look for processes")

SCRIPTS = """
import asyncio, os, sys
from pathlib import Path
from failwell.workflows.running.script_executor import ScriptExecutor
from tests.workflows.run.scripting import sh, some_tools

TREE = '''
say() { echo $1 >ROLL; }
sleep 1000 & say $!
setsid sleep 1000 & say $!
(setsid sh -c 'echo $$ >ROLL; exec sleep 1000' &)
say $$
wait
'''

async def main():
    folder, roll = Path(sys.argv[1]), sys.argv[2]
    executor = ScriptExecutor()
    script = asyncio.create_task(executor.run(sh(TREE.replace("ROLL", roll)), some_tools(folder)))
    if len(sys.argv) > 3:
        await asyncio.to_thread(sys.stdin.readline)
        second = sh(f"echo $$ >{roll}; exec sleep 1000")
        script = asyncio.gather(script, executor.run(second, some_tools(folder)))
    await script
"""
WORKER = """
import asyncio, os, sys
from failwell.jobs.workers.supervisor import SupervisedWorker
from tests.jobs.workers import a_manifest

async def main():
    worker = SupervisedWorker(a_manifest())
    pids = [*await worker.call("one", action="start_descendants"), worker.pid]
    with open(sys.argv[2], "w") as roll:
        roll.write("".join(f"{pid}\\n" for pid in pids))
    await worker.call("two", {"seconds": 600}, action="deaf")
"""
RUN = """
async def forked():
    work = asyncio.create_task(main())
    await asyncio.sleep(0.5)
    if os.fork() == 0:
        import signal
        signal.pause()
    await work

asyncio.run(forked() if os.environ.get("FORKS") else main())
"""
KINDS = {"scripts": SCRIPTS, "worker": WORKER}
SIZE = 4
"""Processes in each tree: a child, one in its own session, an orphan, and the script or worker itself."""


@contextmanager
def a_host(
    kind: str, folder: Path, *args: str, **env: str
) -> Generator[tuple[subprocess.Popen[bytes], Roll]]:
    """A process that runs a script or a worker, with the numbers of everything that it started."""
    roll = Roll(folder)
    path = os.pathsep.join([str(SRC), str(SRC.parent)])
    host = subprocess.Popen(
        [sys.executable, "-c", KINDS[kind] + RUN, str(folder / "run"), str(roll.path), *args],
        cwd=SRC.parent,
        env={**os.environ, "PYTHONPATH": path, **env},
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield host, roll
    finally:
        # The session of the host is its own: nothing but what this test started is in it.
        tree.send(signal.SIGKILL, (), [host.pid])
        host.wait()
        assert host.stdin is not None
        host.stdin.close()


def guardian_of(host: int, *, other_than: int = 0) -> int:
    """The guardian below a host, once there is one."""
    while True:
        for process in tree.living().values():
            if process.parent == host and process.pid != other_than:
                command = Path(f"/proc/{process.pid}/cmdline").read_bytes()
                if b"import guard_scripts" in command or b"worker_process/boot.py" in command:
                    return process.pid


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_host_leaves_no_process_and_no_guardian(kind: str, tmp_path: Path) -> None:
    with a_host(kind, tmp_path) as (host, roll):
        handles = [*roll.call(SIZE), os.pidfd_open(guardian_of(host.pid))]
        assert all_live(handles)

        host.kill()
        host.wait()

        assert all_end(handles, 5.0)


@pytest.mark.parametrize("kind", KINDS)
def test_signals_to_every_process_do_not_end_a_guardian(kind: str, tmp_path: Path) -> None:
    with a_host(kind, tmp_path) as (host, roll):
        handles = roll.call(SIZE)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
            os.kill(guardian_of(host.pid), number)
        assert all_live(handles)

        host.kill()
        host.wait()

        assert all_end(handles, 5.0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fork_of_the_host_does_not_hide_its_death_from_a_guardian(kind: str, tmp_path: Path) -> None:
    with a_host(kind, tmp_path, FORKS="1") as (host, roll):
        handles = roll.call(SIZE)
        guardian = guardian_of(host.pid)
        forks = {host.pid}
        while forks == {host.pid}:
            forks = {process.pid for process in tree.living().values() if process.group == host.pid}

        host.kill()
        host.wait()

        assert all_end([*handles, os.pidfd_open(guardian)], 5.0)
        assert all(tree.look(pid) for pid in forks - {host.pid}), "the fork itself lives on"


def left_behind(orders: str) -> None:
    """Run the guardian of a host that gave these orders and died."""
    code = "from failwell.processes.guardian import guard_scripts as guard; guard('mark.', '1')"
    near, far = socket.socketpair()
    with far:
        near.sendall(orders.encode())
        near.close()
        subprocess.run([sys.executable, "-c", code], stdin=far.fileno(), check=True, timeout=20)


def test_a_guardian_that_starts_after_its_host_died_ends_what_it_was_told(tmp_path: Path) -> None:
    victim = subprocess.Popen(["sleep", "1000"], process_group=0)
    scratch = tmp_path / "with a space"
    scratch.mkdir()
    orders = f"watch {victim.pid}\nremove {os.fsencode(scratch).hex()}\n"

    left_behind(orders)

    assert victim.wait(5) == -signal.SIGKILL
    assert not scratch.exists()


def test_a_guardian_ends_nothing_that_it_was_told_to_forget() -> None:
    other = subprocess.Popen(["sleep", "1000"], process_group=0)
    orders = f"watch {other.pid}\nforget {other.pid}\n"
    try:
        left_behind(orders)

        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_a_guardian_of_scripts_that_was_killed_is_replaced_and_told_everything(tmp_path: Path) -> None:
    with a_host("scripts", tmp_path, "second") as (host, roll):
        handles = roll.call(SIZE)
        first = guardian_of(host.pid)
        os.kill(first, signal.SIGKILL)
        select.select([os.pidfd_open(first)], [], [], 5.0)
        assert host.stdin is not None
        host.stdin.write(b"go\n")
        host.stdin.flush()
        handles += roll.call(1)

        guardian_of(host.pid, other_than=first)
        host.kill()
        host.wait()

        assert all_end(handles, 5.0)


def test_the_end_of_a_run_looks_at_no_other_process(tmp_path: Path) -> None:
    scans: list[str] = []

    def note(frame: Any, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code is tree.living.__code__:
            scans.append(frame.f_back.f_code.co_name)

    said = tmp_path / "said"
    text = f"(setsid sh -c 'echo $$ >{said}; exec sleep 1000' >/dev/null 2>&1 &); until [ -s {said} ]; do :; done"
    sys.setprofile(note)
    try:
        worked(tmp_path, sh(text))
    finally:
        sys.setprofile(None)

    assert tree.look(int(said.read_text())) is None
    assert scans == []


def test_a_frozen_application_runs_scripts_without_a_guardian_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # Its `sys.executable` is the application itself, which must not be started again.
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "executable", "/no/interpreter")
    monkeypatch.setattr(run_processes, "_guardians", {})

    assert worked(tmp_path, sh("echo hi")).output["stdout"] == "hi\n"
    assert "will not be ended if this process is killed" in caplog.text


ESCAPING = """
import subprocess

def start():
    text = "sleep 1000 >/dev/null 2>&1 & echo $!"
    away = ["env", "-i", "PATH=/usr/bin:/bin", "setsid", "sh", "-c", text]
    return int(subprocess.run(away, stdout=subprocess.PIPE, check=True).stdout)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs a subreaper")
def test_an_orphan_without_its_mark_group_and_parents_ends_with_its_killed_worker(tmp_path: Path) -> None:
    (tmp_path / "escaping.py").write_text(ESCAPING)

    async def work() -> None:
        worker = SupervisedWorker(Manifest(name="escaping", object="escaping:start", path=(str(tmp_path),)))
        try:
            orphan = os.pidfd_open(await worker.call("one"))
            assert worker.pid is not None
            os.kill(worker.pid, signal.SIGKILL)
            assert all_end([orphan], 5.0)
        finally:
            await worker.stop()

    asyncio.run(work())
