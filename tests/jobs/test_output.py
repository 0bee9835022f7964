"""What a capability prints can be read by others: the last lines of each job, masked, in private files."""

import asyncio
from pathlib import Path
from typing import Any

from failwell.errors.redact import MARK
from failwell.jobs.manifest import Manifest, Variable
from failwell.jobs.output import (
    MOST_BYTES,
    MOST_LINES,
    OutputFiles,
    mask_secrets,
    read_lines,
)
from failwell.jobs.workers.protocol import OutputLine
from failwell.store.watch import Waker
from tests.jobs.queues import a_runtime
from tests.jobs.workers import SAMPLES, run, until

SAMPLE = Manifest(name="sample", object="sample:Sample", path=(SAMPLES,))


def _said(lines: list[OutputLine]) -> list[tuple[str, str]]:
    return [(one.stream, one.text) for one in lines]


def _a_line(text: str, job: str | None = "one") -> OutputLine:
    return OutputLine(
        instance="sample", session="s", job=job, stream="stdout", level="", logger="", text=text
    )


def test_the_lines_of_a_job_can_be_read_as_soon_as_it_is_over(tmp_path: Path) -> None:
    async def work() -> Any:
        async with a_runtime(tmp_path, SAMPLE) as jobs:
            folder = jobs.store.folder
            job = await jobs.submit("sample", action="talk")
            await jobs.wait(job.id)
            return read_lines(folder, job.id), folder / "lines" / f"{job.id}.jsonl"

    at_once, file = run(work())

    said = _said(at_once)
    # It goes another way than what Python prints, and may come before or after.
    said.remove(("stdout", "past python"))
    assert said == [
        ("stdout", "to stdout"),
        ("stderr", "to stderr"),
        ("log", "to the log"),
        ("stdout", "100%"),
        ("stdout", "no newline at the end"),
    ]
    logged = next(one for one in at_once if one.stream == "log")
    assert (logged.level, logged.logger) == ("WARNING", "sample.words")
    assert [one.n for one in at_once] == list(range(1, len(at_once) + 1))
    assert file.stat().st_mode & 0o777 == 0o600


def test_the_lines_of_a_job_can_be_read_while_it_runs(tmp_path: Path) -> None:
    go = tmp_path / "go"

    async def work() -> Any:
        manifest = Manifest(name="talker", object="odd:Talker", path=(SAMPLES,))
        async with a_runtime(tmp_path, manifest, measured=False) as jobs:
            job = await jobs.submit("talker", {"path": str(go)})
            await until(lambda: len(read_lines(jobs.store.folder, job.id)) >= 2)
            first = read_lines(jobs.store.folder, job.id)
            go.touch()
            await jobs.wait(job.id)
            return first, read_lines(jobs.store.folder, job.id, after=first[-1].n)

    first, rest = run(work())

    # Also what was said while its worker was made ready for it.
    assert [one.text for one in first] == ["loading", "before"]
    assert [one.text for one in rest] == ["after"]


def test_a_job_that_says_much_keeps_its_last_lines(tmp_path: Path) -> None:
    async def work() -> Any:
        async with a_runtime(tmp_path, SAMPLE) as jobs:
            job = await jobs.submit("sample", {"lines": 5000}, action="shout")
            await jobs.wait(job.id)
            return read_lines(jobs.store.folder, job.id), jobs.store.folder

    lines, folder = run(work())

    assert [one.text for one in lines] == [f"line {number}" for number in range(5000 - MOST_LINES, 5000)]
    assert lines[-1].n == 5000
    assert sum(file.stat().st_size for file in (folder / "lines").iterdir()) < 4 * MOST_BYTES


def test_long_lines_are_bounded_by_their_bytes_and_numbers_go_on(tmp_path: Path) -> None:
    async def work() -> None:
        lines = OutputFiles(tmp_path, Waker(tmp_path).wake)
        for number in range(100):
            lines.add(_a_line(f"{number} {'x' * 5000}"), "one")
            lines.flush()
        # Another host, later.
        again = OutputFiles(tmp_path, Waker(tmp_path).wake)
        again.add(_a_line("the last"), "one")
        again.flush()

    run(work())

    found = read_lines(tmp_path, "one")
    assert (found[-1].n, found[-1].text) == (101, "the last")
    assert [one.n for one in found] == list(range(found[0].n, 102))
    assert (tmp_path / "lines" / "one.jsonl").stat().st_size < 3 * MOST_BYTES
    assert read_lines(tmp_path, "one", after=100) == [found[-1]]
    assert read_lines(tmp_path, "other") == []


def test_a_name_that_leads_elsewhere_is_not_written(tmp_path: Path) -> None:
    async def work() -> None:
        lines = OutputFiles(tmp_path / "store", Waker(tmp_path / "store").wake)
        lines.add(_a_line("x"), "../../out")
        lines.flush()

    run(work())

    assert list(tmp_path.rglob("*")) == []


def test_a_disk_that_takes_no_lines_stops_no_job(tmp_path: Path) -> None:
    async def work() -> Any:
        async with a_runtime(tmp_path, SAMPLE) as jobs:
            (jobs.store.folder / "lines").write_text("in the way")
            await jobs.call("sample", action="talk")
            return await jobs.call("sample", {"value": 2})

    assert run(work()) == 2


def test_lines_are_deleted_with_their_job(tmp_path: Path) -> None:
    async def work() -> Any:
        async with a_runtime(tmp_path, SAMPLE) as jobs:
            folder = jobs.store.folder
            old = await jobs.submit("sample", {"lines": 3}, action="shout")
            await jobs.wait(old.id)
            new = await jobs.submit("sample", {"lines": 3}, action="shout")
            await jobs.wait(new.id)
            before = (len(read_lines(folder, old.id)), len(read_lines(folder, new.id)))
            gone = jobs.store.forget(keep=1)
            assert old.id in gone.jobs
            return before, (len(read_lines(folder, old.id)), len(read_lines(folder, new.id)))

    before, after = run(work())

    assert (before, after) == ((3, 3), (0, 3))


def test_lines_and_what_is_shown_hold_no_secret(tmp_path: Path) -> None:
    secret = "words of mine alone"
    (tmp_path / "registry").mkdir()
    (tmp_path / "registry" / "secrets.json").write_text(f'{{"odd": {{"ITS_WORD": "{secret}"}}}}')
    manifest = Manifest(
        name="odd", object="odd:Odd", path=(SAMPLES,), env=(Variable(name="ITS_WORD", secret=True),)
    )

    async def work() -> Any:
        async with a_runtime(tmp_path, manifest) as jobs:
            job = await jobs.submit("odd", action="say_secret")
            ended = await jobs.wait(job.id)
            return ended.result, jobs.store.folder / "lines"

    result, folder = run(work())

    assert result == secret
    assert mask_secrets([{"a": f"so {result}"}, 1], {"ITS_WORD": secret}) == [{"a": f"so {MARK}"}, 1]
    kept = "".join(file.read_text() for file in folder.iterdir())
    assert secret not in kept
    assert kept.count(MARK) == 3


def test_nothing_is_left_to_do_when_the_host_ends(tmp_path: Path) -> None:
    async def work() -> int:
        async with a_runtime(tmp_path, SAMPLE) as jobs:
            await jobs.call("sample", action="talk")
        return len(asyncio.all_tasks())

    assert run(work()) == 1
    assert any((tmp_path / "state" / "jobs" / "lines").iterdir())
