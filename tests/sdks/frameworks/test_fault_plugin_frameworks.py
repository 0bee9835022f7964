"""`pytest --failwell-faults` under OpenAI Agents and LangChain: their tests are not changed, and the table tells."""

from pathlib import Path

import pytest

from tests.testing.fault_runs import run_under_faults

pytest.importorskip("agents", reason="`make test-sdks` runs it with openai-agents")
pytest.importorskip("langchain", reason="`make test-sdks` runs it with langchain")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(110)]

SOURCE = '''
import asyncio

import agents
import openai
from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

agents.set_tracing_disabled(True)


def run_agent(retries):
    async def run():
        async with openai.AsyncOpenAI(api_key="k", max_retries=retries, timeout=0.2) as client:
            model = agents.OpenAIChatCompletionsModel("gpt", client)
            return (await agents.Runner.run(agents.Agent(name="agent", model=model), "Hello")).final_output

    return asyncio.run(run())


def test_openai_agents_with_retries():
    assert run_agent(2) == "Hello from the lab."


def test_openai_agents_without_retries():
    assert run_agent(0) == "Hello from the lab."


def test_openai_agents_over_responses():
    async def run():
        async with openai.AsyncOpenAI(api_key="k", max_retries=2, timeout=0.2) as client:
            model = agents.OpenAIResponsesModel("gpt", client)
            result = agents.Runner.run_streamed(agents.Agent(name="agent", model=model), "Hello")
            async for _ in result.stream_events():
                pass
            return result.final_output

    assert asyncio.run(run()) == "Hello from the lab."


class Model(BaseChatModel):
    """A chat model of LangChain over the SDK."""

    retries: int

    @property
    def _llm_type(self):
        return "lab"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        sent = [{"role": "user", "content": message.content} for message in messages]
        with openai.OpenAI(api_key="k", max_retries=self.retries, timeout=0.2) as client:
            reply = client.chat.completions.create(model="gpt", messages=sent)
        message = AIMessage(reply.choices[0].message.content)
        return ChatResult(generations=[ChatGeneration(message=message)])


def test_langchain_with_retries():
    state = create_agent(Model(retries=2)).invoke({"messages": [{"role": "user", "content": "Hello"}]})
    assert state["messages"][-1].content == "Hello from the lab."


def test_langchain_without_retries():
    create_agent(Model(retries=0)).invoke({"messages": [{"role": "user", "content": "Hello"}]})
'''


def test_agents_of_both_frameworks_are_judged_without_a_change(tmp_path: Path) -> None:
    done = run_under_faults(
        tmp_path, SOURCE, "--failwell-faults=rate_limit:2,overflow,stall", "--failwell-faults-report=report.json",
        "--failwell-faults-delay=0.01", "--failwell-faults-stall=1", "-W", "default",
    )  # fmt: skip

    outcomes = done.outcomes()
    survived = {key for key, outcome in outcomes.items() if outcome == "survived"}
    assert survived == {
        ("test_openai_agents_with_retries", "rate_limit:2"),
        ("test_openai_agents_with_retries", "stall"),
        ("test_openai_agents_over_responses", "rate_limit:2"),
        ("test_langchain_with_retries", "rate_limit:2"),
        ("test_langchain_with_retries", "stall"),
    }, done.output
    assert set(outcomes.values()) == {"survived", "failed"}
    assert done.row("test_langchain_without_retries", "overflow")["kind"] == "provider.context_too_long"
    assert done.row("test_openai_agents_with_retries", "rate_limit:2")["calls"] == 3
    assert done.addresses == []
