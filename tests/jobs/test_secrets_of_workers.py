"""A secret that a worker was given is in no report, no progress, no line and no picture of the host."""

import asyncio
from pathlib import Path
from sqlite3 import connect
from typing import Any

import pytest

import failwell
from failwell.errors.redact import MARK
from failwell.errors.report import TracebackPolicy
from failwell.jobs.manifest import Manifest, Variable
from failwell.jobs.workers.protocol import OutputLine, Progress
from tests.jobs.queues import a_runtime
from tests.jobs.workers import SAMPLES, a_worker, failure, run, until

SOURCE = str(Path(failwell.__file__).parents[1])
SECRET = "plain words of mine"
ENV = (Variable(name="ITS_WORD", secret=True),)
INSTALLED = pytest.mark.parametrize("installed", [False, True], ids=["without failwell", "with failwell"])


def _variables(*, installed: bool) -> tuple[Variable, ...]:
    return (*ENV, Variable(name="PYTHONPATH", value=SOURCE)) if installed else ENV


@INSTALLED
@pytest.mark.parametrize("action", ["tell_secret", "tell_secret_and_die"])
def test_a_secret_is_in_no_report(action: str, bare_python: str, *, installed: bool) -> None:
    async def work() -> Any:
        given: Any = {
            "env": _variables(installed=installed),
            "python": bare_python,
            "traceback": TracebackPolicy.FULL,
        }
        async with a_worker("odd:Odd", secrets={"ITS_WORD": SECRET}, **given) as (worker, _):
            return await failure(worker.call("one", action=action))

    report = failwell.describe(run(work()))

    assert SECRET not in report.to_json()
    assert MARK in report.to_json()


def test_a_secret_is_in_no_progress_and_no_line() -> None:
    async def work() -> Any:
        async with a_worker("odd:Odd", env=ENV, secrets={"ITS_WORD": SECRET}) as (worker, told):
            result = await worker.call("one", action="say_secret")
            lines = [one.text for one in told.of(OutputLine)]
            return result, lines, [one.message for one in told.of(Progress)]

    result, lines, messages = run(work())

    assert messages == [f"logging in with {MARK}"]
    assert sorted(lines) == [f"{how} {MARK}" for how in ("logged", "printed", "written")]
    # What a capability returns is its caller's, and comes back as it is.
    assert result == SECRET


def test_a_secret_is_neither_in_the_hosts_picture_nor_in_a_row(tmp_path: Path) -> None:
    (tmp_path / "registry").mkdir()
    (tmp_path / "registry" / "secrets.json").write_text(f'{{"odd": {{"ITS_WORD": "{SECRET}"}}}}')
    go = tmp_path / "go"
    manifest = Manifest(
        name="odd",
        object="odd:Odd",
        env=_variables(installed=True),
        path=(SAMPLES,),
        traceback=TracebackPolicy.FULL,
    )

    async def work() -> str:
        async with a_runtime(tmp_path, manifest) as jobs:
            job = await jobs.submit("odd", {"path": str(go)}, action="wait_with_secret")
            await until(lambda: jobs.job(job.id).message != "")
            seen = str(jobs.stats())
            go.touch()
            await jobs.wait(job.id)
            failed = await jobs.submit("odd", action="tell_secret", control={"max_attempts": 1})
            await jobs.wait(failed.id)
            return seen

    seen = run(work())

    [database] = tmp_path.rglob("journal.db")
    with connect(database) as connection:
        rows = str(connection.execute("SELECT error, reason FROM jobs").fetchall())
    connection.close()
    assert SECRET not in seen
    assert MARK in seen
    assert SECRET not in rows
    assert MARK in rows


def test_a_secret_too_short_to_be_masked_is_given_all_the_same() -> None:
    async def work() -> Any:
        async with a_worker("odd:Odd", env=ENV, secrets={"ITS_WORD": "12"}) as (worker, _):
            return await asyncio.wait_for(worker.call("one", action="say_secret"), 20)

    assert run(work()) == "12"
