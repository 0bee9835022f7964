"""Runs agents that people have: those of Pydantic AI and OpenAI Agents, and graphs of LangGraph and LangChain.

The plugin of the framework does the error work where one can be added from outside. A graph that is compiled keeps its own
retries; put the plugin into it where it is built. Calls of models and tools are watched through the hooks of each framework, so
that limits, budgets and the log are those of a turn.
"""

from collections.abc import Callable, Mapping
from dataclasses import field
from json import dumps
from pathlib import Path
from typing import Any, cast

from failwell.adapters.describe import describe
from failwell.agents.models import usage_of
from failwell.agents.tools.function import load_object
from failwell.agents.turn import TurnEvent, TurnLimit, TurnTimeout
from failwell.calls.attempt_loop import AttemptEvent
from failwell.calls.clock import SYSTEM_CLOCK, Clock
from failwell.calls.cost import Prices
from failwell.calls.shared_budget import BudgetExceeded, SharedBudget
from failwell.calls.suppress import OnRaise
from failwell.errors.faults import Validation
from failwell.errors.foreign_objects import safe_getattr
from failwell.errors.frozen import frozen
from failwell.errors.report import ErrorReport


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
    agent = load_object(target, folder, "agent")
    homes = {cls.__module__.partition(".")[0] for cls in type(agent).__mro__}
    if "pydantic_ai" in homes:
        return await _pydantic_ai(agent, call)
    if "agents" in homes:
        return await _openai_agents(agent, call)
    if "langgraph" in homes:
        return await _langgraph(agent, call)
    raise Validation(
        kind="validation.config_invalid",
        message=f"`{target}` is {type(agent).__name__}, and not an agent of Pydantic AI or OpenAI Agents or a compiled graph",
        caller_facing=True,
    )


async def _pydantic_ai(agent: Any, call: AgentCall) -> AgentAnswer:
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.usage import UsageLimits

    from failwell.integrations.pydantic_ai import reliability

    class Watch(AbstractCapability[Any]):
        """Counts the calls of one run."""

        async def wrap_model_request(self, ctx: Any, *, request_context: Any, handler: Any) -> Any:
            del ctx
            call.begin_model()
            response = await handler(request_context)
            call.end_model(response.provider_name or "", response.model_name or "", usage_of(response))
            return response

        async def wrap_tool_execute(
            self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any
        ) -> Any:
            del ctx, tool_def
            # Only noted here; the framework decides what becomes of it.
            with OnRaise(lambda error: watched.end_tool(call.tool_name, _kind(error))):
                result = await handler(args)
            watched.end_tool(call.tool_name, None)
            return result

    watched = call
    result = await agent.run(
        call.prompt,
        capabilities=[reliability(watcher=call.watcher) if call.watcher else reliability(), Watch()],
        # The calls are counted by us; its own limit must not be lower.
        usage_limits=UsageLimits(request_limit=None),
    )
    return call.answer(result.output)


async def _openai_agents(agent: Any, call: AgentCall) -> AgentAnswer:
    from failwell.errors.missing_extra import need
    from failwell.integrations.openai_agents import reliability

    agents: Any = need("agents")
    failed: list[str] = []

    class Watch(agents.RunHooks):
        """Counts the calls of one run."""

        async def on_llm_start(self, *_details: Any, **_more: Any) -> None:
            call.begin_model()

        async def on_llm_end(self, _context: Any, running: Any, response: Any, **_more: Any) -> None:
            model: Any = safe_getattr(running, "model")
            name = model if isinstance(model, str) else str(safe_getattr(model, "model") or "")
            call.end_model("openai", name, usage_of(response))

        async def on_tool_end(self, _context: Any, _agent: Any, tool: Any, *_rest: Any, **_more: Any) -> None:
            call.end_tool(str(safe_getattr(tool, "name") or ""), failed.pop() if failed else None)

    def note_failure(report: ErrorReport) -> None:
        failed.append(report.kind)

    options: dict[str, Any] = {"watcher": call.watcher} if call.watcher else {}
    try:
        result = await agents.Runner.run(
            agent,
            call.prompt,
            max_turns=call.most_calls,
            hooks=Watch(),
            run_config=reliability(on_tool_error=note_failure, **options),
        )
    except agents.MaxTurnsExceeded as error:
        raise TurnLimit(calls=call.most_calls) from error
    return call.answer(result.final_output)


async def _langgraph(graph: Any, call: AgentCall) -> AgentAnswer:
    from failwell.errors.missing_extra import need

    errors: Any = need("langgraph.errors")
    try:
        state: Any = await graph.ainvoke(
            {"messages": [{"role": "user", "content": call.prompt}]},
            # A graph may have other nodes than models; those are limited by steps.
            config={"recursion_limit": 4 * call.most_calls + 4, "callbacks": [_callbacks(call)]},
        )
    except errors.GraphRecursionError as error:
        raise TurnLimit(calls=call.most_calls) from error
    messages = cast("list[Any]", cast("Mapping[str, Any]", state).get("messages") or [])
    if not messages:
        raise Validation(
            kind="validation.config_invalid",
            message="the state of the graph has no `messages`, so there is no answer to read",
            caller_facing=True,
        )
    return call.answer(_text_of(messages[-1]))


def _callbacks(call: AgentCall) -> Any:
    """LangChain's own callbacks, which reach every model and tool inside a graph."""
    from failwell.errors.missing_extra import need

    handler: Any = need("langchain_core.callbacks").AsyncCallbackHandler

    class Watch(handler):
        """Counts the calls of one run."""

        raise_error = True
        run_inline = True

        def __init__(self) -> None:
            self._tools: dict[Any, str] = {}

        async def on_chat_model_start(self, *_details: Any, **_more: Any) -> None:
            call.begin_model()

        async def on_llm_end(self, response: Any, **_more: Any) -> None:
            for generations in response.generations:
                for generation in generations:
                    _count_message(safe_getattr(generation, "message"), call)

        async def on_tool_start(self, serialized: Any, _input: Any, *, run_id: Any, **_more: Any) -> None:
            known = cast("Mapping[str, Any]", serialized or {})
            self._tools[run_id] = str(known.get("name") or "")

        async def on_tool_end(self, output: Any, *, run_id: Any, **_more: Any) -> None:
            is_failed = safe_getattr(output, "status") == "error"
            call.end_tool(self._tools.pop(run_id, ""), "tool.failed" if is_failed else None)

        async def on_tool_error(self, error: BaseException, *, run_id: Any, **_more: Any) -> None:
            kind = _kind(error) if isinstance(error, Exception) else "tool.failed"
            call.end_tool(self._tools.pop(run_id, ""), kind)

    return Watch()


def _count_message(message: Any, call: AgentCall) -> None:
    counts: object = safe_getattr(message, "usage_metadata")
    if not isinstance(counts, Mapping):
        return
    known = cast("Mapping[str, Any]", counts)
    about = cast("Mapping[str, Any]", safe_getattr(message, "response_metadata") or {})
    tokens = {
        name: known[name] for name in ("input_tokens", "output_tokens") if isinstance(known.get(name), int)
    }
    call.end_model(str(about.get("model_provider") or ""), str(about.get("model_name") or ""), tokens)


def _kind(error: Exception) -> str:
    return describe(error, origin="tool").kind


def _text_of(message: Any) -> Any:
    text: object = safe_getattr(message, "text")
    return text if isinstance(text, str) else safe_getattr(message, "content")


def _as_text(output: Any) -> str:
    """The answer as text: structured output as JSON."""
    if isinstance(output, str):
        return output
    dump = safe_getattr(output, "model_dump")
    value = dump(mode="json") if callable(dump) else output
    return dumps(value, ensure_ascii=False, default=str)
