"""Files of results that nobody gets: they go at once, and what was missed goes with the next pruning."""

import asyncio
import os
from pathlib import Path
from time import time
from typing import Any

import pytest

from failwell.cli.main import main
from failwell.jobs.host import open_store
from failwell.jobs.job import JobState
from failwell.jobs.manifest import Manifest
from failwell.jobs.runtime import Runtime
from failwell.jobs.workers.protocol import FileHandle
from tests.jobs.queues import a_runtime
from tests.jobs.workers import SAMPLES, a_worker, failure, run, until

FILES = Manifest(name="files", object="odd:Files", path=(SAMPLES,), cancel_grace=20.0)


def _left(folder: Path) -> list[Path]:
    return list(folder.rglob("*.bin"))


def _results(jobs: Runtime) -> Path:
    return jobs.store.folder / "results"


def test_the_files_of_a_job_that_was_cancelled_are_deleted(tmp_path: Path) -> None:
    go, began = tmp_path / "go", tmp_path / "began"

    async def work() -> Any:
        async with a_runtime(tmp_path, FILES) as jobs:
            job = await jobs.submit("files", {"path": str(go), "began": str(began)}, action="late")
            await until(began.exists)
            jobs.cancel(job.id)
            go.touch()
            ended = await jobs.wait(job.id)
            return ended, _left(_results(jobs))

    ended, left = run(work())

    assert (ended.state, ended.result) == (JobState.CANCELLED, None)
    assert left == []


@pytest.mark.parametrize("how", ["cancel", "timeout"])
def test_the_files_of_a_call_that_was_stopped_are_deleted(how: str, tmp_path: Path, run_folder: str) -> None:
    go, began = tmp_path / "go", tmp_path / "began"

    async def work() -> None:
        async with a_worker("odd:Files", folder=run_folder, cancel_grace=20.0) as (worker, _):
            await worker.start()
            limit = 0.05 if how == "timeout" else None
            asked = {"path": str(go), "began": str(began)}
            call = asyncio.ensure_future(failure(worker.call("one", asked, action="late", timeout=limit)))
            await until(began.exists)
            if how == "cancel":
                stopping = asyncio.ensure_future(worker.cancel("one"))
                await asyncio.sleep(0)
                go.touch()
                await stopping
            else:
                flight = worker._calls.running("one")  # pyright: ignore[reportPrivateUsage]
                await until(lambda: flight is not None and flight.stop_reason == "timeout")
                go.touch()
            await call

    run(work())

    assert _left(Path(run_folder)) == []


def test_the_items_of_a_stream_that_was_left_are_deleted(tmp_path: Path) -> None:
    async def work() -> Any:
        async with a_runtime(tmp_path, FILES) as jobs:
            stream = jobs.stream("files", {"number": 200}, action="many")
            first = await anext(stream)
            await stream.aclose()
            await until(lambda: jobs.worker("files").in_flight == ())
            assert isinstance(first, FileHandle)
            return first, _left(_results(jobs))

    first, left = run(work())

    assert [str(one) for one in left] == [first.path]


def test_a_result_that_is_had_keeps_its_files(tmp_path: Path) -> None:
    go = tmp_path / "go"
    go.touch()

    async def work() -> Any:
        async with a_runtime(tmp_path, FILES) as jobs:
            asked = {"path": str(go), "began": str(tmp_path / "began")}
            made = await jobs.call("files", asked, action="late")
            return [made["one"].path, made["more"][0].path]

    assert [Path(one).read_bytes() for one in run(work())] == [b"abc", b"def"]


def test_pruning_finds_old_files_that_belong_to_no_job(tmp_path: Path) -> None:
    go = tmp_path / "go"
    go.touch()

    async def work() -> Any:
        async with a_runtime(tmp_path, FILES) as jobs:
            asked = {"path": str(go), "began": str(tmp_path / "began")}
            made = await jobs.call("files", asked, action="late")
            kept = {Path(made["one"].path), Path(made["more"][0].path)}
            old, new, other = (
                _results(jobs) / name for name in (f"{'a' * 24}.bin", f"{'b' * 24}.bin", "mine")
            )
            for file in (old, new, other, *kept):
                file.touch()
            for file in (old, other, *kept):
                os.utime(file, (time() - 100_000, time() - 100_000))
            would = jobs.store.forget(before=0.0, dry_run=True)
            gone = jobs.store.forget(before=0.0)
            return would.files, gone.files, set(_results(jobs).iterdir()), kept | {new, other}

    would, gone, left, expected = run(work())

    assert (would, gone) == (1, 1)
    assert left == expected


def test_pruning_deletes_lost_files_also_where_no_job_is_old_enough(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = open_store(tmp_path)
    lost = store.folder / "results" / f"{'a' * 24}.bin"
    store.close()
    lost.parent.mkdir(parents=True)
    lost.touch()
    os.utime(lost, (time() - 100_000, time() - 100_000))

    code = main(["jobs", "prune", "--older-than", "30d", "--yes", "--store", str(tmp_path)])

    assert code == 0
    assert "1 file" in capsys.readouterr().out
    assert not lost.exists()
