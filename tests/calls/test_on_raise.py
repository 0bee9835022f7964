"""A block that notes how it ends, and lets what it raises go on."""

import asyncio

import pytest

from failwell.calls.suppress import OnRaise


def test_an_exception_is_passed_to_the_callback_and_goes_on() -> None:
    failed: list[Exception] = []
    error = ValueError("no")

    with pytest.raises(ValueError) as caught, OnRaise(failed.append):
        raise error

    assert caught.value is error
    assert failed == [error]


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError])
def test_what_is_no_failure_is_passed_apart_and_goes_on(interrupt: type[BaseException]) -> None:
    failed: list[Exception] = []
    abandoned: list[BaseException] = []

    with pytest.raises(interrupt) as caught, OnRaise(failed.append, abandoned=abandoned.append):
        raise interrupt

    assert failed == []
    assert abandoned == [caught.value]


def test_a_block_that_works_calls_nothing_back() -> None:
    calls: list[BaseException] = []

    with OnRaise(calls.append, abandoned=calls.append):
        pass

    assert calls == []


async def _async_block(error: BaseException, failed: list[Exception], abandoned: list[BaseException]) -> None:
    async def note(raised: Exception) -> None:
        await asyncio.sleep(0)
        failed.append(raised)

    async with OnRaise(note, abandoned=abandoned.append):
        raise error


def test_in_an_async_block_the_callback_is_awaited() -> None:
    failed: list[Exception] = []
    error = ValueError("no")

    with pytest.raises(ValueError):
        asyncio.run(_async_block(error, failed, []))

    assert failed == [error]


def test_a_callback_that_fails_replaces_what_was_raised_and_keeps_it_as_context() -> None:
    def fail(_error: Exception) -> None:
        raise RuntimeError("the callback")

    with pytest.raises(RuntimeError) as caught, OnRaise(fail):
        raise ValueError("no")

    assert isinstance(caught.value.__context__, ValueError)


def test_an_async_block_that_works_calls_nothing_back() -> None:
    failed: list[Exception] = []

    async def note(raised: Exception) -> None:
        failed.append(raised)

    async def work() -> str:
        async with OnRaise(note):
            return "done"

    assert asyncio.run(work()) == "done"
    assert failed == []
