"""An agent of OpenAI Agents, run as a step would run it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from failwell import describe
from failwell.agents.own_agents import AgentCall, run_own_agent
from failwell.calls.cost import Prices
from tests.sdks.frameworks.replies import NO_KEY, Reply, completion, script, tool_call

agents: Any = pytest.importorskip("agents", reason="`make test-sdks` runs it with openai-agents")
SOURCE = """\
from agents import Agent, OpenAIChatCompletionsModel, function_tool
from openai import AsyncOpenAI

@function_tool
def look() -> str:
    return "nothing"

client = AsyncOpenAI(base_url="URL", api_key="k")
helper = Agent(name="helper", model=OpenAIChatCompletionsModel("m", client), tools=[look])
"""
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]


def run(folder: Path, module: str, *replies: Reply) -> tuple[str, int]:
    """The answer and its tokens, or the kind of the failure; and the calls on the wire."""
    agents.set_tracing_disabled(True)
    with script(*replies) as server:
        (folder / f"{module}.py").write_text(SOURCE.replace("URL", server.url))
        call = AgentCall(prompt="go", most_calls=3, prices=Prices(public=False))
        try:
            answer = asyncio.run(run_own_agent(f"{module}:helper", folder, call))
        except Exception as error:
            outcome = describe(error, origin="call").kind
        else:
            outcome = f"{answer.text} {dict(answer.tokens)}"
        return outcome, len(server.requests)


def test_its_answer_and_its_tokens_are_those_of_the_step(tmp_path: Path) -> None:
    text, calls = run(tmp_path, "own_ok", completion(content="hi"))

    assert (text, calls) == ("hi {'input_tokens': 11, 'output_tokens': 16}", 1)


def test_its_failures_are_typed_and_not_repeated_by_the_sdk(tmp_path: Path) -> None:
    assert run(tmp_path, "own_refused", NO_KEY) == ("provider.auth", 1)


def test_an_endless_loop_ends_at_the_limit_of_the_step(tmp_path: Path) -> None:
    assert run(tmp_path, "own_loop", tool_call("look", "{}")) == ("limit.turn_limit", 3)
