"""tenacity, really repeating, on our word."""

import asyncio
from typing import Any

import pytest

from failwell.testing.builders import make_fault
from tests.calls.acting import Scripted, even, told

pytest.importorskip("tenacity", reason="tenacity is in requirements/sdks/newest.txt")

import tenacity

from examples.bridges.with_tenacity import main
from failwell.integrations.tenacity import retry_if_failwell, wait_failwell

FOREVER = 10


class Engine:
    """tenacity with our predicate and our wait; it writes its waits down instead of sleeping."""

    def __init__(self, **changes: Any) -> None:
        self.waits: list[float] = []
        given: dict[str, Any] = {
            "retry": retry_if_failwell(),
            "wait": wait_failwell(jitter=even),
            "stop": tenacity.stop_after_attempt(FOREVER),
            "reraise": True,
            "sleep": self.waits.append,
        }
        self.run: Any = tenacity.Retrying(**{**given, **changes})


def test_the_example_repeats_one_failure_and_not_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    main()

    assert capsys.readouterr().out == "an answer to 'why?' after 2 calls\nprovider.auth after 1 call\n"


def test_a_requested_delay_is_kept_exactly_and_the_others_follow_the_schedule_of_the_kind() -> None:
    engine = Engine()
    overloaded = make_fault(kind="provider.unavailable")
    call = Scripted(make_fault(not_before=told(7.5)), overloaded, overloaded, make_fault(), "answer")

    assert engine.run(call) == "answer"
    assert engine.waits == [7.5, 2.0, 4.0, 40.0]


@pytest.mark.parametrize("default", [3, tenacity.wait_fixed(3)], ids=["seconds", "a wait of tenacity"])
def test_a_default_wait_is_used_where_nothing_was_told(default: Any) -> None:
    engine = Engine(wait=wait_failwell(default))
    call = Scripted(make_fault(), make_fault(not_before=told(1)), "answer")

    engine.run(call)

    assert engine.waits == [3.0, 1.0]


@pytest.mark.parametrize(
    "failure",
    [
        make_fault(kind="provider.auth"),
        make_fault(kind="provider.outcome_unknown"),
        make_fault(kind="cancel.turn", retryable=True),
        make_fault(not_before=told(61)),
        asyncio.CancelledError(),
        KeyboardInterrupt(),
    ],
    ids=["wrong key", "unknown outcome", "our cancel", "too long", "cancel", "interrupt"],
)
def test_what_must_not_be_repeated_is_called_once(failure: BaseException) -> None:
    call = Scripted(failure, "answer")

    with pytest.raises(type(failure)):
        Engine().run(call)

    assert call.count == 1


def test_a_call_declared_idempotent_is_repeated_after_a_lost_reply() -> None:
    engine = Engine(retry=retry_if_failwell(idempotent=True))
    call = Scripted(TimeoutError("the read operation timed out"), "answer")

    assert engine.run(call) == "answer"


def test_the_predicate_and_the_wait_combine_with_those_of_tenacity() -> None:
    engine = Engine(
        retry=retry_if_failwell() & tenacity.retry_if_not_exception_message(match="enough"),
        wait=wait_failwell(1) + tenacity.wait_fixed(2),
    )
    call = Scripted(make_fault(message="once more"), make_fault(message="enough"), "answer")

    with pytest.raises(type(make_fault())):
        engine.run(call)

    assert call.count == 2
    assert engine.waits == [3.0]


def test_a_task_that_is_cancelled_while_tenacity_runs_it_stays_cancelled() -> None:
    call = Scripted(asyncio.CancelledError(), "answer")
    engine: Any = tenacity.AsyncRetrying(retry=retry_if_failwell(), wait=wait_failwell(0), reraise=True)

    async def cancelled() -> bool:
        task = asyncio.ensure_future(engine(call.on_loop))
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(cancelled())
    assert call.count == 1
