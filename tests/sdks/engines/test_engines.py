"""celery, ray, dbos and prefect: real tasks that fail, die, hang and are cancelled."""

import asyncio
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from failwell.adapters.describe import describe
from failwell.errors.report import ErrorReport

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]


def test_celery_a_task_is_what_it_was_retried_for() -> None:
    celery: Any = pytest.importorskip("celery", reason="`make test-sdks` runs it with celery")
    app = celery.Celery(broker="memory://", backend="cache+memory://")

    @app.task(bind=True, max_retries=0)
    def flaky(task: Any, error: type[Exception] | None) -> None:
        raise task.retry(exc=None if error is None else error("text"), countdown=7)

    refused, spent = (describe(flaky.apply(args=(each,)).result) for each in (PermissionError, None))
    again = describe(celery.exceptions.Retry(exc=MemoryError(), when=7.0))

    assert refused.kind == describe(PermissionError("text")).kind
    assert spent.kind == "retry.exhausted"
    assert again.not_before is not None
    assert (again.kind, again.not_before.after) == ("resource.system_memory", 7.0)


def test_celery_a_broker_that_is_away_is_a_connection_that_may_be_repeated() -> None:
    celery: Any = pytest.importorskip("celery", reason="`make test-sdks` runs it with celery")
    with pytest.raises(Exception) as caught:
        celery.Celery(broker="amqp://127.0.0.1:1").send_task("missing", retry=False)
    report = describe(caught.value)

    assert (report.kind, report.retryable) == ("provider.connection", True)


def test_dbos_a_step_that_was_tried_too_often_is_what_its_last_try_was(tmp_path: Path) -> None:
    dbos: Any = pytest.importorskip("dbos", reason="`make test-sdks` runs it with dbos")
    engine = dbos.DBOS(
        config={
            "name": "tests",
            "system_database_url": f"sqlite:///{tmp_path}/dbos.sqlite",
            "run_admin_server": False,
        }
    )

    @dbos.DBOS.step(retries_allowed=True, max_attempts=2, interval_seconds=0.01)
    def step() -> None:
        raise MemoryError

    @dbos.DBOS.workflow()
    def flow() -> None:
        step()

    try:
        dbos.DBOS.launch()
        with pytest.raises(Exception) as spent:
            flow()
    finally:
        engine.destroy()

    report = describe(spent.value)
    assert report.kind == "resource.system_memory"
    assert report.evidence[-1].rule == "dbos.DBOSMaxStepRetriesExceeded"


def test_prefect_the_state_of_a_run_says_how_it_ended() -> None:
    pytest.importorskip("prefect", reason="`make test-sdks` runs it with prefect")
    states: Any = pytest.importorskip("prefect.states")

    async def result_of(state: Any) -> ErrorReport:
        with pytest.raises(BaseException) as caught:
            await states.raise_state_exception(state)
        return describe(caught.value)

    async def run() -> list[str]:
        ends = (
            states.Crashed(),
            states.Cancelled(),
            await states.exception_to_failed_state(MemoryError("text")),
        )
        return [(await result_of(state)).kind for state in ends]

    assert asyncio.run(run()) == ["worker.crashed", "cancel.run", "resource.system_memory"]


def test_ray_tasks_fail_die_hang_and_are_cancelled() -> None:
    ray: Any = pytest.importorskip("ray", reason="`make test-sdks` runs it with ray")

    @ray.remote(max_retries=0)
    def refuse() -> None:
        raise MemoryError("text")

    @ray.remote(max_retries=0)
    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    @ray.remote(max_retries=0)
    def hang() -> None:
        time.sleep(60)  # a task of another process, ended below

    def failure(reference: Any, timeout: float | None = None) -> ErrorReport:
        with pytest.raises(Exception) as caught:
            ray.get(reference, timeout=timeout)
        return describe(caught.value)

    # Its sockets need a short path.
    folder = tempfile.mkdtemp(prefix="ray")
    try:
        ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, _temp_dir=folder)
        kinds = [failure(refuse.remote()).kind, failure(die.remote()).kind]
        waiting = hang.remote()
        kinds.append(failure(waiting, timeout=0.2).kind)
        ray.cancel(waiting)
        kinds.append(failure(waiting).kind)
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)

    assert kinds == ["resource.system_memory", "worker.crashed", "worker.timeout", "cancel.job"]


def test_celery_a_lost_worker_is_read_by_its_signal() -> None:
    exceptions: Any = pytest.importorskip(
        "billiard.exceptions", reason="`make test-sdks` runs it with celery"
    )

    def kind(text: str) -> str:
        return describe(exceptions.WorkerLostError(text)).kind

    assert kind("Worker exited prematurely: signal 15 (SIGTERM) Job: 11.") == "cancel.run"
    assert kind("Worker exited prematurely: signal 9 (SIGKILL) Job: 0.") == "worker.oom"
    assert kind("Worker exited prematurely: exitcode 0 Job: 0.") == "worker.crashed"
