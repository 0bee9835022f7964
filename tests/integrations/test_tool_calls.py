"""What the exception of a tool becomes for the model."""

import asyncio
import json
from functools import partial
from inspect import iscoroutinefunction
from typing import Any

import pytest

from failwell.agents.tool_errors import ToolCalls
from failwell.calls import observe
from failwell.calls.suppress import Suppressed
from failwell.errors.faults import Cancellation
from failwell.errors.report import ErrorReport
from failwell.testing.builders import make_fault

SECRET = "the-text-nobody-may-see"


def test_the_model_sees_the_kind_and_never_the_text() -> None:
    reports: list[ErrorReport] = []
    tools = ToolCalls(observer=reports.append)

    bug = tools.failed(ValueError(SECRET), tool="weather")
    refused = tools.failed(ConnectionRefusedError(111, SECRET))

    assert json.loads(bug.text) == bug.content
    assert (bug.content["kind"], bug.content["retryable"]) == ("tool.failed", False)
    assert (refused.content["kind"], refused.content["retryable"]) == ("provider.connection", True)
    assert SECRET not in bug.text + refused.text
    assert [report.scene.tool for report in reports] == ["weather", None]


def test_arguments_that_are_at_fault_are_told_apart() -> None:
    tools = ToolCalls(observer=lambda _report: None)

    assert tools.failed(make_fault(kind="tool.input_invalid")).is_input
    assert not tools.failed(ValueError("x")).is_input


def test_without_an_observer_the_failure_is_on_the_record_of_suppressed_errors() -> None:
    events: list[Suppressed] = []

    with observe(events.append):
        ToolCalls().failed(ValueError(SECRET), tool="weather")

    assert [(event.report.kind, event.report.scene.tool) for event in events] == [("tool.failed", "weather")]


def test_a_cancellation_is_no_failure_of_the_tool() -> None:
    cancelled = Cancellation(kind="cancel.run")

    with pytest.raises(Cancellation):
        ToolCalls().failed(cancelled)


def test_an_observer_that_fails_does_not_hide_the_result() -> None:
    def broken(_report: ErrorReport) -> None:
        raise RuntimeError(SECRET)

    assert ToolCalls(observer=broken).failed(ValueError("x")).content["kind"] == "tool.failed"


def test_an_observer_that_cannot_be_called_is_refused() -> None:
    wrong: Any = "print"

    with pytest.raises(TypeError, match="`on_tool_error` takes a function"):
        ToolCalls(observer=wrong)


def test_a_guarded_tool_returns_its_failure_plain_or_async_and_raises_a_cancellation() -> None:
    reports: list[ErrorReport] = []
    tools = ToolCalls(observer=reports.append)

    def plain(city: str) -> str:
        if city == "stop":
            raise Cancellation(kind="cancel.run")
        raise PermissionError(13, SECRET)

    async def on_loop(city: str) -> str:
        return plain(city)

    guarded, awaited = tools.guarded(plain, tool="weather"), tools.guarded(on_loop, tool="weather")
    hidden = tools.guarded(partial(on_loop, "Oslo"), answer=lambda failure: failure.content)

    texts = [guarded("Oslo"), asyncio.run(awaited("Oslo"))]
    with pytest.raises(Cancellation):
        guarded("stop")

    assert iscoroutinefunction(awaited)
    assert not iscoroutinefunction(guarded)
    assert tools.guarded(guarded) is guarded
    assert [json.loads(text)["kind"] for text in texts] == ["tool.failed", "tool.failed"]
    assert asyncio.run(hidden())["kind"] == "tool.failed"
    assert SECRET not in "".join(texts)
    assert [report.scene.tool for report in reports] == ["weather", "weather", None]


def test_a_failure_that_the_model_gets_calls_nobody() -> None:
    reports: list[ErrorReport] = []

    ToolCalls(observer=reports.append).failed(ValueError("x"), tool="search")

    assert [(report.kind, report.severity) for report in reports] == [("tool.failed", "info")]
