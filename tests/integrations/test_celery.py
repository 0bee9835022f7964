"""Celery tasks that are really sent again, on our word: eagerly, and through a broker in memory."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from failwell.testing.builders import make_fault
from tests.calls.acting import even, told

pytest.importorskip("celery", reason="celery is in requirements/sdks/newest.txt")

from examples.bridges import with_celery
from failwell.integrations.celery import LONGEST, retry_task

celery: Any = __import__("celery")
exceptions: Any = __import__("celery.exceptions", fromlist=["Retry"])
Reject, Retry = exceptions.Reject, exceptions.Retry


def a_task(**options: Any) -> Any:
    """A task whose broker is a queue in memory; nobody works on it."""
    app: Any = celery.Celery("tests", broker="memory://", set_as_current=False)

    @app.task(bind=True, name="ask", **options)
    def ask(self: Any) -> None:
        """Never runs: the tests only look at how it is sent."""

    return ask


@contextmanager
def running(task: Any, *, retries: int = 0) -> Generator[list[Any]]:
    """The block, as if a worker ran `task`; what is sent to the broker meanwhile."""
    sent: list[Any] = []

    def note(headers: Any = None, **_: Any) -> None:
        sent.append(headers)

    celery.signals.before_task_publish.connect(note, weak=False)
    task.push_request(id="t1", args=(), kwargs={}, retries=retries, called_directly=False, is_eager=False)
    try:
        yield sent
    finally:
        task.pop_request()
        celery.signals.before_task_publish.disconnect(note)


def test_the_example_sends_one_task_again_and_not_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    with_celery.main()

    assert capsys.readouterr().out == "an answer to 'why?' after 2 calls\nprovider.auth after 1 call\n"


@pytest.mark.parametrize(
    ("failure", "retries", "countdown"),
    [
        (make_fault(not_before=told(7.5)), 0, 7.5),
        (make_fault(not_before=told(600)), 0, 600),
        (make_fault(kind="provider.quota_exhausted", not_before=told(1800)), 0, 1800),
        (make_fault(), 2, 20.0),
        (make_fault(kind="provider.unavailable"), 1, 2.0),
    ],
    ids=[
        "told",
        "too long to sleep",
        "until the quota renews",
        "third rate limit",
        "second failure of a server",
    ],
)
def test_a_task_is_sent_again_after_the_right_wait(
    failure: Exception, retries: int, countdown: float
) -> None:
    task = a_task(max_retries=None)

    with running(task, retries=retries) as sent, pytest.raises(Retry) as caught:
        retry_task(task, failure, jitter=even)

    assert caught.value.when == countdown
    assert [(one["retries"], one["eta"] is not None) for one in sent] == [(retries + 1, True)]


@pytest.mark.parametrize(
    ("failure", "retries"),
    [
        (make_fault(kind="provider.auth"), 0),
        (make_fault(kind="provider.outcome_unknown"), 0),
        (make_fault(kind="cancel.job"), 0),
        (make_fault(not_before=told(LONGEST + 1)), 0),
        (make_fault(), 5),
        (Retry("somebody sends it again already"), 0),
        (Reject("it goes back to the broker"), 0),
    ],
    ids=[
        "wrong key",
        "unknown outcome",
        "cancel",
        "too long",
        "all attempts spent",
        "sent again",
        "rejected",
    ],
)
def test_what_must_not_be_repeated_comes_out_and_nothing_is_sent(failure: Exception, retries: int) -> None:
    task = a_task(max_retries=None)

    with running(task, retries=retries) as sent, pytest.raises(type(failure)) as caught:
        retry_task(task, failure, jitter=even)

    assert caught.value is failure
    assert sent == []


def test_the_tasks_own_limit_holds_as_well() -> None:
    task = a_task(max_retries=1)
    failure = make_fault()

    with running(task, retries=1) as sent, pytest.raises(type(failure)) as caught:
        retry_task(task, failure, jitter=even)

    assert caught.value is failure
    assert sent == []


def test_a_task_declared_idempotent_is_sent_again_after_a_lost_reply() -> None:
    task = a_task()

    with running(task) as sent, pytest.raises(Retry):
        retry_task(task, TimeoutError("the read operation timed out"), idempotent=True, jitter=even)

    assert len(sent) == 1
