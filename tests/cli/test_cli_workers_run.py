"""`failwell workers run`: says who it is, what cannot run and why, and ends where nothing can."""

import signal
from pathlib import Path
from typing import Any

import pytest

from failwell.cli.jobs.workers import COLUMNS, row
from tests.cli.job_place import Place, finish, read_until


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, "echo", "slow")


def test_it_says_who_it_is_what_it_can_do_and_how_it_ends(place: Place) -> None:
    place("capabilities", "disable", "slow")
    with place.start("workers", "run", "--lanes", "2") as host:
        greeting = read_until(host.stderr, "runs the jobs of")
        able = read_until(host.stderr, "capabilities:")
        host.send_signal(signal.SIGTERM)
        finish(host)

    assert f"process {host.pid} runs the jobs of {place.path('state')}, 2 at a time" in greeting
    assert "Ctrl-C" in greeting
    assert able == "capabilities: echo, slow (disabled)\n"


@pytest.mark.parametrize(
    ("taken", "words"),
    [
        ("disable", "`slow` is disabled; `failwell capabilities enable slow`"),
        ("remove", "`slow` is not registered; `failwell capabilities add FILE`"),
    ],
)
def test_until_empty_ends_when_nothing_that_is_left_can_run(place: Place, taken: str, words: str) -> None:
    place("jobs", "submit", "slow", "path=x")
    place("jobs", "submit", "slow", "path=y")
    place("jobs", "submit", "echo", "value=1")
    place("capabilities", taken, "slow")

    done = place("workers", "run", "--until-empty")

    assert done.code == 4
    assert f"jobs wait that cannot run: {words}" in done.err
    assert "2 jobs are left, and none of them can run" in done.err
    assert {one["status"] for one in place("jobs", "list", "--instance", "slow", "--json").data} == {
        "pending"
    }
    assert place("jobs", "list", "--instance", "echo", "--json").data[0]["status"] == "completed"


def test_waiting_for_a_job_that_cannot_run_says_why(place: Place) -> None:
    job = place("jobs", "submit", "slow", "path=x", "--json").data["id"]
    place("capabilities", "disable", "slow")

    with place.start("jobs", "wait", job) as waiting:
        told = read_until(waiting.stderr, "does not run yet")
        waiting.send_signal(signal.SIGINT)
        _, rest = finish(waiting)

    assert "`slow` is disabled" in told
    assert f"`failwell jobs wait {job}`" in rest


def test_a_memory_limit_ends_a_job_with_its_numbers(place: Place) -> None:
    manifest = place.folder / "hungry.toml"
    manifest.write_text('name = "hungry"\nobject = "hungry:eat"\nmemory_limit = 100\n')
    (place.folder / "hungry.py").write_text("def eat():\n    return len(b'x' * (400 << 20))\n")
    place("capabilities", "add", str(manifest))

    done = place("jobs", "submit", "hungry", "--wait", "--error-format", "json")

    assert done.code == 1
    assert done.error["kind"] == "resource.system_memory"
    assert "and its `memory_limit` is 100 MB" in done.error["message"]
    assert place("jobs", "show", "last", "--json").data["attempts"] == 1


@pytest.mark.parametrize(
    ("used", "limit", "cell"),
    [(205.4, 400.0, "205 of 400 MB"), (1_205.4, None, "1,205 MB"), (None, 400.0, "")],
)
def test_the_list_shows_what_a_worker_uses_and_may_use(
    used: float | None, limit: float | None, cell: str
) -> None:
    worker: dict[str, Any] = {
        "id": "a", "state": "ready", "enabled": True, "pid": 1, "jobs": 0, "concurrency": 1,
        "ram_mb": used, "limit_mb": limit, "gpu_mb": None, "learned": None,
    }  # fmt: skip

    assert dict(zip(COLUMNS, row(worker), strict=True))["memory"] == cell
