"""Nothing that a script started outlives its time limit, its cancellation, its run or its host."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from failwell.processes import script, tree
from failwell.workflows.failure import Failure
from failwell.workflows.running.script_executor import ScriptExecutor
from tests.workflows.run.scripting import (
    MOMENT,
    SRC,
    Roll,
    all_end,
    all_live,
    broke,
    envelope,
    runaways,
    sh,
    some_tools,
    with_executor,
    worked,
)

pytestmark = pytest.mark.skipif(not tree.has_proc(), reason="needs /proc to look for processes")

HOST = """
import asyncio, os, sys
from pathlib import Path
from tests.workflows.run.scripting import sh, some_tools
from failwell.workflows.running.script_executor import ScriptExecutor

{top}

async def main():
    executor = ScriptExecutor()
    script = asyncio.create_task(executor.run(sh(sys.argv[2]), some_tools(Path(sys.argv[1]))))
    await asyncio.sleep(0)
    {during}
    await script
    {after}

asyncio.run(main())
"""


def a_host(
    folder: Path,
    text: str,
    *,
    top: str = "",
    during: str = "",
    after: str = "await executor.close('run-1')",
) -> subprocess.Popen[bytes]:
    """Another process that runs one script."""
    return subprocess.Popen(
        [sys.executable, "-c", HOST.format(top=top, during=during, after=after), str(folder), text],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(SRC), str(SRC.parent)])},
        start_new_session=True,
    )


def number_of(handle: int) -> int:
    told = Path(f"/proc/self/fdinfo/{handle}").read_text().splitlines()
    return next(int(line.split()[1]) for line in told if line.startswith("Pid:"))


def children(pid: int) -> list[int]:
    return [seen.pid for seen in tree.living().values() if seen.parent == pid]


@pytest.mark.acceptance("conductor 65")
def test_a_time_limit_ends_every_process_that_the_script_started(tmp_path: Path) -> None:
    roll = Roll(tmp_path)
    starts, count = runaways(roll.path)

    async def work(executor: ScriptExecutor) -> tuple[Failure, list[int]]:
        task = asyncio.create_task(
            executor.run(sh(f"{starts} wait", timeout=2.0), some_tools(tmp_path, grace=0.1))
        )
        handles = await asyncio.to_thread(roll.call, count)
        assert all_live(handles)
        done = await task
        assert isinstance(done, Failure)
        assert all_end(handles, MOMENT)
        return done, handles

    done, handles = asyncio.run(with_executor(work))

    assert len(handles) == count
    assert envelope(done)["kind"] == "internal.script_timeout"
    assert "survivors" not in envelope(done)["details"]


@pytest.mark.acceptance("conductor 65")
def test_a_time_limit_is_kept_whoever_holds_the_output_open(tmp_path: Path) -> None:
    stubborn = sh("trap '' TERM; (trap '' TERM; setsid sleep 1000) & sleep 1000", timeout=0.5)
    took: list[float] = []

    async def work(executor: ScriptExecutor) -> None:
        # Of three, because a busy machine may take its time once.
        while len(took) < 3 and min(took, default=9.0) > 1.5:
            began = time.monotonic()
            assert isinstance(await executor.run(stubborn, some_tools(tmp_path, grace=0.3)), Failure)
            took.append(time.monotonic() - began)

    asyncio.run(with_executor(work))

    assert 0.8 <= min(took) <= 1.5


@pytest.mark.parametrize("has_terminal", [True, False])
def test_a_script_leads_its_group_and_is_kept_from_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_terminal: bool
) -> None:
    monkeypatch.setattr(script, "has_terminal", lambda: has_terminal)

    done = worked(
        tmp_path,
        sh("read pid name state parent group session rest </proc/$$/stat; echo $pid $group $session"),
    )
    late = broke(tmp_path, sh("trap '' TERM; sleep 1000 & sleep 1000", timeout=0.1), grace=0.1)

    pid, group, session = done.output["stdout"].split()
    assert group == pid
    assert (session == pid) is has_terminal
    assert envelope(late)["kind"] == "internal.script_timeout"


def test_a_script_that_ends_when_asked_is_not_made_to_wait_for_the_grace(tmp_path: Path) -> None:
    began = time.monotonic()
    done = broke(tmp_path, sh("trap 'echo bye; exit 0' TERM; sleep 1000 & wait", timeout=0.2), grace=30.0)

    assert time.monotonic() - began < 10.0
    assert done.output["stdout"] == "bye\n"


def test_a_stopped_script_is_ended_too(tmp_path: Path) -> None:
    began = time.monotonic()
    done = broke(tmp_path, sh("kill -STOP $$", timeout=0.2), grace=30.0)

    assert time.monotonic() - began < 10.0
    assert envelope(done)["kind"] == "internal.script_timeout"


def test_a_process_that_is_never_where_it_was_seen_is_ended(tmp_path: Path) -> None:
    roll = Roll(tmp_path)
    # A child, and the parent ends: a few dozen times, for the machine's sake.
    hop = (
        "import os, signal, time\nsignal.signal(15, signal.SIG_IGN)\n"
        # It ends by itself after a while, so that a test that fails leaves nothing behind for ever.
        "until = time.monotonic() + 20\n"
        "while time.monotonic() < until:\n    time.sleep(0.005)\n    if os.fork(): os._exit(0)"
    )

    async def work(executor: ScriptExecutor) -> int:
        script = sh(f"echo $$ >{roll.path}; '{sys.executable}' -S -c '{hop}'; sleep 1000", timeout=0.2)
        done = asyncio.create_task(executor.run(script, some_tools(tmp_path, grace=0.1)))
        (handle,) = await asyncio.to_thread(roll.call, 1)
        leader = number_of(handle)
        assert isinstance(await done, Failure)
        return leader

    leader = asyncio.run(with_executor(work))

    assert not [seen for seen in tree.living().values() if seen.group == leader]


@pytest.mark.acceptance("conductor 43")
def test_a_cancelled_script_is_gone_with_its_tree_before_the_cancellation_goes_on(tmp_path: Path) -> None:
    roll = Roll(tmp_path)
    starts, count = runaways(roll.path)

    async def work(executor: ScriptExecutor) -> list[int]:
        task = asyncio.create_task(executor.run(sh(f"{starts} wait"), some_tools(tmp_path, grace=0.1)))
        handles = await asyncio.to_thread(roll.call, count)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert all_end(handles, MOMENT)
        return handles

    handles = asyncio.run(with_executor(work))

    assert len(handles) == count


def test_a_second_cancellation_does_not_cut_the_first_one_short(tmp_path: Path) -> None:
    roll = Roll(tmp_path)
    starts, count = runaways(roll.path)

    async def work(executor: ScriptExecutor) -> list[int]:
        task = asyncio.create_task(executor.run(sh(f"{starts} wait"), some_tools(tmp_path, grace=0.2)))
        handles = await asyncio.to_thread(roll.call, count)
        task.cancel()
        while not task.done():
            await asyncio.sleep(0)
            task.cancel()
        assert task.cancelled()
        assert all_end(handles, MOMENT)
        return handles

    assert len(asyncio.run(with_executor(work))) == count


def test_ending_one_script_leaves_the_others_alone(tmp_path: Path) -> None:
    roll = Roll(tmp_path)

    async def work(executor: ScriptExecutor) -> tuple[bool, bool]:
        tools = some_tools(tmp_path)
        other = asyncio.create_task(executor.run(sh(f"echo $$ >{roll.path}; exec sleep 1000"), tools))
        handles = await asyncio.to_thread(roll.call, 1)
        done = await executor.run(sh("sleep 1000", timeout=0.05), tools)
        lived = all_live(handles)
        other.cancel()
        await asyncio.wait([other])
        return isinstance(done, Failure), lived

    assert asyncio.run(with_executor(work)) == (True, True)


def test_a_process_left_in_the_background_does_not_hold_up_the_script(tmp_path: Path) -> None:
    roll = Roll(tmp_path)

    async def work(executor: ScriptExecutor) -> tuple[list[int], bool]:
        began = time.monotonic()
        done = await executor.run(
            sh(f"sh -c 'echo $$ >{roll.path}; exec sleep 1000' & echo started"), some_tools(tmp_path)
        )
        assert time.monotonic() - began < 5.0
        assert not isinstance(done, Failure)
        assert done.output["stdout"] == "started\n"
        handles = await asyncio.to_thread(roll.call, 1)
        return handles, all_live(handles)

    handles, lived_on = asyncio.run(with_executor(work))

    assert lived_on, "the next script may use it"
    assert all_end(handles, MOMENT), "and it ends with the run"


def test_what_was_left_in_the_background_can_go_on_printing(tmp_path: Path) -> None:
    roll = Roll(tmp_path)
    # Printed after its script has ended, by one whose output nobody wants any more.
    later = f"read go <{tmp_path}/go; echo much; echo more; echo $$ >{roll.path}; exec sleep 1000"
    os.mkfifo(tmp_path / "go")

    async def work(executor: ScriptExecutor) -> bool:
        await executor.run(sh(f"sh -c '{later}' &"), some_tools(tmp_path))
        await asyncio.to_thread((tmp_path / "go").write_text, "go\n")
        return all_live(await asyncio.to_thread(roll.call, 1))

    assert asyncio.run(with_executor(work))


def test_runaways_of_a_script_that_ended_well_end_with_the_run(tmp_path: Path) -> None:
    roll = Roll(tmp_path)
    # Without their parent, those that wiped their environment and left their session are nobody's.
    starts, count = runaways(roll.path)
    starts, count = starts.rpartition("env -i setsid")[0], count - 1

    async def work(executor: ScriptExecutor) -> list[int]:
        await executor.run(sh(f"{starts} read all <{tmp_path}/go", stdin=None), some_tools(tmp_path))
        return handles

    os.mkfifo(tmp_path / "go")
    handles: list[int] = []

    async def main() -> None:
        async def both(executor: ScriptExecutor) -> None:
            script = asyncio.create_task(work(executor))
            handles.extend(await asyncio.to_thread(roll.call, count))
            await asyncio.to_thread((tmp_path / "go").write_text, "go\n")
            await script
            assert all_live(handles)

        await with_executor(both)

    asyncio.run(main())

    assert len(handles) == count
    assert all_end(handles, MOMENT)


def test_a_killed_host_takes_every_process_of_its_run_with_it(tmp_path: Path) -> None:
    roll = Roll(tmp_path)
    starts, count = runaways(roll.path)
    host = a_host(tmp_path / "run", f"{starts} wait")
    handles = roll.call(count)
    # The script itself, and the guardian.
    handles += [os.pidfd_open(pid) for pid in children(host.pid)]
    assert len(handles) == count + 2
    assert all_live(handles)

    host.kill()
    began = time.monotonic()
    host.wait()

    assert all_end(handles, 5.0)
    assert time.monotonic() - began < 5.0
    assert list((tmp_path / "run").glob("scratch-*")) == []


def test_a_host_that_forgets_to_close_its_run_leaves_nothing_alive(tmp_path: Path) -> None:
    roll = Roll(tmp_path)
    host = a_host(tmp_path / "run", f"setsid sh -c 'echo $$ >{roll.path}; exec sleep 1000' &", after="pass")

    handles = roll.call(1)

    assert host.wait(20) == 0
    assert all_end(handles, 5.0)


def test_a_run_that_goes_on_ends_first_what_its_killed_host_left(tmp_path: Path) -> None:
    roll = Roll(tmp_path)
    host = a_host(tmp_path / "run", f"setsid sh -c 'echo $$ >{roll.path}; exec sleep 1000' & wait")
    handles = roll.call(1)
    for pid in children(host.pid):
        if b"guardian" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGKILL)
    host.kill()
    host.wait()
    assert all_live(handles)

    worked(tmp_path / "run", sh("true"))

    assert all_end(handles, MOMENT)
    assert list((tmp_path / "run").glob("scratch-*")) == []


def test_two_executors_of_one_run_leave_each_other_in_peace(tmp_path: Path) -> None:
    roll = Roll(tmp_path)

    async def work(executor: ScriptExecutor) -> bool:
        script = asyncio.create_task(
            executor.run(sh(f"echo $$ >{roll.path}; exec sleep 1000"), some_tools(tmp_path))
        )
        handles = await asyncio.to_thread(roll.call, 1)
        await with_executor(lambda other: other.run(sh("true"), some_tools(tmp_path)))
        lived = all_live(handles)
        script.cancel()
        await asyncio.wait([script])
        return lived

    assert asyncio.run(with_executor(work))


def test_the_scripts_of_a_run_inside_a_script_end_with_the_outer_one(tmp_path: Path) -> None:
    roll = Roll(tmp_path)
    inner = f"(setsid sh -c 'trap \"\" TERM; echo $$ >{roll.path}; exec sleep 1000' & ) & sleep 1000"
    program = tmp_path / "inner.py"
    program.write_text(HOST.format(top="", during="", after="pass"))
    path = os.pathsep.join([str(SRC), str(SRC.parent)])
    outer = sh(
        f'exec "{sys.executable}" {program} {tmp_path}/inner "$INNER"',
        env={"PYTHONPATH": path, "INNER": inner},
    )

    async def work(executor: ScriptExecutor) -> list[int]:
        task = asyncio.create_task(executor.run(outer, some_tools(tmp_path / "outer", grace=0.0)))
        handles = await asyncio.to_thread(roll.call, 1)
        task.cancel()
        await asyncio.wait([task])
        assert all_end(handles, MOMENT)
        return handles

    assert asyncio.run(with_executor(work))


def test_without_a_handle_for_processes_a_thread_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "pidfd_open")

    ended = worked(tmp_path, sh("echo hi; exit 3"))
    late = broke(tmp_path, sh("sleep 1000", timeout=0.05))

    assert (ended.output["stdout"], ended.output["exit_code"]) == ("hi\n", 3)
    assert envelope(late)["kind"] == "internal.script_timeout"


@pytest.mark.slow
def test_where_processes_are_not_shown_as_files_the_group_still_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    roll = Roll(tmp_path)

    async def work(executor: ScriptExecutor) -> list[int]:
        monkeypatch.setattr(tree, "_PROC", "/nowhere")
        say = f"echo $$ >{roll.path}; exec sleep 1000"
        task = asyncio.create_task(
            executor.run(sh(f"sh -c 'trap \"\" TERM; {say}' & wait"), some_tools(tmp_path, grace=0.1))
        )
        handles = await asyncio.to_thread(roll.call, 1)
        task.cancel()
        await asyncio.wait([task])
        assert all_end(handles, 1.0)
        return handles

    assert asyncio.run(with_executor(work))
