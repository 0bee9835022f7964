"""Guarded calls: failures come back as values, interrupts and cancellations pass."""

import asyncio

import pytest

from failwell.calls.suppress import Suppressed, call_hook, catch, catch_async, observe


def raises(error: BaseException) -> None:
    raise error


async def raises_later(error: BaseException) -> None:
    raise error


def test_a_failure_is_returned_and_a_value_is_too() -> None:
    error = ValueError("no")

    assert catch(raises, error) == (None, error)
    assert catch(len, "abc") == (3, None)
    assert asyncio.run(catch_async(raises_later, error)) == (None, error)
    assert asyncio.run(catch_async(len, "abc")) == (3, None)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_an_interrupt_passes(stop: type[BaseException]) -> None:
    with pytest.raises(stop):
        catch(raises, stop())
    with pytest.raises(stop):
        call_hook(raises, stop(), reason="a hook failed")


def test_a_hook_that_fails_has_no_answer_and_is_on_record() -> None:
    seen: list[Suppressed] = []

    with observe(seen.append):
        answer = call_hook(raises, ValueError("no"), reason="a hook failed")

    assert answer is None
    assert [event.reason for event in seen] == ["a hook failed"]
