"""LangGraph runs nodes again and waits as failwell says: plain and async graphs, many nodes at once, failures in the state."""

import asyncio
import operator
from typing import Annotated, Any, TypedDict

import pytest

from failwell import describe
from failwell.calls import Guard
from failwell.calls.attempt_loop import Parked
from failwell.errors.context import ledger_of
from failwell.integrations.langgraph import reliability, tool_errors
from failwell.testing import FakeClock
from failwell.testing.builders import make_fault
from tests.calls.acting import Scripted, overloaded, rate_limited, told

graphs: Any = pytest.importorskip("langgraph.graph", reason="langgraph is in requirements/sdks/newest.txt")
prebuilt: Any = pytest.importorskip("langgraph.prebuilt")
retries: Any = pytest.importorskip("langgraph.pregel._retry")
types: Any = pytest.importorskip("langgraph.types")

SECRET = "the-text-nobody-may-see"


class State(TypedDict, total=False):
    """The state of a graph."""

    texts: Annotated[list[str], operator.add]
    failure: dict[str, Any]


class Time:
    """The modules `time` and `asyncio` as LangGraph uses them, whose sleeps are those of a clock."""

    def __init__(self, module: Any, sleep: Any) -> None:
        self.sleep = sleep
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    clock = FakeClock()
    monkeypatch.setattr(retries, "time", Time(retries.time, clock.sleep))
    monkeypatch.setattr(retries, "asyncio", Time(retries.asyncio, clock.asleep))
    return clock


def graph(*models: Scripted, on_loop: bool = False, **options: Any) -> Any:
    """A graph with a node for each model, all side by side."""
    builder = graphs.StateGraph(State)
    builder.set_node_defaults(**reliability(jitter=lambda: 0.5, **options))

    def plain(model: Scripted) -> Any:
        def node(_state: State) -> State:
            return {"texts": [model()]}

        return node

    def awaited(model: Scripted) -> Any:
        async def node(_state: State) -> State:
            return {"texts": [await model.on_loop()]}

        return node

    for number, model in enumerate(models):
        builder.add_node(f"n{number}", awaited(model) if on_loop else plain(model))
        builder.add_edge(graphs.START, f"n{number}")
        builder.add_edge(f"n{number}", graphs.END)
    builder.add_node("after", plain(Scripted("after")))
    builder.add_edge("after", graphs.END)
    return builder.compile()


def run(compiled: Any, *, on_loop: bool) -> Any:
    question: State = {"texts": []}
    return asyncio.run(compiled.ainvoke(question)) if on_loop else compiled.invoke(question)


@pytest.mark.parametrize("on_loop", [False, True], ids=["plain", "async"])
def test_a_delay_of_the_server_is_kept_exactly_and_the_kind_says_how_often(
    clock: FakeClock, on_loop: bool
) -> None:
    limited = Scripted(rate_limited(not_before=told(7.25)), rate_limited(not_before=told(3.5)), "done")
    down = Scripted(*(overloaded() for _ in range(5)))

    assert run(graph(limited, on_loop=on_loop), on_loop=on_loop)["texts"] == ["done"]
    waits, clock.slept = clock.slept, []
    with pytest.raises(type(overloaded())) as caught:
        run(graph(down, on_loop=on_loop), on_loop=on_loop)

    assert waits == [7.25, 3.5]
    assert (down.count, clock.slept) == (3, [1.0, 2.0])
    ledger = ledger_of(caught.value)
    assert ledger is not None
    assert [row.layer for row in ledger.attempts] == ["langgraph node"] * 3


@pytest.mark.parametrize("on_loop", [False, True], ids=["threads", "tasks"])
def test_nodes_side_by_side_are_counted_apart(clock: FakeClock, on_loop: bool) -> None:
    models = [Scripted(overloaded(), overloaded(), f"answer {number}") for number in range(4)]

    answer = run(graph(*models, on_loop=on_loop), on_loop=on_loop)

    assert sorted(answer["texts"]) == [f"answer {number}" for number in range(4)]
    assert [model.count for model in models] == [3] * 4


def test_a_wait_that_is_too_long_is_parked_and_a_wrong_key_is_not_repeated(clock: FakeClock) -> None:
    long, wrong = Scripted(rate_limited(not_before=told(3600.0))), Scripted(make_fault(kind="provider.auth"))

    with pytest.raises(Parked):
        run(graph(long), on_loop=False)
    with pytest.raises(type(make_fault())):
        run(graph(wrong), on_loop=False)

    assert (long.count, wrong.count, clock.slept) == (1, 1, [])


def test_a_failure_goes_into_the_state_without_its_text_and_another_node_runs(clock: FakeClock) -> None:
    broken = Scripted(PermissionError(13, SECRET), PermissionError(13, SECRET))

    ended = run(graph(broken, error_key="failure"), on_loop=False)
    went_on = run(graph(broken, error_key="failure", go_to="after"), on_loop=False)

    kind = describe(PermissionError(13, SECRET), origin="call").kind
    assert (ended["failure"]["kind"], ended["texts"]) == (kind, [])
    assert (went_on["failure"]["kind"], went_on["texts"]) == (kind, ["after"])
    assert SECRET not in str(ended) + str(went_on)


def test_an_interrupt_is_no_failure(clock: FakeClock) -> None:
    def ask(_state: State) -> State:
        return {"texts": [types.interrupt("how?")]}

    builder = graphs.StateGraph(State)
    builder.set_node_defaults(**reliability(error_key="failure"))
    builder.add_node("ask", ask)
    builder.add_edge(graphs.START, "ask")

    answer = run(builder.compile(), on_loop=False)

    assert "failure" not in answer
    assert answer["__interrupt__"][0].value == "how?"


def test_a_tool_node_gives_the_model_a_typed_result() -> None:
    messages: Any = pytest.importorskip("langchain_core.messages")

    def weather(city: str) -> str:
        """The weather in a city."""
        raise PermissionError(13, SECRET)

    builder = graphs.StateGraph(graphs.MessagesState)
    call = messages.AIMessage("", tool_calls=[{"name": "weather", "args": {"city": "Oslo"}, "id": "t-1"}])
    builder.add_node("tools", prebuilt.ToolNode([weather], handle_tool_errors=tool_errors()))
    builder.add_edge(graphs.START, "tools")

    answer = builder.compile().invoke({"messages": [call]})["messages"][-1]

    assert answer.status == "error"
    assert "tool.failed" in answer.content
    assert SECRET not in answer.content


def test_a_guard_that_could_not_stop_a_node_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot keep `guard`"):
        reliability(guard=Guard())
