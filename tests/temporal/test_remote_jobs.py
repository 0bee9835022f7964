"""Jobs that a worker in a process of its own runs for a real Temporal server."""

import asyncio
import signal
from collections.abc import Generator
from json import loads
from pathlib import Path

import pytest

pytest.importorskip("temporalio")

from temporalio.client import WorkflowFailureError

from failwell import describe
from failwell.errors.faults import CapabilityCancelledError, CapabilityInputError
from failwell.jobs.faults import UnknownJob
from failwell.temporal import Client, ConnectionOptions
from tests.cli.running import Done, failwell
from tests.temporal.worker_process import WorkerProcess, is_alive, wait_until, worker_process
from tests.temporal_server import server, task_queue


class Place:
    """A worker and its queue."""

    def __init__(self, worker: WorkerProcess, queue: str, folder: Path) -> None:
        self.worker = worker
        self.queue = queue
        self.folder = folder

    def client(self) -> Client:
        return Client(address=server().address, task_queue=self.queue)

    def jobs(self, *arguments: str) -> Done:
        options = ("--engine", "temporal", "--address", server().address, "--task-queue", self.queue)
        return failwell("jobs", *arguments, *options, "--store", str(self.folder / "other"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Generator[Place]:
    folder = tmp_path_factory.mktemp("temporal")
    queue = task_queue()
    with worker_process(server().address, queue, folder / "store") as worker:
        yield Place(worker, queue, folder)


def test_the_worker_names_its_queue_and_its_capabilities(place: Place) -> None:
    started = place.worker.started

    assert started["task_queue"] == place.queue
    assert started["instances"] == [
        *("crash_once", "double", "long_text", "refuse", "refuse_again", "shout", "wait_for")
    ]


def test_a_job_is_submitted_by_the_command_and_its_result_is_printed(place: Place) -> None:
    done = place.jobs("submit", "double", "number=21", "--wait")

    assert (done.code, loads(done.out)) == (0, 42)


def test_a_failed_job_has_the_kind_and_the_exit_code_of_a_local_one(place: Place) -> None:
    done = place.jobs("submit", "refuse", "text=way", "--wait", "--json")

    assert done.code == 2
    assert done.data["status"] == "failed"
    assert done.data["error"]["kind"] == "validation.input_invalid"
    # The record of the worker's machine has the same id.
    assert done.data["error"]["scene"]["job"] == done.data["id"]


def test_a_python_client_submits_functions_and_names_and_gets_typed_errors(place: Place) -> None:
    with place.client() as client:
        assert client.submit("shout", text="hi").result(30) == "HI"

        with pytest.raises(CapabilityInputError) as raised:
            client.submit("refuse", text="way").result(30)
        assert describe(raised.value).kind == "validation.input_invalid"

        with pytest.raises(UnknownJob):
            client.job("never-submitted").status()


def test_a_key_makes_a_second_job_the_first(place: Place) -> None:
    with place.client() as client:
        keyed = client.with_options(key="only-once")
        first = keyed.submit("double", number=1)
        assert first.result(30) == 2
        second = keyed.submit("double", number=5)

        assert (second.id, second.result(30)) == (first.id, 2)


@pytest.mark.slow
def test_a_killed_process_is_repeated_and_a_refused_input_is_not(place: Place) -> None:
    crashes, refusals = place.folder / "crashes", place.folder / "refusals"
    with place.client() as client:
        assert client.submit("crash_once", mark=str(crashes)).result(60) == "done"
        with pytest.raises(CapabilityInputError):
            client.submit("refuse_again", mark=str(refusals)).result(60)

    assert len(crashes.read_text().split()) == 2
    assert len(refusals.read_text().split()) == 1


def test_what_the_server_cannot_take_is_a_typed_error_at_once(place: Place) -> None:
    with place.client() as client:
        with pytest.raises(CapabilityInputError, match="cannot be an instance's id"):
            client.submit("no/such name")
        with pytest.raises(CapabilityInputError, match="the arguments of `shout` have"):
            client.submit("shout", text="x" * 2_000_000)
        with pytest.raises(CapabilityInputError, match="the results of `long_text` have"):
            client.submit("long_text", length=3_000_000).result(30)


def test_a_request_that_cannot_be_read_fails_its_workflow_instead_of_stalling_it(place: Place) -> None:
    async def start(payload: object) -> object:
        client = await ConnectionOptions(address=server().address).connect()
        return await client.execute_workflow(
            "failwell.job", payload, id=f"odd-{task_queue()}", task_queue=place.queue
        )

    payloads: list[object] = [{}, {"instance": "double", "deadline": "soon", "arguments": {}}, ["no"]]
    for payload in payloads:
        with pytest.raises(WorkflowFailureError):
            asyncio.run(asyncio.wait_for(start(payload), 20))


def test_an_unknown_namespace_is_named(place: Place) -> None:
    for command in (("jobs", "list", "--engine", "temporal"), ("temporal", "worker")):
        done = failwell(
            *command,
            "--address",
            server().address,
            "--namespace",
            "nowhere",
            "--store",
            str(place.folder / "n"),
        )

        assert done.code == 2
        assert "has no namespace `nowhere`" in done.err


@pytest.mark.slow
def test_a_job_that_no_worker_takes_is_waited_for_with_a_hint(place: Place) -> None:
    done = place.jobs("submit", "unheard_of", "--wait", "--within", "1s")

    assert done.code == 1
    assert "no worker takes jobs of `unheard_of`" in done.err


@pytest.mark.slow
def test_a_cancelled_job_stops_with_its_process(place: Place) -> None:
    mark = place.folder / "cancelled"
    with place.client() as client:
        job = client.submit("wait_for", file=str(place.folder / "never"), mark=str(mark))
        wait_until(mark.exists)
        done = place.jobs("cancel", job.id)

        assert (done.code, done.out) == (0, f"job {job.id} is cancelled: it may have run\n")
        with pytest.raises(CapabilityCancelledError):
            job.result(30)
    wait_until(lambda: not is_alive(int(mark.read_text())))
    assert place.jobs("show", job.id, "--json").data["status"] == "cancelled"


@pytest.mark.slow
def test_a_stopped_worker_lets_another_one_run_its_job(tmp_path: Path) -> None:
    queue, mark, file = task_queue(), tmp_path / "mark", tmp_path / "file"
    with (
        Client(address=server().address, task_queue=queue) as client,
        worker_process(server().address, queue, tmp_path / "a") as first,
    ):
        job = client.submit("wait_for", file=str(file), mark=str(mark))
        wait_until(mark.exists)
        code = first.stop()
        file.touch()
        with worker_process(server().address, queue, tmp_path / "b"):
            assert job.result(60) == "done"

    assert code == 0
    assert len(mark.read_text().split()) == 2


@pytest.mark.slow
def test_a_second_signal_ends_the_worker_at_once_with_everything_it_started(tmp_path: Path) -> None:
    queue, mark = task_queue(), tmp_path / "mark"
    with (
        Client(address=server().address, task_queue=queue) as client,
        worker_process(server().address, queue, tmp_path / "a") as worker,
    ):
        job = client.submit("wait_for", file=str(tmp_path / "never"), mark=str(mark))
        wait_until(mark.exists)
        worker.process.send_signal(signal.SIGINT)
        worker.process.send_signal(signal.SIGTERM)
        worker.process.wait(20)
        job.cancel()

    wait_until(lambda: not is_alive(int(mark.read_text())))


@pytest.mark.slow
def test_a_job_node_runs_on_the_machine_that_has_its_capability(place: Place, tmp_path: Path) -> None:
    (tmp_path / "flow.yaml").write_text(
        """
workflow:
  name: doubled
  entry_point: double
agents:
  - name: double
    type: job
    job: double
    arguments: {number: 21}
    routes: [{to: $end}]
output: {answer: "{{ double.output.result }}"}
"""
    )
    options = ("--engine", "temporal", "--address", server().address, "--task-queue", place.queue)
    with worker_process(server().address, place.queue, tmp_path / "bare", capabilities=None) as bare:
        done = failwell(
            "run", str(tmp_path / "flow.yaml"), *options, "--store", str(tmp_path / "own"), "--json"
        )

    assert bare.started["instances"] == []
    assert done.code == 0, done.err
    assert "42" in done.out
