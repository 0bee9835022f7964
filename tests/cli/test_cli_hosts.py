"""`failwell workers run` more than once on one store, in processes of their own."""

import json
import signal
from pathlib import Path

import pytest

from tests.cli.job_place import Place, finish, wait_until


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, "echo", "slow")


@pytest.mark.slow
def test_two_hosts_are_listed_and_a_command_reaches_both(place: Place) -> None:
    state, go = place.folder / "state", place.folder / "go"
    with (
        place.start("workers", "run", "--lanes", "1") as first,
        place.start("workers", "run", "--lanes", "1") as second,
    ):
        place.until_hosted(state, 2)
        jobs = [place("jobs", "submit", "slow", f"path={go}", "--json").data["id"] for _ in range(2)]
        wait_until(lambda: place("top", "--json").data["counts"]["running"] == 2)
        wait_until(lambda: len(place("top", "--json").data["jobs"]) == 2)
        listed = place("workers", "--json").data
        table, top = place("workers"), place("top", "--once")
        shown = place("top", "--json").data
        assert place("capabilities", "disable", "slow").code == 0
        wait_until(lambda: all(not worker["enabled"] for worker in place("workers", "--json").data))
        go.touch()
        ends = [place("jobs", "wait", job, "--json").data["status"] for job in jobs]
        for host in (first, second):
            host.send_signal(signal.SIGTERM)
            finish(host)

    pids = {first.pid, second.pid}
    assert ends == ["completed", "completed"]
    assert {(worker["id"], worker["host"]) for worker in listed} == {("slow", pid) for pid in pids}
    assert all(str(pid) in table.out for pid in pids)
    assert {host["pid"] for host in shown["hosts"]} == pids
    assert {job["host"] for job in shown["jobs"]} == pids
    assert top.out.startswith("hosts ")
    assert "2 running" in top.out


@pytest.mark.slow
def test_the_jobs_of_a_killed_host_go_on_in_the_other(place: Place) -> None:
    state, go = place.folder / "state", place.folder / "go"
    with (
        place.start("workers", "run", "--lanes", "2") as first,
        place.start("workers", "run", "--lanes", "2") as second,
    ):
        place.until_hosted(state, 2)
        job = place("jobs", "submit", "slow", f"path={go}", "--json").data["id"]
        place.until(Path(f"{go}.began"))
        wait_until(lambda: len(place("top", "--json").data["jobs"]) == 1)
        [worker] = place("top", "--json").data["jobs"]
        victim, other = (first, second) if worker["host"] == first.pid else (second, first)
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        go.touch()
        ended = place("jobs", "wait", job, "--json").data
        until_empty = place("workers", "run", "--until-empty")
        other.send_signal(signal.SIGTERM)
        finish(other)

    events = [json.loads(line) for line in place("jobs", "tail", job, "--json").out.splitlines()]
    assert (ended["status"], until_empty.code) == ("completed", 0)
    assert [event["type"] for event in events].count("started") == 2
    assert [event["data"].get("reason") for event in events if event["type"] == "requeued"] == [
        "the host died while it ran"
    ]
