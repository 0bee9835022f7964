"""Agents of four frameworks as steps: the same events, limits, budgets and errors, with the real libraries against the lab."""

import asyncio
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from failwell.adapters.describe import describe
from failwell.agents.own_agents import AgentAnswer, AgentCall, run_own_agent
from failwell.agents.turn import TurnEvent, TurnLimit, TurnTimeout
from failwell.calls.budget import Budget
from failwell.calls.clock import SystemClock
from failwell.calls.cost import Price, Prices
from failwell.calls.shared_budget import BudgetExceeded, SharedBudget
from failwell.testing import lab
from failwell.testing.laboratory.lab_reply import LabTurn
from tests.installed import need

need("pydantic_ai")

TOOL = '''
CLOSE = {"Connection": "close"}  # No connection outlives the event loop of a test.


def look(place: str) -> str:
    """Look somewhere."""
    if place == "nowhere":
        raise ValueError("there is nothing")
    return "a blue house"

'''
SOURCES = {
    "pydantic_ai": """
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from openai import AsyncOpenAI

client = AsyncOpenAI(base_url="URL", api_key="k", default_headers=CLOSE)
helper = Agent(OpenAIChatModel("gpt-4o", provider=OpenAIProvider(openai_client=client)), tools=[look])
""",
    "agents": """
import agents
from openai import AsyncOpenAI

agents.set_tracing_disabled(True)
model = agents.OpenAIChatCompletionsModel("gpt-4o", AsyncOpenAI(base_url="URL", api_key="k", default_headers=CLOSE))
helper = agents.Agent(name="helper", model=model, tools=[agents.function_tool(look)])
""",
    "langchain": """
from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from failwell.integrations.langchain import reliability

model = ChatOpenAI(model="gpt-4o", base_url="URL", api_key="k", max_retries=0, default_headers=CLOSE)
helper = create_agent(model, [tool(look)], middleware=[reliability()])
""",
    "langgraph": """
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

tools = [tool(look)]
model = ChatOpenAI(model="gpt-4o", base_url="URL", api_key="k", max_retries=0, default_headers=CLOSE).bind_tools(tools)


async def ask(state: MessagesState) -> dict:
    return {"messages": [await model.ainvoke(state["messages"])]}


graph = StateGraph(MessagesState)
graph.add_node("ask", ask)
graph.add_node("tools", ToolNode(tools, handle_tool_errors=True))
graph.add_edge(START, "ask")
graph.add_conditional_edges("ask", tools_condition)
graph.add_edge("tools", "ask")
helper = graph.compile()
""",
}
FRAMEWORKS = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(
            find_spec(name) is None or (name.startswith("lang") and find_spec("langchain_openai") is None),
            reason=f"{name} is not installed here",
        ),
    )
    for name in SOURCES
]
LOOK = LabTurn(calls=(("look", {"place": "outside"}),))
PRICES = Prices({"gpt-4o": Price.dollars(100_000, 100_000), "openai:gpt-4o": Price.dollars(100_000, 100_000)})


class Watched:
    """One call of an agent, and what was seen of it."""

    def __init__(self, folder: Path, framework: str, url: str) -> None:
        self._folder = folder
        # Modules are loaded once a process, so every agent has a module of its own.
        self._module = f"own_{framework}_{abs(hash((url, str(folder))))}"
        (folder / f"{self._module}.py").write_text(TOOL + SOURCES[framework].replace("URL", url))
        self.tools: list[tuple[str, str | None]] = []
        self.call: AgentCall | None = None

    def run(self, *, most_calls: int = 5, budget: SharedBudget | None = None) -> AgentAnswer:
        self.call = AgentCall(
            "Which colour?", most_calls=most_calls, prices=PRICES, budget=budget, observe=self._note
        )
        return asyncio.run(run_own_agent(f"{self._module}:helper", self._folder, self.call))

    def _note(self, event: TurnEvent) -> None:
        self.tools.append((event.data["tool"], event.data["kind"]))


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_an_answer_its_tokens_and_its_tools_are_seen(tmp_path: Path, framework: str) -> None:
    nowhere = LabTurn(calls=(("look", {"place": "nowhere"}),))
    with lab() as fake:
        fake.script("openai", LOOK, nowhere, LabTurn(text="blue"))
        watched = Watched(tmp_path, framework, fake.url("openai", "ok"))
        answer = watched.run()

    [first, second] = watched.tools
    assert answer.text == "blue"
    assert first == ("look", None)
    assert (second[0], second[1] is not None) == ("look", True)
    assert answer.tokens["output_tokens"] > 0
    assert answer.cost


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_an_endless_agent_ends_at_the_same_number_of_calls(tmp_path: Path, framework: str) -> None:
    with lab() as fake:
        fake.script("openai", *[LOOK] * 20)
        watched = Watched(tmp_path, framework, fake.url("openai", "ok"))
        with pytest.raises(TurnLimit):
            watched.run(most_calls=3)
        calls = fake.calls("openai", "ok")

    assert calls == 3
    assert watched.call is not None
    assert watched.call.tokens


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_an_agent_makes_no_call_beyond_the_budget(tmp_path: Path, framework: str) -> None:
    budget = SharedBudget(Budget(usd=0.01))
    with lab() as fake:
        fake.script("openai", *[LOOK] * 20)
        watched = Watched(tmp_path, framework, fake.url("openai", "ok"))
        with pytest.raises(BudgetExceeded):
            watched.run(budget=budget)
        calls = fake.calls("openai", "ok")

    assert calls == 1
    assert budget.spent.cost > 0


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_refused_key_is_the_same_failure_after_one_call(tmp_path: Path, framework: str) -> None:
    with lab() as fake:
        watched = Watched(tmp_path, framework, fake.url("openai", "bad_key"))
        with pytest.raises(Exception, match=r".") as caught:
            watched.run()
        calls = fake.calls("openai", "bad_key")

    assert (describe(caught.value, origin="call").kind, calls) == ("provider.auth", 1)


def test_an_agent_that_takes_too_long_makes_no_further_call(tmp_path: Path) -> None:
    class Clock(SystemClock):
        seconds = 0.0

        def monotonic(self) -> float:
            return self.seconds

    clock = Clock()
    call = AgentCall("p", most_calls=5, prices=PRICES, longest=2.0, clock=clock)

    call.begin_model()
    clock.seconds = 2.0

    with pytest.raises(TurnTimeout):
        call.begin_model()


def test_what_is_no_agent_is_refused(tmp_path: Path) -> None:
    (tmp_path / "own_number.py").write_text("helper: Any = 5\n".replace(": Any", ""))
    call: Any = AgentCall("p", most_calls=1, prices=PRICES)

    with pytest.raises(Exception, match="is int, and not an agent"):
        asyncio.run(run_own_agent("own_number:helper", tmp_path, call))
