"""Runs agents that people have: those of Pydantic AI and OpenAI Agents, and graphs of LangGraph and LangChain.

An entry point of the group `failwell.own_agents`, named after the top-level module of the agent's class, runs it: an async
function that takes the agent and an `AgentCall` and returns the `AgentAnswer`. The plugin of the framework does the error
work where one can be added from outside. A graph that is compiled keeps its own retries; put the plugin into it where it is
built. Calls of models and tools are watched through the hooks of each framework, so that limits, budgets and the log are
those of a turn.
"""

from collections.abc import Callable, Mapping
from dataclasses import field
from json import dumps
from pathlib import Path
from typing import Any

from failwell.agents.tools.function import load_object
from failwell.agents.turn import TurnEvent, TurnLimit, TurnTimeout
from failwell.calls.attempt_loop import AttemptEvent
from failwell.calls.clock import SYSTEM_CLOCK, Clock
from failwell.calls.cost import Prices
from failwell.calls.shared_budget import BudgetExceeded, SharedBudget
from failwell.errors.faults import Validation
from failwell.errors.foreign_objects import safe_getattr
from failwell.errors.frozen import frozen

GROUP = "failwell.own_agents"
"""The entry points that run agents of frameworks."""


@frozen
class AgentAnswer:
    """What an agent answered, and what it used."""

    text: str
    tokens: Mapping[str, int] = field(default_factory=dict[str, int])
    cost: int | None = None
    """Micro-cents, or `None` where a price is unknown."""


class AgentCall:
    """One call of somebody's agent: what it may use, and what it used so far.

    Args:
        prompt: What it is asked.
        most_calls: Model calls at most.
        prices: What models cost.
        longest: Seconds after which no further model call is made.
        budget: What may be spent; looked at before each model call.
        clock: Tells the time.
        observe: Called with each tool call.
        watcher: Called with each failed attempt.
    """

    def __init__(
        self,
        prompt: str,
        *,
        most_calls: int,
        prices: Prices,
        longest: float | None = None,
        clock: Clock = SYSTEM_CLOCK,
        budget: SharedBudget | None = None,
        observe: Callable[[TurnEvent], object] | None = None,
        watcher: Callable[[AttemptEvent], object] | None = None,
    ) -> None:
        self.prompt = prompt
        self.most_calls = most_calls
        self.watcher = watcher
        self._prices = prices
        self._longest = longest
        self._clock = clock
        self._began = clock.monotonic()
        self._budget = budget
        self._observe = observe
        self._calls = 0
        self.tokens: dict[str, int] = {}
        self.cost: int | None = 0
        """Micro-cents, or `None` once a call had no known price."""

    def begin_model(self) -> None:
        """A model is about to be called.

        Raises:
            TurnLimit: it was called as often as it may be.
            TurnTimeout: the agent took longer than it may.
            BudgetExceeded: what may be spent is spent.
        """
        if self._calls >= self.most_calls:
            raise TurnLimit(calls=self.most_calls)
        if self._longest is not None and self._clock.monotonic() - self._began >= self._longest:
            raise TurnTimeout(seconds=self._longest)
        refusal = None if self._budget is None else self._budget.take()
        if refusal is not None:
            raise BudgetExceeded(why=refusal)
        self._calls += 1

    def end_model(self, provider: str, model: str, counts: Mapping[str, int]) -> None:
        """A model answered."""
        if not counts:
            return
        for name, count in counts.items():
            self.tokens[name] = self.tokens.get(name, 0) + count
        price = self._prices.cost(provider, model, counts)
        self.cost = None if self.cost is None or price is None else self.cost + price
        if self._budget is not None:
            self._budget.settle(0, price or 0)

    def end_tool(self, name: str, kind: str | None) -> None:
        """A tool was called; `kind` is that of its failure."""
        if self._observe is not None:
            self._observe(TurnEvent(type="tool:called", data={"tool": name[:100], "kind": kind}))

    def answer(self, output: Any) -> AgentAnswer:
        """The answer, with what all calls used."""
        return AgentAnswer(text=_as_text(output), tokens=dict(self.tokens), cost=self.cost)


async def run_own_agent(target: str, folder: Path, call: AgentCall) -> AgentAnswer:
    """Run the agent `module:object`.

    Raises:
        Validation: there is no such object, or it is no agent that is known.
        TurnLimit: it did not come to an answer within its calls.
        BudgetExceeded: what may be spent was spent before it came to an answer.
        Exception: what the agent raised.
    """
    from importlib.metadata import entry_points

    agent = load_object(target, folder, "agent")
    homes = {cls.__module__.partition(".")[0] for cls in type(agent).__mro__}
    for point in entry_points(group=GROUP):
        if point.name in homes:
            return await point.load()(agent, call)
    raise Validation(
        kind="validation.config_invalid",
        message=f"`{target}` is {type(agent).__name__}, and not an agent of Pydantic AI or OpenAI Agents or a compiled graph",
        caller_facing=True,
    )


def _as_text(output: Any) -> str:
    """The answer as text: structured output as JSON."""
    if isinstance(output, str):
        return output
    dump = safe_getattr(output, "model_dump")
    value = dump(mode="json") if callable(dump) else output
    return dumps(value, ensure_ascii=False, default=str)
