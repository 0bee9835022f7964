"""Runs agents that people have: those of Pydantic AI and OpenAI Agents, and graphs of LangGraph and LangChain.

The plugin of the framework does the error work where one can be added from outside. A graph that is compiled keeps its own
retries; put the plugin into it where it is built.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from json import dumps
from pathlib import Path
from typing import Any, cast

from failwell.adapters.safe_getattr import safe_getattr
from failwell.fault.classes import Validation
from failwell.fault.frozen import frozen
from failwell.runtime.cost import Prices
from failwell.turns.models import usage_of
from failwell.turns.tools.function_tool import load_object
from failwell.turns.turn import TurnLimit


@frozen
class AgentAnswer:
    """What an agent answered, and what it used."""

    text: str
    tokens: Mapping[str, int] = field(default_factory=dict[str, int])
    cost: int | None = None
    """Micro-cents, or `None` where a price is unknown."""


@frozen
class AgentCall:
    """One call of somebody's agent."""

    prompt: str
    most_calls: int
    """Model calls, or steps of a graph, at most."""
    prices: Prices


async def run_own_agent(target: str, folder: Path, call: AgentCall) -> AgentAnswer:
    """Run the agent `module:object`.

    Raises:
        Validation: there is no such object, or it is no agent that is known.
        TurnLimit: it did not come to an answer within its calls.
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
    from pydantic_ai.exceptions import UsageLimitExceeded
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.usage import UsageLimits

    from failwell.integrations.pydantic_ai import reliability

    try:
        result = await agent.run(
            call.prompt,
            capabilities=[reliability()],
            usage_limits=UsageLimits(request_limit=call.most_calls),
        )
    except UsageLimitExceeded as error:
        raise TurnLimit(calls=call.most_calls) from error
    responses = [message for message in result.new_messages() if isinstance(message, ModelResponse)]
    used = [(reply.provider_name or "", reply.model_name or "", usage_of(reply)) for reply in responses]
    return _answer(result.output, used, call.prices)


async def _openai_agents(agent: Any, call: AgentCall) -> AgentAnswer:
    from failwell._extras import need
    from failwell.integrations.openai_agents import reliability

    agents: Any = need("agents")
    try:
        result = await agents.Runner.run(
            agent, call.prompt, max_turns=call.most_calls, run_config=reliability()
        )
    except agents.MaxTurnsExceeded as error:
        raise TurnLimit(calls=call.most_calls) from error
    model = agent.model if isinstance(agent.model, str) else str(safe_getattr(agent.model, "model") or "")
    used = [("openai", model, usage_of(reply)) for reply in result.raw_responses]
    return _answer(result.final_output, used, call.prices)


async def _langgraph(graph: Any, call: AgentCall) -> AgentAnswer:
    from failwell._extras import need

    errors: Any = need("langgraph.errors")
    try:
        state: Any = await graph.ainvoke(
            {"messages": [{"role": "user", "content": call.prompt}]},
            config={"recursion_limit": 2 * call.most_calls},
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
    used: list[tuple[str, str, Mapping[str, int]]] = []
    for message in messages:
        counts: object = safe_getattr(message, "usage_metadata")
        if isinstance(counts, Mapping):
            known = cast("Mapping[str, Any]", counts)
            about = cast("Mapping[str, Any]", safe_getattr(message, "response_metadata") or {})
            tokens = {
                name: known[name]
                for name in ("input_tokens", "output_tokens")
                if isinstance(known.get(name), int)
            }
            used.append((str(about.get("model_provider") or ""), str(about.get("model_name") or ""), tokens))
    return _answer(_text_of(messages[-1]), used, call.prices)


def _text_of(message: Any) -> Any:
    text: object = safe_getattr(message, "text")
    return text if isinstance(text, str) else safe_getattr(message, "content")


def _answer(output: Any, used: Sequence[tuple[str, str, Mapping[str, int]]], prices: Prices) -> AgentAnswer:
    tokens: dict[str, int] = {}
    cost: int | None = 0
    for provider, model, counts in used:
        for name, count in counts.items():
            tokens[name] = tokens.get(name, 0) + count
        if counts:
            price = prices.cost(provider, model, counts)
            cost = None if cost is None or price is None else cost + price
    return AgentAnswer(text=_as_text(output), tokens=tokens, cost=cost)


def _as_text(output: Any) -> str:
    """The answer as text: structured output as JSON."""
    if isinstance(output, str):
        return output
    dump = safe_getattr(output, "model_dump")
    value = dump(mode="json") if callable(dump) else output
    return dumps(value, ensure_ascii=False, default=str)
