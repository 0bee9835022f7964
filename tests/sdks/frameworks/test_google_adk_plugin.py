"""ADK's plugin: sub-agents, one agent in two runners, and tools that fail alike."""

import asyncio
import json
from typing import Any

import pytest

from failwell.integrations.google_adk import reliability
from failwell.testing import FakeClock
from tests.sdks.frameworks.replies import Reply, script

agents: Any = pytest.importorskip("google.adk.agents", reason="`make test-sdks` runs it with google-adk")
models: Any = pytest.importorskip("google.adk.models.google_llm")
runners: Any = pytest.importorskip("google.adk.runners")
genai: Any = pytest.importorskip("google.genai")

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]
SECRET = "the-text-nobody-may-see"
OVERLOADED: Reply = (503, {"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}})


def reply(**part: Any) -> Reply:
    content = {"role": "model", "parts": [part]}
    return 200, {"candidates": [{"index": 0, "content": content, "finishReason": "STOP"}]}


def call(name: str, **arguments: Any) -> Reply:
    return reply(functionCall={"name": name, "args": arguments})


def a_model(url: str) -> Any:
    retries = genai.types.HttpRetryOptions(attempts=4, initial_delay=0.01)
    client = genai.Client(api_key="key", http_options={"base_url": url, "retry_options": retries})
    return models.Gemini(model="gemini-2.5-flash", client=client)


def ask(agent: Any, plugin: Any) -> str:
    async def run() -> str:
        runner = runners.InMemoryRunner(agent, app_name="lab", plugins=[plugin])
        session = await runner.session_service.create_session(app_name="lab", user_id="user")
        question = genai.types.Content(role="user", parts=[genai.types.Part(text="hello")])
        events = [
            event
            async for event in runner.run_async(user_id="user", session_id=session.id, new_message=question)
        ]
        return events[-1].content.parts[0].text

    return asyncio.run(run())


def test_a_sub_agent_is_repeated_too_and_the_client_repeats_nothing() -> None:
    clock = FakeClock()
    replies = (call("transfer_to_agent", agent_name="child"), OVERLOADED, OVERLOADED, reply(text="hello"))
    with script(*replies) as server:
        child = agents.LlmAgent(name="child", description="answers")
        agent = agents.LlmAgent(name="parent", model=a_model(server.url), sub_agents=[child])
        answer = ask(agent, reliability(clock=clock, jitter=lambda: 0.5))

    assert (answer, clock.slept, len(server.requests)) == ("hello", [1.0, 2.0], 4)


def test_two_runners_with_one_agent_do_not_multiply_their_calls() -> None:
    first, second = FakeClock(), FakeClock()
    with script(OVERLOADED) as server:
        agent = agents.LlmAgent(name="agent", model=a_model(server.url))
        for clock in (first, second, first):
            with pytest.raises(Exception, match="503"):
                ask(agent, reliability(clock=clock, jitter=lambda: 0.5))

    assert len(server.requests) == 9
    assert (first.slept, second.slept) == ([1.0, 2.0, 1.0, 2.0], [1.0, 2.0])


def test_a_tool_call_that_fails_alike_is_not_made_a_third_time() -> None:
    cities: list[str] = []

    def weather(city: str) -> str:
        """The weather in a city."""
        cities.append(city)
        raise PermissionError(13, SECRET)

    oslo = call("weather", city="Oslo")
    with script(oslo, oslo, oslo, reply(text="done")) as server:
        agent = agents.LlmAgent(name="agent", model=a_model(server.url), tools=[weather])
        answer = ask(agent, reliability())

    assert (answer, cities) == ("done", ["Oslo", "Oslo"])
    assert "was not made again" in json.dumps(server.requests[-1])
    assert SECRET not in json.dumps(server.requests)
