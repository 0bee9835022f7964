"""The plugin for openai-agents: names and objects as models, your own configuration, limits, what is left of a run."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from failwell.calls.attempt_loop import AttemptEvent, OperationEnded, Parked
from failwell.calls.budget import Budget
from failwell.calls.guard import CircuitOpen, Guard
from failwell.calls.shared_budget import BudgetExceeded, SharedBudget
from failwell.errors.context import ledger_of
from failwell.integrations.openai_agents import outcome, reliability, tool_error
from failwell.testing import FakeClock
from tests.sdks.frameworks.replies import NO_KEY, OVERLOADED, Reply, Script, completion, script, tool_call

agents: Any = pytest.importorskip("agents", reason="`make test-sdks` runs it with openai-agents")
sdk: Any = pytest.importorskip("openai")

pytestmark = pytest.mark.filterwarnings("ignore")
SECRET = "the-text-nobody-may-see"
DONE = completion(content="done")


@pytest.fixture(autouse=True)
def _no_traces() -> None:
    agents.set_tracing_disabled(True)


def run(
    server: Script,
    config: Any = None,
    *,
    error: Callable[[Any, Exception], str] | None = None,
    named: bool = False,
) -> Any:
    """One run of an agent whose model is given by its name or as an object, and what the SDK's clients do by default."""
    options = {} if error is None else {"failure_error_function": error}

    @agents.function_tool(**options)
    def weather(city: str) -> str:
        raise ValueError(SECRET)

    async def ask() -> Any:
        async with sdk.AsyncOpenAI(api_key="k", base_url=server.url) as client:
            model: Any = agents.OpenAIChatCompletionsModel(model="m", openai_client=client)
            settings = config
            if named:
                provider = agents.OpenAIProvider(openai_client=client, use_responses=False)
                model, settings = "m", quick(run_config=agents.RunConfig(model_provider=provider))
            agent = agents.Agent(name="a", model=model, tools=[weather])
            return (await agents.Runner.run(agent, "hello", run_config=settings)).final_output

    return asyncio.run(ask())


def quick(**options: Any) -> Any:
    return reliability(clock=FakeClock(), jitter=lambda: 0.5, **options)


def calls(*replies: Reply, config: Any = None, **options: Any) -> tuple[int, Any]:
    """Requests that arrived, and the answer or the exception."""
    with script(*replies) as server:
        try:
            result = run(server, config, **options)
        except Exception as failure:
            result = failure
        return len(server.requests), result


def test_a_model_that_is_named_is_repeated_as_one_that_is_an_object() -> None:
    assert calls(OVERLOADED, OVERLOADED, DONE, config=quick()) == (3, "done")
    assert calls(OVERLOADED, OVERLOADED, DONE, named=True) == (3, "done")
    assert calls(NO_KEY, named=True)[0] == 1


def test_the_same_model_in_a_run_without_the_plugin_behaves_as_before() -> None:
    async def both(url: str) -> list[int]:
        counts: list[int] = []
        async with sdk.AsyncOpenAI(api_key="k", base_url=url, max_retries=1) as client:
            model = agents.OpenAIChatCompletionsModel(model="m", openai_client=client)
            agent = agents.Agent(name="a", model=model)
            for config in (quick(attempts=1), None):
                with pytest.raises(sdk.InternalServerError):
                    await agents.Runner.run(agent, "hello", run_config=config)
                counts.append(len(server.requests))
        return counts

    with script(OVERLOADED) as server:
        counts = asyncio.run(both(server.url))

    # One call with the plugin; the client's own two without it.
    assert counts == [1, 3]


def test_a_failure_keeps_its_ledger_and_what_the_run_had() -> None:
    weather = tool_call("weather", json.dumps({"city": "Oslo"}))

    made, failure = calls(weather, OVERLOADED, config=quick())

    assert made == 4
    ledger = ledger_of(failure)
    assert ledger is not None
    assert [row.kind for row in ledger.attempts] == ["provider.overloaded"] * 3
    kept = failure.run_data
    assert kept.last_agent.name == "a"
    assert [item.get("type", item.get("role")) for item in kept.input] == [
        "user",
        "function_call",
        "function_call_output",
    ]


def test_a_long_wait_is_parked_with_what_the_run_had() -> None:
    body = {"error": {"message": "Please try again in 2h", "code": "rate_limit_exceeded", "type": "requests"}}

    made, failure = calls((429, body), config=quick())

    assert (made, type(failure)) == (1, Parked)
    assert failure.run_data.input


def test_the_callbacks_of_your_own_configuration_are_called_too() -> None:
    seen: list[str] = []

    def own_filter(data: Any) -> Any:
        seen.append("filter")
        return data.model_data

    config = agents.RunConfig(call_model_input_filter=own_filter, workflow_name="mine")

    made, answer = calls(DONE, config=reliability(run_config=config))

    assert (made, answer, seen) == (1, "done", ["filter"])
    assert config.call_model_input_filter is own_filter
    with pytest.raises(TypeError, match="`run_config` takes a `RunConfig`"):
        reliability(run_config={"workflow_name": "mine"})


def test_budgets_guards_and_watchers_see_every_call() -> None:
    events: list[AttemptEvent] = []
    guard = Guard()
    config = quick(guard=guard, watcher=events.append, attempts=1)
    spent = SharedBudget(Budget(attempts=2))

    recovered = calls(OVERLOADED, DONE, config=quick(watcher=events.append))
    refusals = [calls(OVERLOADED, config=config) for _ in range(20)]
    within, _, refused = (calls(DONE, config=quick(budget=spent)) for _ in range(3))

    assert recovered == (2, "done")
    assert [event.succeeded for event in events[:2] if isinstance(event, OperationEnded)] == [True]
    assert type(refusals[-1][1]) is CircuitOpen
    assert refusals[-1][0] == 0
    assert within == (1, "done")
    assert (refused[0], type(refused[1])) == (0, BudgetExceeded)


def test_a_tool_with_its_own_error_function_can_use_ours() -> None:
    weather = tool_call("weather", json.dumps({"city": "Oslo"}))

    with script(weather, DONE) as server:
        answer = run(server, error=tool_error)
        sent = json.dumps(server.requests[-1])

    assert answer == "done"
    assert "tool.failed" in sent
    assert SECRET not in sent


def test_input_that_is_too_long_is_shortened_once() -> None:
    body = {
        "error": {"message": "too long", "code": "context_length_exceeded", "type": "invalid_request_error"}
    }

    def shrink(items: list[Any]) -> list[Any]:
        return [{**items[0], "content": "short"}]

    with script((400, body), DONE) as server:
        answer = run(server, quick(shrink=shrink))
        sent = [request["messages"][-1]["content"] for request in server.requests]

    assert (answer, sent) == ("done", ["hello", "short"])


def test_a_tool_call_that_failed_twice_in_the_same_way_is_not_made_again() -> None:
    call = {"type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
    weather = [completion("tool_calls", tool_calls=[{**call, "id": f"t-{number}"}]) for number in range(3)]
    reports: list[Any] = []

    with script(*weather, DONE) as server:
        answer = run(server, quick(on_tool_error=reports.append))
        results = [message for message in server.requests[-1]["messages"] if message["role"] == "tool"]

    assert answer == "done"
    assert len(reports) == 2
    assert [json.loads(result["content"])["kind"] for result in results] == ["tool.failed"] * 3
    assert "was not made again" in results[-1]["content"]


def test_what_a_failed_run_had_is_a_partial_outcome() -> None:
    weather = tool_call("weather", json.dumps({"city": "Oslo"}))

    _, failure = calls(weather, OVERLOADED, config=quick())
    _, at_once = calls(NO_KEY, config=quick())
    partial, failed = outcome(failure), outcome(at_once)

    assert (partial.status, failed.status) == ("partial", "failed")
    assert partial.name == "a"
    assert [finding["tool"] for finding in partial.findings] == ["weather"]
    assert [row.kind for row in partial.attempts] == ["provider.overloaded"] * 3
    assert "tool.failed" not in json.dumps(partial.report.to_dict() if partial.report else {})


def test_the_run_data_of_the_sdks_own_exceptions_is_read_as_well() -> None:
    said = {
        "content": "I look it up.",
        "tool_calls": tool_call("weather", '{"city": "Oslo"}')[1]["choices"][0]["message"]["tool_calls"],
    }

    with script(completion("tool_calls", **said)) as server:

        @agents.function_tool
        def weather(city: str) -> str:
            return "rain"

        async def ask() -> None:
            async with sdk.AsyncOpenAI(api_key="k", base_url=server.url) as client:
                model = agents.OpenAIChatCompletionsModel(model="m", openai_client=client)
                agent = agents.Agent(name="a", model=model, tools=[weather])
                await agents.Runner.run(agent, "hello", max_turns=1, run_config=quick())

        with pytest.raises(agents.MaxTurnsExceeded) as caught:
            asyncio.run(ask())

    partial = outcome(caught.value)
    assert partial.status == "partial"
    assert partial.report is not None
    assert partial.report.kind == "limit.turn_limit"
    assert partial.findings == ("I look it up.", {"tool": "weather", "result": "rain"})
