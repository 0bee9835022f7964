"""Commands that wait for a job run that job if nobody else does, and leave the others to hosts."""

import json
import signal
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from failwell.jobs.capabilities import CapabilityRegistry
from failwell.jobs.store.sqlite import JobStore
from tests.cli.job_place import Place, finish, wait_until

SCHEDULE = """
object = "tools:echo"

[[schedule]]
name = "minutely"
cron = "* * * * *"
arguments = {value = 5}
"""
WORKFLOW = """
workflow:
  name: jobs
  entry_point: first
agents:
  - name: first
    type: job
    job: echo
    arguments: {value: 42}
    routes:
      - to: $end
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, "echo", "slow", "many", "dies")


@pytest.fixture
def foreign(place: Place) -> Generator[list[str]]:
    """Jobs of others that wait. Nobody has touched them when the test ends."""
    jobs = [_submitted(place, "slow", f"path={place.path('foreign')}") for _ in range(2)]
    yield jobs
    assert [_told(place, job) for job in jobs] == [["submitted"]] * 2
    assert not place.path("foreign.began").exists()


def _submitted(place: Place, *arguments: str) -> str:
    return place("jobs", "submit", *arguments, "--json").data["id"]


def _changed(place: Place, name: str, manifest: str) -> None:
    file = place.path(f"{name}.toml")
    file.write_text(f'name = "{name}"\n{manifest}')
    CapabilityRegistry(place.path("state")).add(file, replace=True)


def _shown(place: Place, job: str) -> Any:
    return place("jobs", "show", job, "--json").data


def _told(place: Place, job: str) -> list[str]:
    return [event["type"] for event in _shown(place, job)["events"]]


@pytest.mark.usefixtures("foreign")
def test_a_command_that_submits_a_job_and_waits_runs_no_other_job(place: Place) -> None:
    done = place("jobs", "submit", "echo", "value=1", "--wait")

    assert (done.code, done.out) == (0, "1\n")


@pytest.mark.usefixtures("foreign")
def test_a_wait_for_a_stored_job_and_for_a_retry_runs_no_other_job(place: Place) -> None:
    job = _submitted(place, "echo", "value=1")

    waited = place("jobs", "wait", job)
    retried = place("jobs", "retry", job, "--wait")

    assert (waited.code, waited.out) == (0, "1\n")
    assert (retried.code, retried.out) == (0, "1\n")


@pytest.mark.usefixtures("foreign")
def test_a_stream_runs_no_other_job(place: Place) -> None:
    done = place("jobs", "submit", "many", "--stream", "--action", "words")

    assert (done.code, done.out) == (0, "one\ntwo\n")


@pytest.mark.usefixtures("foreign")
def test_a_waiting_command_makes_every_attempt_of_its_job(place: Place) -> None:
    done = place("jobs", "submit", "dies", "--attempts", "2", "--wait")

    assert done.code == 1
    assert _told(place, "last").count("started") == 2


@pytest.mark.usefixtures("foreign")
def test_a_waiting_command_starts_its_job_when_it_is_due(place: Place) -> None:
    done = place("jobs", "submit", "echo", "value=1", "--delay", "1s", "--wait")

    assert (done.code, done.out) == (0, "1\n")


@pytest.mark.usefixtures("foreign")
def test_a_waiting_command_runs_the_job_that_has_its_key(place: Place) -> None:
    job = _submitted(place, "echo", "value=1", "--key", "k", "--unique", "ended")

    done = place("jobs", "submit", "echo", "value=1", "--key", "k", "--unique", "ended", "--wait", "--json")

    assert (done.data["id"], done.data["result"]) == (job, 1)


@pytest.mark.usefixtures("foreign")
def test_a_waiting_command_keeps_the_rate_limit_of_its_job(place: Place) -> None:
    _changed(place, "echo", 'object = "tools:echo"\nrate_limit = "1/s"\n')
    jobs = [place("jobs", "submit", "echo", "value=1", "--wait", "--json").data["id"] for _ in range(2)]

    first, second = (
        next(event["at"] for event in _shown(place, job)["events"] if event["type"] == "started")
        for job in jobs
    )

    assert second - first > 0.99


def test_the_callback_of_a_group_is_left_to_hosts_and_can_be_waited_for(place: Place) -> None:
    lines = place.path("jobs.jsonl")
    lines.write_text('{"arguments": {"value": 1}}\n')
    submitted = place(
        "jobs", "submit", "echo", "--from", str(lines), "--group", "g", "--callback", "slow", "--json"
    ).data
    member = place("jobs", "wait", submitted["jobs"][0])
    [callback] = place("jobs", "list", "--status", "pending", "--json").data
    told = _told(place, callback["id"])

    # It has an argument that the callback does not take.
    waited = place("jobs", "wait", callback["id"])

    assert (member.code, told, waited.code) == (0, ["submitted"], 2)


@pytest.mark.usefixtures("foreign")
def test_two_commands_run_the_jobs_that_they_wait_for_at_the_same_time(place: Place) -> None:
    go = place.path("go")
    with place.start("jobs", "submit", "slow", f"path={go}", "--wait") as first:
        place.until(Path(f"{go}.began"))
        second = place("jobs", "submit", "echo", "value=2", "--wait")
        is_running = first.poll() is None
        go.touch()
        finish(first)

    assert (second.out, is_running, first.returncode) == ("2\n", True, 0)


@pytest.mark.usefixtures("foreign")
def test_two_commands_that_wait_for_one_job_run_it_once(place: Place) -> None:
    go = place.path("go")
    job = _submitted(place, "slow", f"path={go}")
    with place.start("jobs", "wait", job) as first, place.start("jobs", "wait", job) as second:
        place.until(Path(f"{go}.began"))
        go.touch()
        results = [finish(process)[0] for process in (first, second)]

    assert results[0] == results[1] != ""
    assert (first.returncode, second.returncode) == (0, 0)
    assert _told(place, job).count("started") == 1


def test_a_workflow_does_not_wait_for_a_command_that_waits(place: Place) -> None:
    go, file = place.path("go"), place.path("w.yaml")
    file.write_text(WORKFLOW)
    with place.start("jobs", "submit", "slow", f"path={go}", "--wait") as waiting:
        place.until(Path(f"{go}.began"))
        done = place("run", str(file), "--quiet")
        is_running = waiting.poll() is None
        go.touch()
        finish(waiting)

    assert (done.code, is_running, waiting.returncode) == (0, True, 0)


@pytest.mark.usefixtures("foreign")
def test_a_job_that_a_command_waits_for_is_followed_and_cancelled_from_elsewhere(place: Place) -> None:
    go = place.path("go")
    with place.start("jobs", "submit", "slow", f"path={go}", "--wait") as waiting:
        place.until(Path(f"{go}.began"))
        place.until_hosted(place.path("state"))
        job = place("jobs", "list", "--status", "running", "--json").data[0]["id"]
        listed = place("top", "--json").data
        cancelled = place("jobs", "cancel", job, "--json").data
        followed = place("jobs", "tail", job, "--json")
        finish(waiting)

    assert listed["hosted"]
    assert cancelled["status"] == "cancelled"
    assert json.loads(followed.out.splitlines()[-1])["type"] == "cancelled"
    assert "no process runs jobs" not in followed.err
    assert waiting.returncode == 1


def test_a_host_that_comes_later_runs_the_jobs_that_a_waiting_command_leaves(place: Place) -> None:
    go, other = place.path("go"), place.path("other")
    other.touch()
    job = _submitted(place, "slow", f"path={other}")
    with place.start("jobs", "submit", "slow", f"path={go}", "--wait") as waiting:
        place.until(Path(f"{go}.began"))
        before = _told(place, job)
        with place.start("workers", "run") as host:
            wait_until(lambda: _shown(place, job)["status"] == "completed")
            host.send_signal(signal.SIGTERM)
            finish(host)
        go.touch()
        finish(waiting)

    assert (before, waiting.returncode) == (["submitted"], 0)


def test_a_command_follows_a_host_that_claims_its_job_and_runs_it_when_that_is_killed(place: Place) -> None:
    _changed(place, "slow", 'object = "tools:Slow"\nconcurrency = 2\n')
    go, foreign = place.path("go"), place.path("foreign")
    jobs = [_submitted(place, "slow", f"path={path}") for path in (foreign, go)]
    with place.start("workers", "run", "--lanes", "3") as host:
        place.until(Path(f"{go}.began"))
        place.until(Path(f"{foreign}.began"))
        with place.start("jobs", "wait", jobs[1]) as waiting:
            Path(f"{go}.began").unlink()
            Path(f"{foreign}.began").unlink()
            host.kill()
            place.until(Path(f"{go}.began"))
            go.touch()
            finish(waiting)

    assert waiting.returncode == 0
    assert not Path(f"{foreign}.began").exists()
    assert _told(place, jobs[0])[-1] == "requeued"
    assert _shown(place, jobs[0])["status"] == "pending"


def _times_of_schedules(place: Place) -> list[str]:
    """The keys of the jobs that were submitted because the time of a schedule came."""
    keys = [job.get("key") or "" for job in place("jobs", "list", "--json").data]
    return [key for key in keys if key.startswith("schedule/")]


def test_a_waiting_command_leaves_the_times_of_schedules_to_hosts(place: Place) -> None:
    _changed(place, "echo", SCHEDULE)
    place("schedules", "list")
    # As if no host had run for a while.
    with closing(JobStore(place.path("state"))) as store:
        store.pause_schedule("echo/minutely", 0.0, on=True)
        store._database.connection.execute("UPDATE job_schedules SET paused = 0, handled = handled - 600")  # pyright: ignore[reportPrivateUsage]
    job = _submitted(place, "slow", f"path={place.path('foreign')}")

    waited = place("jobs", "submit", "echo", "value=1", "--wait")
    by_hand = place("schedules", "run", "echo/minutely", "--wait")
    before = _times_of_schedules(place)
    told = _told(place, job)
    place("jobs", "cancel", job)
    place("workers", "run", "--until-empty")

    assert (waited.out, by_hand.out) == ("1\n", "5\n")
    assert (before, told) == ([], ["submitted"])
    assert _times_of_schedules(place) != []
