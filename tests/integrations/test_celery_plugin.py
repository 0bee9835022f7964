"""The tasks of a Celery app under the plugin: eagerly, and through a broker and a result backend in memory."""

import json
from typing import Any

import pytest

from failwell.adapters.describe import describe
from failwell.calls.circuit_breaker import BreakerPolicy, CallTarget
from failwell.calls.guard import Guard
from failwell.calls.idempotency import idempotency_key
from failwell.errors.axes import Certainty
from failwell.testing import FakeClock
from failwell.testing.builders import make_fault
from tests.calls.acting import even, told

pytest.importorskip("celery", reason="celery is in requirements/sdks/newest.txt")

from failwell.integrations.celery import LONGEST, TaskFailed, reliability
from tests.integrations.test_celery import running

celery: Any = __import__("celery")
exceptions: Any = __import__("celery.exceptions", fromlist=["Retry"])
SECRET = "the-text-nobody-may-see"


def an_app(**options: Any) -> Any:
    app: Any = celery.Celery("tests", broker="memory://", backend="cache+memory://", set_as_current=False)
    return reliability(app, jitter=even, **options)


def a_task(app: Any, *outcomes: Exception | str, **options: Any) -> tuple[Any, list[str]]:
    """A task with one outcome after the other, and the keys of its calls."""
    keys: list[str] = []

    @app.task(name="ask", shared=False, **options)
    def ask() -> str:
        keys.append(idempotency_key())
        outcome = outcomes[min(len(keys), len(outcomes)) - 1]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return ask, keys


def test_a_task_is_repeated_as_its_failures_allow_and_under_one_idempotency_key() -> None:
    task, keys = a_task(an_app(), make_fault(kind="provider.unavailable"), make_fault(), "answer")

    result = task.apply(task_id="t1")

    assert (result.state, result.get()) == ("SUCCESS", "answer")
    assert keys == ["celery/t1"] * 3


def test_the_result_of_a_failed_task_is_its_report_with_every_attempt() -> None:
    task, keys = a_task(an_app(), make_fault(kind="provider.unavailable"))

    result = task.apply()

    report = describe(result.result)
    assert isinstance(result.result, TaskFailed)
    assert (report.kind, report.retryable, len(keys)) == ("provider.unavailable", True, 3)
    assert [(row.number, row.wait, row.layer) for row in report.attempts] == [
        (1, 1.0, "ask"),
        (2, 2.0, "ask"),
        (3, None, "ask"),
    ]


def test_what_a_backend_stores_is_made_again_without_the_text_of_the_exception() -> None:
    app = an_app()
    task, keys = a_task(app, ValueError(SECRET))

    failed = task.apply()
    stored = json.dumps(app.backend.prepare_exception(failed.result, "json"))
    revived = app.backend.exception_to_python(json.loads(stored))

    assert len(keys) == 1
    assert SECRET not in stored + str(failed.traceback) + repr(revived)
    assert isinstance(revived, TaskFailed)
    assert describe(revived) == describe(failed.result)
    assert (revived.report.error_type, revived.report.kind) == ("ValueError", "internal.bug")


@pytest.mark.parametrize(
    ("failure", "countdown"),
    [(make_fault(not_before=told(7.5)), 7.5), (make_fault(not_before=told(LONGEST)), LONGEST)],
)
def test_a_requested_delay_waits_in_the_queue(failure: Exception, countdown: float) -> None:
    app = an_app()
    task, _ = a_task(app, failure)

    with running(task) as sent, pytest.raises(exceptions.Retry) as caught:
        task()

    assert caught.value.when == countdown
    assert isinstance(caught.value.exc, TaskFailed)
    assert [(header["retries"], header["eta"] is not None) for header in sent] == [(1, True)]


def test_a_delay_that_is_too_long_for_the_queue_fails_the_task_and_says_when() -> None:
    task, keys = a_task(an_app(), make_fault(not_before=told(LONGEST + 1)))

    report = describe(task.apply().result)

    assert len(keys) == 1
    assert report.not_before is not None
    assert (report.kind, report.not_before.after) == ("provider.rate_limited", LONGEST + 1)


@pytest.mark.parametrize(("options", "calls"), [({}, 1), ({"idempotent": True}, 3)])
def test_a_lost_reply_is_repeated_only_where_the_task_says_that_it_is_harmless(
    options: dict[str, Any], calls: int
) -> None:
    task, keys = a_task(an_app(), TimeoutError("the read operation timed out"), **options)

    report = describe(task.apply().result)

    assert (len(keys), report.certainty) == (calls, Certainty.UNKNOWN)


def test_a_task_that_a_guard_refuses_goes_back_to_the_queue_until_the_service_may_be_called() -> None:
    clock = FakeClock()
    guard = Guard(breaker=BreakerPolicy(failures=1, rest=30.0), clock=clock)
    task, keys = a_task(an_app(guard=guard, clock=clock), make_fault(kind="provider.overloaded"))
    with running(task), pytest.raises((exceptions.Retry, TaskFailed)):
        task()

    with running(task) as sent, pytest.raises(exceptions.Retry) as caught:
        task()

    assert len(keys) == 1
    assert (caught.value.when, len(sent)) == (30.0, 1)


def test_a_pause_that_another_user_of_the_guard_was_told_waits_in_the_queue() -> None:
    clock = FakeClock()
    guard = Guard(clock=clock)
    task, keys = a_task(an_app(guard=guard, clock=clock), "answer")
    guard.failed(CallTarget("celery", ""), describe(make_fault(not_before=told(300))))

    with running(task) as sent, pytest.raises(exceptions.Retry) as caught:
        task()

    assert (keys, caught.value.when, len(sent)) == ([], 300.0, 1)


def test_the_limit_of_a_task_holds_as_well_and_leaks_nothing() -> None:
    fault = make_fault(kind="provider.unavailable")
    fault.__cause__ = ValueError(SECRET)
    task, keys = a_task(an_app(), fault, max_retries=1)

    result = task.apply()

    assert (len(keys), describe(result.result).kind) == (2, "provider.unavailable")
    assert SECRET not in str(result.traceback)


def test_a_task_that_celery_itself_ends_or_that_is_called_directly_is_left_alone() -> None:
    app = an_app()
    rejected, _ = a_task(app, exceptions.Ignore())
    failure = ValueError("mine")

    @app.task(name="direct", shared=False)
    def direct() -> None:
        raise failure

    assert rejected.apply().state == "IGNORED"
    with pytest.raises(ValueError, match="mine") as caught:
        direct()
    assert caught.value is failure


def test_an_app_whose_tasks_exist_is_refused() -> None:
    app: Any = celery.Celery("tests", set_as_current=False)
    # Shared tasks of other tests would be made too if it were finalized here.
    app.finalized = True

    with pytest.raises(ValueError, match="where the app is made"):
        reliability(app)
    with pytest.raises(TypeError, match="no parameter `tries`"):
        reliability(app, tries=3)  # type: ignore[call-arg]  # ty: ignore
