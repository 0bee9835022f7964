"""`ToolLoopBreaker`: the same failing call is refused, a corrected one is not."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

import failwell
from failwell.agents import ToolCallRepeated, ToolLoopBreaker
from failwell.agents.tool_errors import ToolCalls
from failwell.errors import scene
from failwell.errors.axes import Certainty
from failwell.errors.report import ErrorReport
from failwell.testing.builders import make_fault
from tests.calls.acting import caught


def report(kind: str) -> ErrorReport:
    return failwell.describe(make_fault(kind=kind), origin="tool")


def fail(breaker: ToolLoopBreaker, *kinds: str, arguments: Any = None, **run: Any) -> list[bool]:
    """Fail once for each kind; whether each was told as a repetition."""
    return [
        breaker.failed("search", arguments or {"q": "x"}, report(kind), **run) is not None for kind in kinds
    ]


def refused(breaker: ToolLoopBreaker, arguments: Any = None, **run: Any) -> bool:
    return breaker.refuses("search", arguments or {"q": "x"}, **run) is not None


def test_a_call_that_failed_twice_in_the_same_way_is_refused_and_a_corrected_one_is_not() -> None:
    breaker = ToolLoopBreaker()

    told = fail(breaker, "tool.input_invalid", "tool.input_invalid")

    assert told == [False, True]
    assert refused(breaker)
    assert not refused(breaker, {"q": "y"})
    assert breaker.refuses("read", {"q": "x"}) is None


def test_failures_are_counted_by_kind() -> None:
    breaker = ToolLoopBreaker()

    assert fail(breaker, "tool.input_invalid", "tool.denied") == [False, False]
    assert not refused(breaker)
    assert fail(breaker, "tool.denied") == [True]
    fault = breaker.refuses("search", {"q": "x"})
    assert fault is not None
    assert fault.kind == "tool.denied"


def test_failures_that_pass_are_not_counted() -> None:
    breaker = ToolLoopBreaker()

    passing = [
        "provider.rate_limited",
        "tool.busy",
        "tool.timeout",
        "provider.quota_exhausted",
        "resource.disk",
    ]
    assert not any(fail(breaker, *(passing * 3)))

    assert not refused(breaker)


def test_the_result_has_the_kind_of_the_failure_and_says_what_to_do_instead() -> None:
    breaker = ToolLoopBreaker()
    cases = {
        "tool.input_invalid": "Change the arguments, or stop and say what is missing.",
        "tool.denied": "Other arguments will not change that. Do without it, or stop and say so.",
        "tool.failed": "Change the arguments, do it another way, or stop and say so.",
    }
    for kind, advice in cases.items():
        fail(breaker, kind, kind, arguments={"kind": kind})

        fault = breaker.refuses("search", {"kind": kind})

        assert fault is not None
        result = json.loads(fault.text)
        assert (result["kind"], result["retryable"], result["failures"]) == (kind, False, 2)
        assert result["advice"] == f"This call failed the same way twice and was not made again. {advice}"
        described = failwell.describe(fault)
        assert (described.kind, described.certainty) == (kind, Certainty.NOT_SENT)


def test_arguments_that_mean_the_same_are_one_call() -> None:
    @dataclass
    class Query:
        q: str
        page: int

    same: list[Any] = [
        {"q": "x", "page": 1},
        {"page": 1.0, "q": "x", "filter": None},
        '{"page": 1, "q": "x"}',
        Query("x", 1),
    ]
    others: list[Any] = [
        {"q": "x", "page": "1"},
        {"q": " x", "page": 1},
        {"q": "x", "page": True},
        "not JSON",
        object(),
    ]
    for first in same:
        breaker = ToolLoopBreaker()
        fail(breaker, "tool.input_invalid", "tool.input_invalid", arguments=first)

        assert all(refused(breaker, arguments) for arguments in same)
        assert not any(refused(breaker, arguments) for arguments in others)


def test_a_success_of_another_call_allows_one_more_try_and_no_endless_ones() -> None:
    breaker = ToolLoopBreaker()
    fail(breaker, "tool.input_invalid", "tool.input_invalid")

    allowed: list[bool] = []
    for _ in range(4):
        breaker.succeeded("write", {"path": "x"})
        allowed.append(not refused(breaker))
        if allowed[-1]:
            fail(breaker, "tool.input_invalid")
            assert refused(breaker)

    assert allowed == [True, True, False, False]


def test_a_success_of_the_call_itself_forgets_its_failures() -> None:
    breaker = ToolLoopBreaker()
    fail(breaker, "tool.input_invalid", "tool.input_invalid")

    breaker.succeeded("search", {"q": "x"})

    assert fail(breaker, "tool.input_invalid") == [False]
    assert not refused(breaker)


def test_runs_are_counted_apart() -> None:
    breaker = ToolLoopBreaker()
    with scene(run="one"):
        fail(breaker, "tool.denied", "tool.denied")
        assert refused(breaker)
    with scene(run="two"):
        assert not refused(breaker)
    assert refused(breaker, run="one")
    assert not refused(breaker)


def test_it_remembers_the_latest_calls_only() -> None:
    breaker = ToolLoopBreaker(most=10)
    for number in range(100):
        fail(breaker, "tool.denied", "tool.denied", arguments={"n": number})

    assert [refused(breaker, {"n": number}) for number in (0, 89, 90, 99)] == [False, False, True, True]


def test_threads_lose_no_failure() -> None:
    breaker = ToolLoopBreaker(limit=400)

    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(fail, breaker, "tool.denied") for _ in range(400)]:
            future.result()

    assert refused(breaker)


def test_a_wrapped_tool_raises_instead_of_failing_again() -> None:
    breaker = ToolLoopBreaker()
    calls: list[str] = []

    def search(query: str, page: int = 1) -> str:
        calls.append(query)
        if not query:
            raise make_fault(kind="tool.input_invalid")
        return f"{query} {page}"

    async def search_async(query: str) -> str:
        return search(query)

    tool, async_tool = breaker.wrap(search), breaker.wrap(search_async)

    errors = [caught(lambda: tool("")), caught(lambda: tool(query="")), caught(lambda: tool(""))]
    async_errors = [caught(lambda: asyncio.run(async_tool(""))) for _ in range(3)]

    for found in (errors, async_errors):
        assert [isinstance(error, ToolCallRepeated) for error in found] == [False, False, True]
    assert len(calls) == 4
    assert (tool("cats"), asyncio.run(async_tool("cats"))) == ("cats 1", "cats 1")


def test_a_plugin_tells_the_model_at_the_second_failure_and_refuses_the_third_call() -> None:
    tools = ToolCalls(observer=lambda _report: None)
    error = make_fault(kind="tool.input_invalid", details={"tool": "search", "parameter": "q"})

    failures = [tools.failed(error, tool="search", arguments={"q": ""}, run="r") for _ in range(2)]
    refusal = tools.refused("search", {"q": ""}, run="r")

    assert ["failures" in failure.content for failure in failures] == [False, True]
    assert failures[1].content["context"] == failures[0].content["context"]
    assert refusal is not None
    assert (refusal.content["kind"], refusal.is_input) == ("tool.input_invalid", True)
    assert tools.refused("search", {"q": ""}, run="other") is None
    tools.succeeded("search", {"q": ""}, run="r")
    assert tools.refused("search", {"q": ""}, run="r") is None


def test_limits_without_a_sense_are_refused() -> None:
    for wrong in ({"limit": 0}, {"most": 0}, {"limit": 1.5}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            ToolLoopBreaker(**wrong)  # pyright: ignore[reportArgumentType]
