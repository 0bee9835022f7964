"""Many jobs in one call, groups and their callbacks; with real hosts where it is about them."""

import asyncio
import os
import signal
import sys
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest

from failwell.errors.faults import CapabilityInputError, CapabilityNotLoadedError
from failwell.jobs import AsyncClient, Client, JobGroup, JobRequest
from failwell.jobs.batch import CHUNK, submit_many
from failwell.jobs.capabilities import CapabilityRegistry
from failwell.jobs.client.queue_client import QueueClient
from failwell.jobs.faults import UnknownGroup
from failwell.jobs.job import new_job
from failwell.jobs.store.groups import GroupPart
from failwell.jobs.store.job_filter import JobFilter
from failwell.jobs.store.rows import job_values
from failwell.jobs.store.sqlite import JobStore
from tests.cli.job_place import Place, finish, wait_until


@pytest.fixture
def queue(tmp_path: Path) -> Generator[QueueClient]:
    registry = CapabilityRegistry(tmp_path / "registry")
    for name in ("work", "report"):
        (tmp_path / f"{name}.toml").write_text(f'name = "{name}"\nobject = "a:b"\n')
        registry.add(tmp_path / f"{name}.toml")
    with closing(JobStore(tmp_path / "state")) as store:
        yield QueueClient(store, registry)


def _requests(count: int) -> list[JobRequest]:
    return [JobRequest(instance="work", arguments={"number": number}) for number in range(count)]


def _group(queue: QueueClient, name: str) -> JobGroup:
    return queue.store.groups(name)[0]


def test_many_jobs_are_stored_in_order_and_counted(queue: QueueClient) -> None:
    batch = submit_many(queue, _requests(2 * CHUNK + 1))

    stored = queue.store.select(JobFilter())[::-1]
    assert [job.id for job in stored] == list(batch.jobs)
    assert [job.request.arguments["number"] for job in stored] == list(range(2 * CHUNK + 1))
    assert queue.store.counts()["pending"] == len(set(batch.jobs)) == batch.new == 2 * CHUNK + 1
    assert [event.type for event in queue.store.events(job=batch.jobs[-1])] == ["submitted"]


def test_one_bad_request_among_many_is_named_and_nothing_is_stored(queue: QueueClient) -> None:
    requests = _requests(CHUNK + 2)
    requests[-1] = JobRequest(instance="work", arguments={"number": float("nan")})

    with pytest.raises(CapabilityInputError, match=r"request 2002 of 2002: .*`arguments.number` is nan"):
        submit_many(queue, requests)
    with pytest.raises(CapabilityNotLoadedError):
        submit_many(queue, [*_requests(1), JobRequest(instance="unknown")])
    with pytest.raises(CapabilityInputError, match="`callback`"):
        submit_many(queue, _requests(1), callback=JobRequest(instance="report"))
    assert queue.store.counts()["pending"] == 0


def test_keys_of_a_batch_are_kept(queue: QueueClient) -> None:
    twice = [JobRequest(instance="work", key=key) for key in ("a", "b", "a")]

    first, second = submit_many(queue, twice), submit_many(queue, twice)

    assert (first.new, second.new) == (2, 0)
    assert first.jobs == second.jobs
    assert first.jobs[0] == first.jobs[2]


def test_the_last_end_of_a_group_submits_its_callback_once(queue: QueueClient) -> None:
    callback = JobRequest(instance="report", arguments={"to": "me"}, priority=3)
    batch = submit_many(queue, _requests(3), group="g", callback=callback)

    for job in batch.jobs[:2]:
        queue.cancel(job)
    before = _group(queue, "g")
    queue.cancel(batch.jobs[2])
    after = _group(queue, "g")

    assert (before.left, before.ended, before.callback_job) == (1, None, None)
    assert (after.left, after.cancelled) == (0, 3)
    assert after.callback_job is not None
    follower = queue.find(after.callback_job)
    assert follower.request.priority == 3
    assert follower.request.arguments == {
        "to": "me",
        "group": {"id": "g", "jobs": 3, "completed": 0, "failed": 0, "cancelled": 3, "failures": []},
    }
    assert queue.store.counts() == {**dict.fromkeys(queue.store.counts(), 0), "pending": 1, "cancelled": 3}
    with pytest.raises(CapabilityInputError, match="complete"):
        submit_many(queue, _requests(1), group="g")
    assert queue.store.counts()["pending"] == 1


def test_an_empty_group_ends_at_once_and_an_interrupted_one_waits_for_its_rest(queue: QueueClient) -> None:
    submit_many(queue, [], group="empty", callback=JobRequest(instance="report"))
    job = new_job(_requests(1)[0], 1.0)
    queue.store.commit(
        [job_values(job, None)], group=GroupPart("cut", JobRequest(instance="report"), is_last=False)
    )
    queue.cancel(job.id)
    cut = _group(queue, "cut")
    rest = submit_many(queue, _requests(1), group="cut")
    queue.cancel(rest.jobs[0])

    assert _group(queue, "empty").callback_job is not None
    assert (cut.left, cut.ended) == (0, None)
    assert (_group(queue, "cut").jobs, _group(queue, "cut").callback_job is not None) == (2, True)


def test_deleted_jobs_leave_no_members_behind(queue: QueueClient) -> None:
    batch = submit_many(queue, _requests(2), group="g")
    submit_many(queue, _requests(1))
    queue.cancel(batch.jobs[0])
    queue.store.forget(states=["cancelled"])
    half = _group(queue, "g")
    queue.cancel(batch.jobs[1])
    queue.store.forget(states=["cancelled"])

    assert (half.jobs, half.left, half.cancelled) == (2, 1, 1)
    assert queue.store.groups() == []


FOLLOWER = """
import os
def report(group):
    with open(os.environ["FAILWELL_TEST_LOG"], "a") as file:
        file.write("%d %d\\n" % (group["completed"], group["failed"]))
    return group
"""


def _place(folder: Path) -> Place:
    place = Place(folder, "echo", "fails", "slow")
    (folder / "follower.py").write_text(FOLLOWER)
    log = folder / "log"
    (folder / "report.toml").write_text(
        f'name = "report"\nobject = "follower:report"\n[env]\nFAILWELL_TEST_LOG = "{log}"\n'
    )
    assert place("capabilities", "add", str(folder / "report.toml")).code == 0
    return place


def test_a_python_program_follows_a_group_that_a_host_runs(tmp_path: Path) -> None:
    place = _place(tmp_path)
    with Client(tmp_path / "state") as client:
        handles = client.submit_many(
            "echo", [{"value": number} for number in range(20)], group="g", callback="report"
        )
        with place.start("workers", "run"):
            assert [handle.result(timeout=30) for handle in handles] == list(range(20))
            wait_until(lambda: client.group("g").callback_job is not None)
            follower = client.group("g").callback_job
            assert follower is not None
            assert client.job(follower).result(timeout=30)["completed"] == 20
        with pytest.raises(UnknownGroup):
            client.group("unknown")
    assert (tmp_path / "log").read_text() == "20 0\n"


def test_an_event_loop_submits_many_and_later(tmp_path: Path) -> None:
    _place(tmp_path)

    async def work() -> None:
        async with AsyncClient(tmp_path / "state") as client:
            handles = await client.with_options(delay=3600, priority=2).submit_many(
                "echo", [{"value": 1}, {"value": 2}], group="g"
            )
            records = await asyncio.gather(*(handle.record() for handle in handles))
            assert all(record.not_before and record.request.priority == 2 for record in records)
            assert (await client.group("g")).left == 2
            with pytest.raises(CapabilityInputError, match="exclude each other"):
                await client.with_options(delay=1, not_before=records[0].not_before).submit("echo")
            with pytest.raises(CapabilityInputError, match="cannot share one `key`"):
                await client.with_options(key="k").submit_many("echo", [{}])

    asyncio.run(work())


@pytest.mark.skipif(sys.platform == "win32", reason="kills a process group")
def test_a_host_that_is_killed_between_two_ends_calls_back_once(tmp_path: Path) -> None:
    place = _place(tmp_path)
    lines = [f'{{"arguments": {{"value": {number}}}}}' for number in range(30)]
    lines.append('{"instance": "fails"}')
    go = tmp_path / "go"
    lines.append(f'{{"instance": "slow", "arguments": {{"path": "{go}"}}}}')
    submitted = place(
        "jobs",
        "submit",
        "echo",
        "--from",
        "-",
        "--group",
        "g",
        "--callback",
        "report",
        given="\n".join(lines),
    )
    assert submitted.out == "submitted 32 jobs\n"
    with place.start("workers", "run") as host:
        place.until(Path(f"{go}.began"))
        os.kill(host.pid, signal.SIGKILL)
        host.wait()
    running = place("groups", "show", "g", "--json").data
    go.touch()
    with place.start("workers", "run", "--until-empty") as host:
        finish(host)
    shown = place("groups", "show", "g", "--json").data

    assert running["status"] == "running"
    assert (shown["status"], shown["completed"], shown["failed"]) == ("ended", 31, 1)
    assert shown["kinds"] == {"internal.bug": 1}
    assert (tmp_path / "log").read_text() == "31 1\n"
    assert (
        place("jobs", "list", "--group", "g", "--status", "failed", "--json").data[0]["instance"] == "fails"
    )


def test_a_file_of_jobs_is_checked_before_the_first_one_is_stored(tmp_path: Path) -> None:
    place = Place(tmp_path, "echo")
    bad = '{"arguments": {"value": 1}}\n\n{"argument": {}}\n[1]\n{"at": "x"}\n{"delay": "1h", "at": "2030-01-01"}\n{'
    mistaken = place("jobs", "submit", "echo", "--from", "-", given=bad)
    fine = place(
        "jobs", "submit", "--from", "-", "--priority", "4", "--json",
        given='{"instance": "echo", "arguments": {"value": 1}, "key": "k", "timeout": "90s"}\n{"instance": "echo", "priority": 9}',
    )  # fmt: skip
    listed = place("jobs", "list", "--json").data
    wrong = [
        place("jobs", "submit", "echo", "--from", "-", "--wait"),
        place("jobs", "submit", "echo", "a=1", "--from", "-"),
        place("jobs", "submit", "echo", "--group", "g"),
        place("jobs", "submit"),
        place("groups", "show", "nothing"),
    ]

    assert mistaken.code == 2
    for number, words in (
        (3, "did you mean `arguments`?"),
        (4, "must be a JSON object"),
        (5, "`--at` takes"),
        (6, "exclude"),
        (7, "not valid JSON"),
    ):
        assert any(f"line {number}" in line and words in line for line in mistaken.err.splitlines())
    assert (fine.data["count"], fine.data["new"]) == (2, 2)
    assert [(job["priority"], job.get("timeout"), job.get("key")) for job in listed] == [
        (9, 3600.0, None),
        (4, 90.0, "k"),
    ]
    assert [done.code for done in wrong] == [2, 2, 2, 2, 2]
