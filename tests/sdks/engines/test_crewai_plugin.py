"""CrewAI under one retry authority: agents alone, tools of both kinds, results that are not cached, copies of a crew."""

import asyncio
import json
import os
from typing import Any

import pytest

from failwell import describe
from failwell.integrations.crewai import reliability
from failwell.testing import FakeClock
from tests.sdks.frameworks.replies import NO_KEY, OVERLOADED, completion, script, tool_call

os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false"}
crewai: Any = pytest.importorskip("crewai", reason="`make test-sdks` runs it with crewai")
tools: Any = pytest.importorskip("crewai.tools")

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]
SECRET = "the-text-nobody-may-see"


def a_model(url: str) -> Any:
    return crewai.LLM(model="openai/gpt-4o-mini", base_url=url, api_key="key")


def a_crew(url: str, *own_tools: Any) -> Any:
    agent = crewai.Agent(role="r", goal="g", backstory="b", llm=a_model(url), tools=list(own_tools))
    task = crewai.Task(description="d", expected_output="e", agent=agent)
    return crewai.Crew(agents=[agent], tasks=[task])


class Weather(tools.BaseTool):
    """A tool with state of its own."""

    name: str = "weather"
    description: str = "The weather in a city"
    cities: list[str] = []

    def _run(self, city: str) -> str:
        self.cities.append(city)
        if len(self.cities) == 1:
            raise PermissionError(13, SECRET)
        return "rain"


def test_a_tool_that_failed_is_called_again_because_a_failure_is_not_cached() -> None:
    tool = Weather()
    call = tool_call("weather", '{"city": "Oslo"}')
    with script(call, call, completion(content="done")) as server:
        output = reliability(a_crew(server.url, tool)).kickoff()

    results = [each["content"] for each in server.requests[-1]["messages"] if each["role"] == "tool"]
    assert (output.raw, tool.cities) == ("done", ["Oslo", "Oslo"])
    assert (json.loads(results[0])["kind"], results[1]) == ("tool.failed", "rain")
    assert [each.failure.reason.value for each in output.tasks_output[0].tool_failures] == ["exception"]
    assert SECRET not in json.dumps(server.requests)
    assert type(tool).__mro__[1] is Weather


def test_a_copy_of_a_crew_and_one_agent_are_repeated_alike() -> None:
    clock = FakeClock()
    with script(OVERLOADED, completion(content="copy"), OVERLOADED, completion(content="agent")) as server:
        crew = reliability(a_crew(server.url), clock=clock, jitter=lambda: 0.5)
        answer = crew.copy().kickoff().raw
        agent = crewai.Agent(role="r", goal="g", backstory="b", llm=a_model(server.url))
        alone = reliability(agent, clock=clock, jitter=lambda: 0.5).llm.call("hi")

    assert (answer, alone, clock.slept) == ("copy", "agent", [1.0, 1.0])
    assert len(server.requests) == 4


def test_the_model_itself_is_not_changed_and_an_async_call_is_repeated_once_for_each_failure() -> None:
    clock = FakeClock()
    with script(OVERLOADED, completion(content="hello")) as server:
        crew = a_crew(server.url)
        model = crew.agents[0].llm
        copy = reliability(crew, clock=clock, jitter=lambda: 0.5).agents[0].llm
        answer = asyncio.run(copy.acall("hi"))

    assert (answer, clock.slept) == ("hello", [1.0])
    assert (model.max_retries, copy.max_retries, type(model).__name__) == (2, 0, type(copy).__name__)


def test_a_second_plugin_replaces_the_first() -> None:
    with script(NO_KEY) as server:
        crew = reliability(reliability(a_crew(server.url)))
        with pytest.raises(Exception) as caught:
            crew.kickoff()

    report = describe(caught.value)
    assert (report.kind, len(report.attempts), len(server.requests)) == ("provider.auth", 1, 1)


def test_what_is_no_crew_is_refused() -> None:
    with pytest.raises(TypeError, match="takes a `Crew` or an `Agent`"):
        reliability("crew")
