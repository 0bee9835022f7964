"""Ctrl-C and SIGTERM: once lets running jobs end, twice ends now, and no job is lost or cancelled by it."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.job_place import Place, finish, read_until, started
from tests.cli.running import environment, failwell

SECONDS = 4
"""A second signal does not wait for the five seconds that running jobs have after the first."""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, "slow")


def _twice(host: "subprocess.Popen[str]", number: signal.Signals) -> str:
    host.send_signal(number)
    read_until(host.stderr, "running jobs have 5 s to end")
    host.send_signal(number)
    return finish(host, SECONDS)[1]


@pytest.mark.parametrize(
    ("command", "number", "code"),
    [
        pytest.param(("workers", "run"), signal.SIGINT, 130, marks=pytest.mark.slow),
        (("workers", "run"), signal.SIGTERM, 0),
        (("jobs", "wait", "last"), signal.SIGINT, 130),
        pytest.param(("jobs", "wait", "last"), signal.SIGTERM, 143, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("action", [pytest.param("execute", marks=pytest.mark.slow), "deaf"])
def test_a_second_signal_ends_it_now_and_puts_running_jobs_back(
    place: Place, command: tuple[str, ...], number: signal.Signals, code: int, action: str
) -> None:
    go = place.path("go")
    place("jobs", "submit", "slow", f"path={go}", "--action", action)
    with place.start(*command) as host:
        place.until(Path(f"{go}.began"))
        words = _twice(host, number)

    assert (host.returncode, "stopping now" in words) == (code, True)
    shown = place("jobs", "show", "last", "--json").data
    assert shown["status"] == "pending"
    assert "cancelled" not in {event["type"] for event in shown["events"]}
    go.touch()
    assert place("jobs", "wait", "last").code == 0


def test_leaving_a_job_that_was_handed_in_and_waited_for_names_it(place: Place) -> None:
    go = place.path("go")
    with place.start("jobs", "submit", "slow", f"path={go}", "--wait") as host:
        place.until(Path(f"{go}.began"))
        words = _twice(host, signal.SIGINT)

    job = place("jobs", "show", "last", "--json").data
    assert job["status"] == "pending"
    assert f"`failwell jobs wait {job['id']}`" in words


def test_one_signal_lets_running_jobs_end(place: Place) -> None:
    go = place.path("go")
    place("jobs", "submit", "slow", f"path={go}")
    with place.start("workers", "run") as host:
        place.until(Path(f"{go}.began"))
        host.send_signal(signal.SIGTERM)
        read_until(host.stderr, "running jobs have 5 s to end")
        go.touch()
        finish(host)

    assert host.returncode == 0
    assert place("jobs", "show", "last", "--json").data["status"] == "completed"


PROGRAM = """
import asyncio, sys
from failwell.jobs import Runtime

async def main(store, go, action):
    async with Runtime(store) as jobs:
        try:
            job = await jobs.submit("slow", {"path": go}, action=action)
            await jobs.wait(job.id)
        finally:
            # Told by the loop, and so while the runtime waits for its running job.
            asyncio.get_running_loop().call_later(0.05, lambda: print("leaving", flush=True))

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("action", ["execute", "deaf"])
def test_a_program_that_is_interrupted_twice_puts_its_running_jobs_back(place: Place, action: str) -> None:
    go = place.path("go")
    with started("-c", PROGRAM, str(place.path("state")), str(go), action) as program:
        place.until(Path(f"{go}.began"))
        program.send_signal(signal.SIGINT)
        read_until(program.stdout, "leaving")
        program.send_signal(signal.SIGINT)
        finish(program, SECONDS)

    shown = place("jobs", "show", "last", "--json").data
    assert shown["status"] == "pending"
    assert shown["events"][-1]["data"]["reason"] == "the queue was stopped while it ran"


IGNORING = """
import os, signal, sys

signal.signal(signal.SIGHUP, signal.SIG_IGN)
os.execv(sys.executable, [sys.executable, "-m", "failwell", "workers", "run", "--store", sys.argv[1]])
"""


def test_a_host_that_is_to_outlive_its_terminal_goes_on_without_it(place: Place) -> None:
    go = place.path("go")
    go.touch()

    with started("-c", IGNORING, str(place.path("state"))) as host:
        read_until(host.stderr, "runs the jobs of")
        host.send_signal(signal.SIGHUP)
        place("jobs", "submit", "slow", f"path={go}", "--wait")
        host.send_signal(signal.SIGTERM)
        _, words = finish(host)

    assert (host.returncode, "SIGHUP" in words) == (0, False)


def test_the_command_can_be_loaded_where_there_is_no_hangup_signal() -> None:
    code = "import signal; del signal.SIGHUP; import failwell.cli.jobs.host"

    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, check=False)

    assert (done.returncode, done.stderr) == (0, b"")


def test_help_tells_every_exit_code() -> None:
    assert "143  terminated by SIGTERM" in failwell("--help").out
