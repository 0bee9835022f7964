"""LangGraph runs a node again only for failures that a repeat can cure.

python examples/bridges/with_langgraph.py
"""

from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph  # pyright: ignore[reportMissingTypeStubs]
from langgraph.types import RetryPolicy

import failwell
from failwell.integrations.langgraph import retry_on


class State(TypedDict):
    """What the graph passes on."""

    question: str
    answer: str


class Model:
    """Stands for a provider: it fails as told, then answers."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.calls = 0

    def ask(self, state: State) -> dict[str, str]:
        """The one node of the graph."""
        self.calls += 1
        if self.failures:
            raise self.failures.pop(0)
        return {"answer": f"an answer to {state['question']!r}"}


def run(model: Model) -> dict[str, Any]:
    """Ask the model in a graph of one node."""
    policy = RetryPolicy(retry_on=retry_on, max_attempts=3, initial_interval=0.01, jitter=False)
    graph: Any = StateGraph(State)
    graph.add_node("ask", model.ask, retry_policy=policy)
    graph.add_edge(START, "ask")
    graph.add_edge("ask", END)
    return graph.compile().invoke({"question": "why?", "answer": ""})


def main() -> None:
    """One failure that goes away, and one that does not."""
    busy = Model(failwell.Fault(kind="provider.overloaded"))
    print(run(busy)["answer"], "after", busy.calls, "calls")

    locked = Model(failwell.Fault(kind="provider.auth"))
    try:
        run(locked)
    except failwell.Fault as error:
        print(failwell.describe(error).kind, "after", locked.calls, "call")


if __name__ == "__main__":
    main()
