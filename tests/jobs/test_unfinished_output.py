"""Lines without an end: they are their job's alone, whole however long, and outlive their process once flushed."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from failwell.errors.fault import Fault
from failwell.errors.redact import MARK
from failwell.jobs.manifest import Manifest, Variable
from failwell.jobs.output import read_lines
from failwell.jobs.workers.protocol import OutputLine, Pulse, Supervision
from tests.jobs.queues import a_runtime
from tests.jobs.workers import SAMPLES, Told, a_worker, failure, run, until

WRITER = Manifest(name="writer", object="writer:Writer", path=(SAMPLES,))
_LONGEST = 8000


def _texts(told: Told, stream: str = "stdout") -> list[str]:
    return [one.text for one in told.of(OutputLine) if one.stream == stream]


@pytest.mark.parametrize(
    ("action", "arguments", "stream"),
    [
        ("execute", {"text": "ALICE-card-4111"}, "stdout"),
        ("execute", {"text": "ALICE-card-4111", "fd": 2}, "stderr"),
        ("shell", {"command": "printf ALICE-card-4111"}, "stdout"),
        ("shell", {"command": "printf 10%%'\\r'ALICE-card-4111'\\r'"}, "stdout"),
    ],
)
def test_what_a_job_writes_without_a_newline_is_in_its_own_log_and_not_in_the_next_ones(
    action: str, arguments: dict[str, Any], stream: str, tmp_path: Path
) -> None:
    async def work() -> Any:
        logs: list[Any] = []
        async with a_runtime(tmp_path, WRITER) as jobs:
            for _ in range(10):
                alice = await jobs.submit("writer", arguments, action=action)
                bob = await jobs.submit("writer", {"text": "bob\n", "fd": arguments.get("fd", 1)})
                for job in (alice, bob):
                    await jobs.wait(job.id)
                    # At once: whoever waits for a job finds its output.
                    logs.append([(one.stream, one.text) for one in read_lines(jobs.store.folder, job.id)])
        return logs

    logs = run(work())

    assert logs == 10 * [[(stream, "ALICE-card-4111")], [(stream, "bob")]]


def test_what_is_written_while_a_worker_is_made_ready_is_no_part_of_a_line_of_a_job() -> None:
    async def work() -> Any:
        async with a_worker("writer:Writer", config={"say": "loading"}) as (worker, told):
            await worker.call("one", {"text": "bob\n"})
            return _texts(told)

    assert run(work()) == ["loading", "bob"]


def test_what_is_written_between_two_jobs_is_no_part_of_a_line_of_the_next(tmp_path: Path) -> None:
    go = tmp_path / "go"

    async def work() -> Any:
        async with a_worker("writer:Writer", care=Supervision(pulse=0.02)) as (worker, told):
            await worker.call("one", {"path": str(go), "text": "late"}, action="later")
            go.touch()
            await until(lambda: not go.exists())
            pulses = len(told.of(Pulse))
            # The host has looked at everything that came before.
            await until(lambda: len(told.of(Pulse)) > pulses)
            await worker.call("two", {"text": "bob\n"})
            return _texts(told)

    assert run(work()) == ["late", "bob"]


def test_what_calls_write_at_once_is_no_part_of_a_line_of_a_later_one(tmp_path: Path) -> None:
    here, there = str(tmp_path / "here"), str(tmp_path / "there")

    async def work() -> Any:
        async with a_worker("writer:Writer", concurrency=2) as (worker, told):
            await asyncio.gather(
                worker.call("one", {"text": "a", "here": here, "there": there}, action="meet"),
                worker.call("two", {"text": "a", "here": there, "there": here}, action="meet"),
            )
            at_once = _texts(told)
            await worker.call("three", {"text": "bob\n"})
            return at_once, _texts(told)

    at_once, after = run(work())

    assert at_once == ["aa"]
    assert after == ["aa", "bob"]


@pytest.mark.parametrize("word", ["x", "words ", "ä", "€", "\U0001f600"])
@pytest.mark.parametrize("action", ["write_all", "print_all", "print_piecemeal"])
def test_a_line_that_is_too_long_is_told_in_pieces_and_nothing_of_it_is_lost(action: str, word: str) -> None:
    times = 20_001 if action == "print_piecemeal" else 200_001

    async def work() -> Any:
        async with a_worker("writer:Writer") as (worker, told):
            await worker.call("one", {"word": word, "times": times}, action=action)
            return _texts(told)

    pieces = run(work())

    assert "".join(pieces) == word * times
    assert max(map(len, pieces)) <= _LONGEST
    assert len(pieces) < 3 * len((word * times).encode()) / _LONGEST


@pytest.mark.parametrize("action", ["write_all", "print_all"])
def test_a_secret_is_not_cut_in_two_with_a_long_line(action: str) -> None:
    secret = "of-my-own-0123456789"

    async def work() -> Any:
        async with a_worker(
            "writer:Writer", env=(Variable(name="ITS_WORD", secret=True),), secrets={"ITS_WORD": secret}
        ) as (worker, told):
            # With its blank, the word begins at every place of a piece.
            await worker.call("one", {"word": f"{secret} ", "times": 5000}, action=action)
            return _texts(told)

    pieces = run(work())

    assert "".join(pieces).split() == [MARK] * 5000


@pytest.mark.parametrize("way", ["text", "bytes"])
@pytest.mark.parametrize("how", ["segfault", "exit"])
def test_what_was_flushed_before_a_death_is_in_the_log_of_its_job_in_its_last_state(
    how: str, way: str, tmp_path: Path
) -> None:
    async def work() -> Any:
        async with a_runtime(tmp_path, WRITER) as jobs:
            asked = {"times": 100, "way": way, "how": how}
            job = await jobs.submit("writer", asked, action="redraw_and_die")
            ended = await jobs.wait(job.id)
            lines = read_lines(jobs.store.folder, job.id)
            return ended.attempt, [(one.stream, one.text) for one in lines]

    attempts, lines = run(work())

    assert [text for stream, text in lines if stream == "stdout"] == ["99 of 100"] * attempts
    assert lines.count(("stderr", "at the end")) == attempts


@pytest.mark.parametrize("way", ["text", "bytes"])
def test_a_line_that_is_flushed_often_is_told_once_when_its_call_ends(way: str) -> None:
    async def work() -> Any:
        async with a_worker("writer:Writer") as (worker, told):
            await worker.call("one", {"times": 1000, "way": way}, action="redraw")
            at_once = _texts(told)
        return at_once, _texts(told)

    at_once, after = run(work())

    assert at_once == after == ["999 of 1000"]


def test_a_line_that_equals_the_one_before_outlives_a_death_too() -> None:
    async def work() -> Any:
        async with a_worker("writer:Writer") as (worker, told):
            fault = await failure(worker.call("one", action="turn_line"))
            return fault, [(one.job, one.text) for one in told.of(OutputLine)]

    fault, lines = run(work())

    assert isinstance(fault, Fault)
    assert lines == [("one", "again"), ("one", "again")]
