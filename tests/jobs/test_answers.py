"""Answers that nobody expects: each call is answered once, and its worker takes the next one."""

from typing import Any

import pytest

import failwell
from failwell.capability import CapabilityCancelledError, CapabilityFatalError
from tests.jobs.workers import a_worker, failure, run


@pytest.mark.parametrize("kind", ["list", "dict"])
def test_a_result_that_is_nested_too_deep_is_fatal_and_the_next_call_is_answered(kind: str) -> None:
    async def work() -> Any:
        ends: list[Any] = []
        async with a_worker("rough:Rough") as (worker, _):
            for levels in (201, 450, 600, 900, 980, 5000):
                arguments = {"levels": levels, "kind": kind}
                fault = await failure(worker.call(f"deep {levels}", arguments, action="deep"))
                in_flight = worker.in_flight
                ends.append((fault, in_flight, await worker.call(f"next {levels}", {"value": levels})))
        return ends

    for (fault, in_flight, after), levels in zip(run(work()), (201, 450, 600, 900, 980, 5000), strict=True):
        report = failwell.describe(fault)
        assert (report.category.job, report.retryable) == ("fatal", False)
        assert "nested" in report.message
        assert in_flight == ()
        assert after == levels


def test_a_result_may_be_nested_as_deep_as_anybody_needs() -> None:
    async def work() -> Any:
        async with a_worker("rough:Rough") as (worker, _):
            return await worker.call("deep", {"levels": 199}, action="deep")

    made = run(work())

    levels = 0
    while made != 1:
        made, levels = made[0], levels + 1
    assert levels == 199


def test_an_item_that_is_nested_too_deep_ends_its_stream_and_nothing_else() -> None:
    async def work() -> Any:
        async with a_worker("rough:Rough") as (worker, _):

            async def streamed() -> list[Any]:
                return [one async for one in worker.stream("deep", {"levels": 600}, action="deep_items")]

            fault = await failure(streamed())
            return fault, await worker.call("next", {"value": 1})

    fault, after = run(work())

    assert isinstance(fault, CapabilityFatalError)
    assert "nested" in str(fault)
    assert after == 1


@pytest.mark.parametrize(
    "frame",
    [
        {},
        {"error": {"strange": 1}},
        {"error": None},
        {"error": {"report": {"schema": "failwell.error/9", "kind": 3}}},
        {"error": {"exception": {"classes": 7}}},
    ],
    ids=["no value", "strange words", "no words", "a report of another age", "facts of another shape"],
)
def test_an_answer_that_cannot_be_read_fails_its_call_and_no_other(frame: dict[str, Any]) -> None:
    async def work() -> Any:
        async with a_worker("rough:Rough") as (worker, _):
            fault = await failure(worker.call("odd", {"frame": frame}, action="answers"))
            return fault, worker.in_flight, await worker.call("next", {"value": 1})

    fault, in_flight, after = run(work())

    assert failwell.describe(fault).category.job == "fatal"
    assert (in_flight, after) == ((), 1)


@pytest.mark.parametrize("how", ["typed", "asyncio", "futures"])
@pytest.mark.parametrize("installed", [True, False], ids=["with failwell", "without failwell"])
def test_a_capability_that_ends_as_cancelled_though_nobody_asked_has_failed(
    how: str, *, installed: bool, bare_python: str
) -> None:
    given: dict[str, Any] = {} if installed else {"python": bare_python}

    async def work() -> Any:
        async with a_worker("rough:Rough", **given) as (worker, _):
            return await failure(worker.call("job", {"how": how}, action="gives_up"))

    fault = run(work())

    report = failwell.describe(fault)
    assert not isinstance(fault, CapabilityCancelledError)
    assert (report.category.job, report.category.value) == ("fatal", "fatal")
    assert report.error_type in ("CapabilityCancelledError", "CancelledError")
    assert "but it was not cancelled" in report.message
    assert "in gives_up" in ((report.internal and report.internal.traceback) or "")


def test_whoever_fails_at_taking_an_answer_keeps_nobody_else_from_theirs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(_answer: object) -> None:
        raise RuntimeError("cannot take it")

    async def work() -> Any:
        async with a_worker("rough:Rough") as (worker, _):
            await worker.start()
            assert worker.begin("one", {"value": 1}, "execute", None, broken)
            return await worker.call("two", {"value": 2})

    assert run(work()) == 2
    assert "the callback for the answer to job one failed" in caplog.text
