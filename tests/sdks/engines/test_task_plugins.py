"""The plugins of DBOS and Prefect: what their databases hold, and how they wait for long."""

import asyncio
import logging
import os
import sqlite3
import subprocess
import sys
import time
from base64 import b64decode
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from failwell.adapters.describe import describe
from failwell.testing.builders import make_fault
from tests.calls.acting import told
from tests.sdks.plugins.frameworks import prefect as prefect_lab

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow, pytest.mark.timeout(300)]
ROOT = Path(__file__).resolve().parents[3]
SECRET = "the-text-nobody-may-see"


@pytest.fixture(autouse=True)
def _no_log() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def dbos(tmp_path: Path) -> Iterator[Any]:
    engine: Any = pytest.importorskip("dbos", reason="`make test-sdks` runs it with dbos").DBOS
    config = {
        "name": "tests",
        "system_database_url": f"sqlite:///{tmp_path}/dbos.sqlite",
        "run_admin_server": False,
    }
    running = engine(config=config)
    yield engine
    running.destroy(destroy_registry=True)


def recorded_steps(folder: Path) -> list[tuple[str, Any, Any]]:
    with sqlite3.connect(folder / "dbos.sqlite") as database:
        rows = database.execute(
            "SELECT function_name, output, error FROM operation_outputs ORDER BY function_id"
        )
        return list(rows)


def test_dbos_records_every_attempt_and_every_wait_and_no_text(dbos: Any, tmp_path: Path) -> None:
    from failwell.integrations.dbos import TaskFailed, reliability

    @reliability(dbos.step(), jitter=lambda: 0.5)
    def call() -> None:
        try:
            raise ValueError(SECRET)
        except ValueError as error:
            raise make_fault(not_before=told(0.05)) from error

    @dbos.workflow()
    def flow() -> None:
        call()

    dbos.launch()
    with pytest.raises(TaskFailed) as caught:
        flow()

    report = describe(caught.value)
    steps = recorded_steps(tmp_path)
    assert [name.rpartition(".")[2] for name, _, _ in steps] == ["call", "sleep"] * 5 + ["call"]
    assert [row.wait for row in report.attempts] == [0.05] * 5 + [None]
    stored = b"".join(b64decode(error) for _, _, error in steps if error)
    assert b"provider.rate_limited" in stored
    assert SECRET.encode() not in stored


def test_dbos_sleeps_durably_through_a_long_delay(dbos: Any, tmp_path: Path) -> None:
    from failwell.integrations.dbos import reliability

    @reliability(dbos.step())
    def call() -> None:
        raise make_fault(not_before=told(3600))

    @dbos.workflow()
    def flow() -> None:
        call()

    dbos.launch()
    begun = time.time()
    handle = dbos.start_workflow(flow)
    deadline = begun + 30
    while len(recorded_steps(tmp_path)) < 2 and time.time() < deadline:
        time.sleep(0.05)  # the workflow runs in a thread of DBOS
    steps = recorded_steps(tmp_path)
    dbos.cancel_workflow(handle.workflow_id)

    assert [name.rpartition(".")[2] for name, _, _ in steps] == ["call", "sleep"]
    assert float(steps[1][1]) >= begun + 3600


async def _states(run: Any) -> list[Any]:
    prefect: Any = pytest.importorskip("prefect")
    async with prefect.get_client() as client:
        return await client.read_task_run_states(run)


def test_prefect_shows_its_waits_and_stores_no_text(tmp_path: Path) -> None:
    prefect: Any = pytest.importorskip("prefect", reason="`make test-sdks` runs it with prefect")
    from failwell.integrations.prefect import LONGEST, TaskFailed, reliability

    prefect_lab.start_server()
    failures = iter([make_fault(not_before=told(0.2)), make_fault(not_before=told(LONGEST + 1))])
    ids: list[Any] = []

    @reliability(prefect.task)
    def call() -> None:
        ids.append(prefect.runtime.task_run.id)
        try:
            raise ValueError(SECRET)
        except ValueError as error:
            raise next(failures) from error

    @prefect.flow
    def flow() -> Any:
        return call(return_state=True)

    state = flow(return_state=True)
    with pytest.raises(TaskFailed) as caught:
        state.result()

    report = describe(caught.value)
    assert len(set(ids)) == 1
    assert [row.wait for row in report.attempts] == [0.2, None]
    assert report.not_before is not None
    assert report.not_before.after == LONGEST + 1
    states = asyncio.run(_states(ids[0]))
    assert [each.name for each in states][-3:] == ["AwaitingRetry", "Retrying", "Failed"]
    assert SECRET not in str([(each.message, each.data) for each in states])


def test_celery_in_a_worker_process_stores_the_report_and_no_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("celery", reason="`make test-sdks` runs it with celery")
    from failwell.integrations.celery import TaskFailed

    for name in ("queue", "results", "control"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("CELERY_LAB", str(tmp_path))
    lab: Any = import_module("tests.sdks.engines.celery_app")
    command = [sys.executable, "-m", "celery", "-A", "tests.sdks.engines.celery_app", "worker"]
    worker = subprocess.Popen(
        [*command, "--concurrency=1", "--loglevel=INFO", "--without-gossip", "--without-mingle"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        result = lab.act.delay()
        with pytest.raises(TaskFailed) as caught:
            result.get(timeout=120)
    finally:
        worker.terminate()
        printed, _ = worker.communicate(timeout=60)

    report = describe(caught.value)
    stored = "".join(path.read_text() for path in (tmp_path / "results").iterdir())
    assert (tmp_path / "calls").read_text().count("called") == 3
    assert [(row.kind, row.wait) for row in report.attempts] == [
        ("provider.overloaded", wait) for wait in (1.0, 2.0, None)
    ]
    assert report.kind in stored
    assert lab.SECRET not in stored + printed
