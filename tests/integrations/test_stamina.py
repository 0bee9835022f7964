"""stamina, really repeating, on our word."""

import asyncio
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from failwell.testing.builders import make_fault
from tests.calls.acting import Scripted, told

pytest.importorskip("stamina", reason="stamina is in requirements/test.txt")

import stamina
from stamina.instrumentation import RetryDetails, set_on_retry_hooks

from examples.bridges.with_stamina import main
from failwell.integrations.stamina import retry_on


@pytest.fixture(autouse=True)
def waits() -> Iterator[list[float]]:
    """The waits that stamina plans; its loggers are silent meanwhile."""
    planned: list[float] = []

    def note(details: RetryDetails) -> None:
        planned.append(details.wait_for)

    set_on_retry_hooks([note])
    yield planned
    set_on_retry_hooks(None)


def ask(call: Scripted, on: Any = retry_on) -> Any:
    return stamina.retry(on=on, attempts=3, wait_initial=0, wait_max=0, wait_jitter=0)(call.__call__)()


def test_the_example_repeats_one_failure_and_not_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    main()

    assert capsys.readouterr().out == "an answer to 'why?' after 2 calls\nprovider.auth after 1 call\n"


def test_stamina_waits_exactly_as_long_as_the_provider_told(waits: list[float]) -> None:
    call = Scripted(make_fault(not_before=told(0.02)), "answer")

    assert ask(call) == "answer"
    assert waits == [0.02]


def test_a_requested_delay_of_nothing_is_a_wait_and_not_a_refusal(waits: list[float]) -> None:
    call = Scripted(make_fault(not_before=told(0.0)), "answer")

    assert ask(call) == "answer"
    assert waits == [0.0]


def test_without_a_requested_delay_stamina_keeps_its_own() -> None:
    assert retry_on(make_fault()) is True


@pytest.mark.parametrize(
    "failure",
    [
        make_fault(kind="provider.auth"),
        make_fault(kind="provider.outcome_unknown"),
        make_fault(not_before=told(61)),
        asyncio.CancelledError(),
        KeyboardInterrupt(),
    ],
    ids=["wrong key", "unknown outcome", "too long", "cancel", "interrupt"],
)
def test_what_must_not_be_repeated_is_called_once(failure: BaseException) -> None:
    call = Scripted(failure, "answer")

    with pytest.raises(type(failure)):
        ask(call)

    assert call.count == 1


def test_a_call_declared_idempotent_is_repeated_after_a_lost_reply() -> None:
    call = Scripted(TimeoutError("the read operation timed out"), "answer")

    assert ask(call, partial(retry_on, idempotent=True)) == "answer"
