"""OpenAI Agents: a run configuration whose model calls are repeated as their failures allow.

Tool errors become typed results, and a run that fails keeps what it had.

Example:
    >>> from failwell.integrations.openai_agents import reliability, tool_error
    >>> async def run(agent):
    ...     from agents import Runner
    ...     return await Runner.run(agent, "hello", run_config=reliability())
    >>> "provider.connection" in tool_error(None, ConnectionRefusedError(111, "Connection refused"))
    True
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Unpack, cast

from failwell.adapters.describe import describe
from failwell.adapters.replies import take
from failwell.agents.tool_errors import ToolCalls
from failwell.calls.model_calls import ModelCalls, PluginOptions
from failwell.calls.retry_options import RetryOptions
from failwell.errors.foreign_objects import safe_call, safe_getattr, str_attr
from failwell.errors.missing_extra import need
from failwell.errors.report import ErrorReport
from failwell.integrations.openai_agents___openai_agents_run import RunCallbacks

if TYPE_CHECKING:
    from failwell.agents.outcome import Outcome

__all__ = ["outcome", "reliability", "tool_error"]


def reliability(
    options: RetryOptions | None = None,
    *,
    run_config: Any = None,
    on_tool_error: Callable[[ErrorReport], object] | None = None,
    **parameters: Unpack[PluginOptions],
) -> Any:
    """A run configuration for `Runner.run(agent, …, run_config=reliability())`.

    The runner repeats a model call when the policy in this configuration says so, and nobody else does: the retries of
    the client are off. A wait that the server asked for is kept exactly; one that is too long to sleep raises `Parked`.
    The ledger is on the exception, and so is `run_data`, with the input to resume the run with. An exception of a tool
    that has no error function of its own becomes the model's view of it.

    Args:
        options: How a call is repeated, as one value. A parameter beside it wins.
        run_config: Your own `RunConfig`, which is copied. Its `retry` setting is replaced.
        on_tool_error: Called with the report of each failed tool call. Without it the observers of
            `failwell.observe` get it, or the log.
        parameters: Those of `failwell.retry`: `attempts`, `backoff`, `on`, `policy`, `timeout`, `idempotent`,
            `account`, `repeat_exhausted`, `guard`, `budget`, `watcher`, `cancel`, `shrink`, `stream`, `clock`, `jitter`.

    Returns:
        A `RunConfig`.

    Raises:
        MissingExtra: openai-agents is not installed.
        TypeError: a parameter has the wrong type, or there is none of that name.
        ValueError: a number makes no sense.
    """
    callbacks = RunCallbacks(
        ModelCalls("openai-agents", options, **parameters), ToolCalls(observer=on_tool_error)
    )
    agents: Any = need("agents")
    if run_config is not None and not isinstance(run_config, agents.RunConfig):
        raise TypeError(f"`run_config` takes a `RunConfig`, not {type(run_config).__name__}")
    return callbacks.configure(run_config or agents.RunConfig())


def tool_error(_context: object, error: Exception) -> str:
    """What the model may see of a tool's exception: `@function_tool(failure_error_function=tool_error)`.

    For tools with an error function of their own, agents as tools, and MCP servers (`mcp_config`). The others are
    covered by `reliability`.
    """
    return ToolCalls().failed(error).text


def outcome(error: Exception) -> "Outcome":
    """How the run that raised `error` ended: failed, or partial with what it had until then.

    The findings are the texts of its agents and the results of its tools, from the `run_data` of the exception. The report
    holds none of them.
    """
    from failwell.agents.outcome import Outcome

    report = describe(error, origin="call")
    run_data = safe_getattr(error, "run_data")
    name = str_attr(safe_getattr(run_data, "last_agent"), "name") or "agent"
    return Outcome(name=name, findings=tuple(_findings(run_data)), report=report, attempts=report.attempts)


def _findings(run_data: Any) -> Iterator[Any]:
    """What the agents said and what their tools returned, in order."""
    tools: dict[Any, Any] = {}
    sent: Any = safe_getattr(run_data, "input")
    new: Any = safe_getattr(run_data, "new_items")
    items = [*(cast("list[Any]", sent) if isinstance(sent, list) else ())]
    items += [safe_call(item.to_input_item, None) for item in (cast("list[Any]", new) or ())]
    for item in items:
        kind, role = take(item, "type"), take(item, "role")
        if kind == "function_call":
            tools[take(item, "call_id")] = take(item, "name")
        elif kind == "function_call_output":
            yield {"tool": tools.get(take(item, "call_id")), "result": take(item, "output")}
        elif role == "assistant":
            content: Any = take(item, "content")
            parts = cast("list[Any]", content) if isinstance(content, list) else [{"text": content}]
            yield from (text for part in parts if isinstance(text := take(part, "text"), str))
