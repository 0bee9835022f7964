"""`job` nodes of a workflow while another process runs the jobs, and after that one has ended."""

import asyncio
import signal
from collections.abc import Iterable
from pathlib import Path

import pytest

from failwell.store.faults import StoreCorrupt
from failwell.workflows.job_nodes import JobExecutor
from tests.cli.job_place import Place, finish, read_until, wait_until


def _workflow(place: Place, nodes: Iterable[str], path: Path) -> str:
    names = list(nodes)
    steps = "".join(
        f"  - {{name: {name}, type: job, job: slow, arguments: {{path: {path}}}}}\n" for name in names
    )
    file = place.path("w.yaml")
    file.write_text(
        "workflow: {name: w, entry_point: all}\n"
        f"agents:\n{steps}"
        f"parallel:\n  - {{name: all, agents: [{', '.join(names)}], routes: [{{to: $end}}]}}\n"
    )
    return str(file)


def _states(place: Place) -> list[str]:
    return [job["status"] for job in place("jobs", "list", "--json").data]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, "slow")


@pytest.mark.slow
def test_a_workflow_goes_on_when_the_process_that_ran_its_jobs_ends(place: Place) -> None:
    go = place.path("go")
    file = _workflow(place, ["one", "two"], go)

    with place.start("workers", "run", "--lanes", "1") as host:
        place.until_hosted(place.path("state"))
        with place.start("run", file, "--quiet") as running:
            wait_until(lambda: sorted(_states(place)) == ["pending", "running"])
            host.send_signal(signal.SIGTERM)
            read_until(host.stderr, "running jobs have")
            host.send_signal(signal.SIGTERM)
            finish(host)
            go.touch()
            _, words = finish(running)

    assert (running.returncode, words) == (0, "")
    assert _states(place) == ["completed", "completed"]


def test_many_waiting_nodes_are_all_stopped_at_once(place: Place) -> None:
    file = _workflow(place, [f"n{number}" for number in range(14)], place.path("never"))

    with place.start("workers", "run", "--lanes", "1") as host:
        place.until_hosted(place.path("state"))
        with place.start("run", file, "--quiet") as running:
            wait_until(lambda: len(_states(place)) == 14)
            running.send_signal(signal.SIGINT)
            finish(running)
        host.send_signal(signal.SIGTERM)
        finish(host)

    assert running.returncode == 130
    assert _states(place) == ["cancelled"] * 14


def test_jobs_that_cannot_be_opened_fail_their_node_and_nothing_after_it(tmp_path: Path) -> None:
    (tmp_path / "journal.db").write_bytes(b"not a database at all" * 100)
    nodes = JobExecutor(tmp_path)

    async def work() -> None:
        with pytest.raises(StoreCorrupt):
            await nodes.open()
        await nodes.close("run")

    asyncio.run(work())
