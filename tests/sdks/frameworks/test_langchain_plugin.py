"""LangChain's middleware and the copies of chat models, beside what tests/sdks/plugins shows of every framework."""

import json
from typing import Any

import pytest

from failwell import describe
from failwell.calls import Guard
from failwell.integrations.langchain import reliability, reliable_model
from failwell.testing import FakeClock
from tests.sdks.frameworks.replies import NO_QUOTA, OVERLOADED, completion, script, tool_call

agents: Any = pytest.importorskip("langchain.agents", reason="`make test-sdks` runs it with langchain")
models: Any = pytest.importorskip("langchain_openai", reason="`make test-sdks` runs it with langchain-openai")
types: Any = pytest.importorskip("langgraph.types")
memory: Any = pytest.importorskip("langgraph.checkpoint.memory")

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]
SECRET = "the-text-nobody-may-see"
QUESTION = {"messages": [("user", "hello")]}


def a_model(url: str, **options: Any) -> Any:
    return models.ChatOpenAI(model="gpt-4o-mini", base_url=url, api_key="key", **options)


def test_a_copy_of_a_chat_model_repeats_and_the_model_stays_as_it_was() -> None:
    clock = FakeClock()
    with script(OVERLOADED, OVERLOADED, completion(content="hello")) as server:
        model = a_model(server.url)
        copy = reliable_model(model, clock=clock, jitter=lambda: 0.5)
        answer = copy.invoke("hi").content

    assert (answer, clock.slept, len(server.requests)) == ("hello", [1.0, 2.0], 3)
    assert type(copy).__name__ == "ChatOpenAI"
    assert isinstance(copy, models.ChatOpenAI)
    assert (model.root_client.max_retries, copy.root_client.max_retries) == (2, 0)
    assert type(model) is models.ChatOpenAI


def test_what_is_no_chat_model_is_refused_with_what_to_do() -> None:
    with pytest.raises(TypeError, match="bind tools and settings after"):
        reliable_model(a_model("http://127.0.0.1:1").bind(stop=["."]))


def test_a_guard_counts_by_the_provider_and_a_second_call_is_refused() -> None:
    clock = FakeClock()
    guard = Guard(clock=clock)
    with script(NO_QUOTA) as server:
        agent = agents.create_agent(
            a_model(server.url), middleware=[reliability(guard=guard, account="a", clock=clock)]
        )
        kinds: list[str] = []
        for _ in range(2):
            with pytest.raises(Exception) as caught:
                agent.invoke(QUESTION)
            kinds.append(describe(caught.value).kind)

    assert kinds == ["provider.quota_exhausted", "provider.unavailable"]
    assert len(server.requests) == 1
    assert guard.states()[0].scope[:2] == ("openai", "a")


def test_a_tool_call_that_fails_alike_is_not_made_a_third_time_and_other_arguments_are() -> None:
    cities: list[str] = []

    def weather(city: str) -> str:
        """The weather in a city."""
        cities.append(city)
        raise PermissionError(13, SECRET)

    oslo, bergen = (tool_call("weather", json.dumps({"city": city})) for city in ("Oslo", "Bergen"))
    with script(oslo, oslo, oslo, bergen, completion(content="done")) as server:
        agent = agents.create_agent(a_model(server.url), [weather], middleware=[reliability()])
        answer = agent.invoke(QUESTION)["messages"][-1].content

    results = [message["content"] for message in server.requests[-1]["messages"] if message["role"] == "tool"]
    assert (answer, cities) == ("done", ["Oslo", "Oslo", "Bergen"])
    assert [json.loads(result)["kind"] for result in results] == ["tool.failed"] * 4
    assert "was not made again" in results[2]
    assert SECRET not in json.dumps(server.requests)


def test_an_interrupt_in_a_tool_stops_the_graph_and_is_answered() -> None:
    def ask(question: str) -> str:
        """Ask a person."""
        return types.interrupt(question)

    config = {"configurable": {"thread_id": "1"}}
    with script(tool_call("ask", '{"question": "may I?"}'), completion(content="done")) as server:
        agent = agents.create_agent(
            a_model(server.url), [ask], middleware=[reliability()], checkpointer=memory.InMemorySaver()
        )
        stopped = agent.invoke(QUESTION, config)
        answer = agent.invoke(types.Command(resume="yes"), config)

    assert stopped["__interrupt__"][0].value == "may I?"
    assert answer["messages"][-1].content == "done"
    assert server.requests[-1]["messages"][-1]["content"] == "yes"
