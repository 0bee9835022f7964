"""The capability for Pydantic AI, in runs of real agents on models that fail as scripted."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="pydantic-ai-slim is in requirements/sdks/newest.txt")

from pydantic_ai import Agent, ModelHTTPError, ModelSettings
from pydantic_ai.capabilities import ModelFallback
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.wrapper import WrapperModel

from failwell.adapters.describe import describe
from failwell.agents import drop_oldest_tool_results
from failwell.calls.attempt_loop import AttemptEvent, OperationEnded
from failwell.calls.backoff import Backoff
from failwell.calls.budget import Budget
from failwell.calls.circuit_breaker import CallTarget
from failwell.calls.guard import CircuitOpen, Guard
from failwell.calls.shared_budget import BudgetExceeded, SharedBudget
from failwell.calls.streams.timeouts import StreamTimeouts
from failwell.errors.context import ledger_of
from failwell.errors.facts import NotBefore
from failwell.integrations.pydantic_ai import reliability
from failwell.testing import FakeClock
from failwell.testing.builders import make_fault

ANSWER = ModelResponse(parts=[TextPart("done")])
CALLS_WEATHER = ModelResponse(parts=[ToolCallPart("weather", {"city": "Oslo"})])


class Scripted:
    """A model that gives one outcome after the other, the last one for ever."""

    def __init__(self, *outcomes: Exception | ModelResponse, name: str = "scripted") -> None:
        self.outcomes = outcomes
        self.requests: list[list[ModelMessage]] = []
        self.settings: list[Any] = []
        self.model = FunctionModel(self._answer, stream_function=self._stream, model_name=name)

    def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        outcome = self.outcomes[min(len(self.requests), len(self.outcomes) - 1)]
        self.requests.append(messages)
        self.settings.append(info.model_settings)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        part = self._answer(messages, info).parts[0]
        assert isinstance(part, TextPart)
        yield part.content


def run(agent: Agent[None, str]) -> str:
    # `run_sync` leaves its event loop open.
    return asyncio.run(agent.run("hello")).output


def status(code: int) -> ModelHTTPError:
    return ModelHTTPError(code, "scripted")


def test_a_request_that_fails_is_repeated_and_then_counts_as_one_answer() -> None:
    clock, events = FakeClock(), list[AttemptEvent]()
    script = Scripted(status(503), status(503), ANSWER)
    capability = reliability(clock=clock, jitter=lambda: 0.5, watcher=events.append)

    answer = run(Agent(script.model, capabilities=[capability]))

    assert (answer, clock.slept) == ("done", [1.0, 2.0])
    assert [type(event).__name__ for event in events] == ["AttemptFailed", "AttemptFailed", "OperationEnded"]
    assert isinstance(events[-1], OperationEnded)
    assert events[-1].succeeded


def test_the_retries_of_the_client_are_off_whatever_the_settings_say() -> None:
    script = Scripted(ANSWER)
    wrapped = WrapperModel(script.model)

    for model in (script.model, wrapped):
        run(Agent(model, model_settings=ModelSettings(max_retries=5), capabilities=[reliability()]))

    assert [settings["max_retries"] for settings in script.settings] == [0, 0]


def test_a_stream_is_repeated_before_it_is_opened() -> None:
    clock, script = FakeClock(), Scripted(status(503), ANSWER)
    agent = Agent(script.model, capabilities=[reliability(clock=clock, jitter=lambda: 0.5)])

    async def read() -> str:
        async with agent.run_stream("hello") as running:
            return await running.get_output()

    assert asyncio.run(read()) == "done"
    assert (len(script.requests), clock.slept) == (2, [1.0])


def test_what_ends_a_run_carries_its_ledger_with_the_model() -> None:
    script = Scripted(status(401))

    with pytest.raises(ModelHTTPError) as caught:
        run(Agent(script.model, capabilities=[reliability()]))

    ledger = ledger_of(caught.value)
    assert ledger is not None
    assert [(row.model, row.kind) for row in ledger.attempts] == [("scripted", "provider.auth")]
    assert describe(caught.value).attempts == ledger.attempts


def test_a_request_that_no_model_of_a_fallback_answers_is_repeated() -> None:
    clock = FakeClock()
    first, second = Scripted(status(503), name="first"), Scripted(status(503), ANSWER, name="second")
    capabilities = [ModelFallback(second.model), reliability(clock=clock, jitter=lambda: 0.5)]

    assert run(Agent(first.model, capabilities=capabilities)) == "done"
    assert (len(first.requests), len(second.requests), clock.slept) == (1, 2, [1.0])


def test_budgets_and_guards_refuse_a_request_before_it_is_made() -> None:
    script = Scripted(ANSWER)
    spent = SharedBudget(Budget(attempts=1))
    agent = Agent(script.model, capabilities=[reliability(budget=spent)])
    failing, guard = Scripted(status(503)), Guard()
    guarded = Agent(failing.model, capabilities=[reliability(guard=guard, attempts=1)])

    run(agent)
    with pytest.raises(BudgetExceeded):
        run(agent)
    for _ in range(20):
        with pytest.raises((ModelHTTPError, CircuitOpen)):
            run(guarded)
    with pytest.raises(CircuitOpen):
        run(guarded)

    assert len(script.requests) == 1
    assert len(failing.requests) < 20


def tool_results(script: Scripted) -> list[ToolReturnPart]:
    return tool_results_of(script.requests[-1])


def tool_results_of(messages: list[ModelMessage]) -> list[ToolReturnPart]:
    parts = [part for message in messages for part in message.parts]
    return [part for part in parts if isinstance(part, ToolReturnPart)]


def weather_agent(script: Scripted, error: Exception) -> Agent[None, str]:
    agent = Agent(script.model, capabilities=[reliability(on_tool_error=lambda _report: None)])

    @agent.tool_plain
    def weather(city: str) -> str:
        raise error

    return agent


def test_an_exception_of_a_tool_is_a_failed_result_and_arguments_at_fault_are_corrected() -> None:
    broken, wrong = Scripted(CALLS_WEATHER, ANSWER), Scripted(CALLS_WEATHER, ANSWER)

    answers = [
        run(weather_agent(broken, ValueError("the-text"))),
        run(weather_agent(wrong, make_fault(kind="tool.input_invalid"))),
    ]

    assert answers == ["done", "done"]
    failed, retried = tool_results(broken), tool_results(wrong)
    assert [part.outcome for part in (*failed, *retried)] == ["failed", "retried"]
    assert "tool.failed" in str(failed[0].content)
    assert "tool.input_invalid" in str(retried[0].content)
    assert "the-text" not in str(broken.requests[-1])


def test_a_call_that_failed_twice_in_the_same_way_is_not_made_a_third_time() -> None:
    script = Scripted(CALLS_WEATHER, CALLS_WEATHER, CALLS_WEATHER, ANSWER)
    agent = Agent(script.model, capabilities=[reliability(on_tool_error=lambda _report: None)])
    calls: list[str] = []

    @agent.tool_plain
    def weather(city: str) -> str:
        calls.append(city)
        raise PermissionError(13, "not for you")

    assert [run(agent), len(calls)] == ["done", 2]
    results = [str(part.content) for part in tool_results(script)]
    assert ["twice" in result for result in results] == [False, True, True]
    assert "was not made again" in results[-1]
    script.requests.clear()
    # Another run begins with nothing.
    assert [run(agent), len(calls)] == ["done", 4]


def test_a_long_tool_result_is_taken_out_of_messages_that_are_too_long() -> None:
    too_long = ModelHTTPError(400, "scripted", {"error": {"code": "context_length_exceeded"}})
    script = Scripted(CALLS_WEATHER, CALLS_WEATHER, too_long, ANSWER)
    agent = Agent(script.model, capabilities=[reliability(shrink=drop_oldest_tool_results)])

    @agent.tool_plain
    def weather(city: str) -> str:
        return f"sunny in {city}. " * 500

    assert run(agent) == "done"
    texts = [[str(part.content) for part in tool_results_of(request)] for request in script.requests[2:]]
    assert [len(results) for results in texts] == [2, 2]
    assert [text.startswith("[The result was removed") for text in texts[1]] == [True, False]


def test_a_stream_that_sends_nothing_is_repeated_and_one_that_breaks_later_is_not() -> None:
    opened: list[str] = []

    async def silent_then_broken(_messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str]:
        opened.append("stream")
        if len(opened) == 1:
            await asyncio.Event().wait()
        yield "begun"
        raise status(503)

    stream = StreamTimeouts(first=0.05, idle=60)
    model = FunctionModel(stream_function=silent_then_broken)
    agent = Agent(model, capabilities=[reliability(stream=stream, backoff=Backoff(first=0.0))])

    async def read() -> str:
        async with agent.run_stream("hello") as running:
            return await running.get_output()

    with pytest.raises(ModelHTTPError) as caught:
        asyncio.run(read())

    report = describe(caught.value)
    assert len(opened) == 2
    assert [row.kind for row in report.attempts] == ["provider.timeout", "provider.overloaded"]
    assert (report.retryable, report.certainty.value) == (False, "partial")


def test_messages_that_are_too_long_are_shortened_once() -> None:
    too_long = ModelHTTPError(
        400, "scripted", {"error": {"code": "context_length_exceeded", "message": "too long"}}
    )
    shortened, hopeless = Scripted(too_long, ANSWER), Scripted(too_long)

    def shrink(messages: list[Any]) -> list[Any]:
        return [replace(messages[0], parts=[UserPromptPart("short")])]

    answer = run(Agent(shortened.model, capabilities=[reliability(shrink=shrink)]))
    with pytest.raises(ModelHTTPError) as caught:
        run(Agent(hopeless.model, capabilities=[reliability(shrink=shrink)]))

    assert answer == "done"
    assert [str(messages[0].parts[0]).count("short") for messages in shortened.requests] == [0, 1]
    assert len(hopeless.requests) == 2
    assert [row.kind for row in describe(caught.value).attempts] == ["provider.context_too_long"] * 2


def test_a_request_waits_while_the_guard_is_paused_by_somebody_else() -> None:
    clock = FakeClock()
    guard = Guard(clock=clock)
    script = Scripted(ANSWER)
    limited = describe(make_fault(kind="provider.rate_limited", not_before=NotBefore(after=9)))
    guard.failed(CallTarget(script.model.system), limited)

    assert run(Agent(script.model, capabilities=[reliability(guard=guard, clock=clock)])) == "done"
    assert clock.slept == [9.0]
