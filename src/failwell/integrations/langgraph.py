"""LangGraph: `builder.set_node_defaults(**reliability())` repeats nodes as their failures allow.

LangGraph runs the node again and waits; failwell says whether and after how long. A server-requested delay is kept
exactly, and the exception that finally leaves the graph carries the ledger.

Example:
    >>> from failwell.integrations.langgraph import reliability, retry_on
    >>> def compiled(builder):
    ...     return builder.set_node_defaults(**reliability()).compile()
    >>> retry_on(ConnectionRefusedError(111, "Connection refused")), retry_on(ValueError("no"))
    (True, False)
"""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from re import compile as pattern
from threading import Lock
from typing import TYPE_CHECKING, Any, Unpack, cast

from failwell.adapters.describe import describe
from failwell.agents.tool_errors import ToolCalls
from failwell.calls.model_calls import refuse_options
from failwell.calls.operation import Operation
from failwell.calls.retry_options import RetryOptions, RetryParameters, merge_options
from failwell.calls.task_calls import repeatable
from failwell.delivery.plain_text import finite
from failwell.errors.faults import Validation
from failwell.errors.foreign_objects import safe_getattr
from failwell.errors.missing_extra import need
from failwell.errors.report import ErrorReport

if TYPE_CHECKING:
    from failwell.agents.own_agents import AgentAnswer, AgentCall

__all__ = ["reliability", "retry_on", "tool_errors"]

_TASK = pattern(r"During task with name '.*' and id '([^']+)'")
"""The note that LangGraph adds to each exception of a node before it asks whether to repeat."""
_MOST_TASKS = 1_000
_UNLIMITED = 1_000_000
_UNKNOWN_TASK_ATTEMPTS = 3


def reliability(
    *,
    error_key: str | None = None,
    go_to: str | None = None,
    **parameters: Unpack[RetryParameters],
) -> dict[str, Any]:
    """The arguments of `StateGraph.set_node_defaults` and `add_node`: a retry policy, and an error handler if wanted.

    A node may have side effects, so one whose outcome is unknown is not run again unless `idempotent` is set. A
    subgraph takes no defaults from the graph around it. What is too long to wait for raises `Parked`.

    Args:
        error_key: A key of the state. Where it is named, a node that finally failed raises nothing: the handler writes
            the model's view of the failure there, never its text.
        go_to: The node that runs after the handler. Without it the branch ends there.
        parameters: Those of `failwell.retry`, except that LangGraph waits by its own
            clock, and that `timeout` and `budget` count from the first failure of a node. `stream` becomes a `TimeoutPolicy`, which LangGraph has for async nodes alone: `idle` ends a node that
            shows no progress, `total` ends its run.

    Raises:
        MissingExtra: langgraph is not installed.
        TypeError: a parameter has the wrong type, there is none of that name, or LangGraph cannot keep it.
    """
    nodes = _Nodes(merge_options({"name": "langgraph node", "provider": "langgraph"}, **parameters))
    refuse_options(nodes.options, "langgraph", "shrink", "guard")
    defaults: dict[str, Any] = {"retry_policy": _policy(nodes)}
    if error_key is not None:
        defaults["error_handler"] = _handler(error_key, go_to)
    stream = nodes.options.stream
    if stream is not None:
        defaults["timeout"] = need("langgraph.types").TimeoutPolicy(
            run_timeout=stream.total, idle_timeout=stream.idle
        )
    return defaults


def retry_on(error: Exception, *, idempotent: bool | None = None, repeat_exhausted: bool = False) -> bool:
    """Whether the node may run again: for a `RetryPolicy` with waits of your own.

    LangGraph counts and waits by its own numbers, so a server-requested delay is not honoured to the second: one that is
    too long to sleep is a `False`, and for shorter ones set `initial_interval` to what your provider asks, or use
    `reliability`.

    Args:
        error: What the node raised.
        idempotent: Whether a repeat is harmless although the outcome is unknown; bind it with `partial`.
        repeat_exhausted: Whether to repeat what a failwell loop below has repeated up to its limit.
    """
    return repeatable(error, idempotent=idempotent, repeat_exhausted=repeat_exhausted) is not None


def tool_errors(
    *, on_tool_error: Callable[[ErrorReport], object] | None = None
) -> Callable[[Exception], str]:
    """What `ToolNode(tools, handle_tool_errors=tool_errors())` takes: the model gets a typed result, never a text.

    Args:
        on_tool_error: Called with the report of each failed tool call; `failwell.calls.observe` by default.
    """
    tools = ToolCalls(observer=on_tool_error)

    def answer(error: Exception) -> str:
        return tools.failed(error).text

    return answer


class _Nodes:
    """One operation for each node that has failed and runs again."""

    def __init__(self, options: RetryOptions) -> None:
        self.options = options
        self._operations: dict[str, Operation] = {}
        self._lock = Lock()

    def may_repeat(self, error: Exception) -> bool:
        """Decide about a failure, and note the wait for LangGraph, which reads it next.

        Raises:
            Parked: the wait is too long to sleep.
        """
        task = _task_of(error)
        operation = self._operation(task)
        delay: float | None = None
        try:
            delay = operation.failed(error)
        finally:
            if delay is None:
                # It is not repeated, or is parked, or a scope or a budget has stopped it: the node has ended.
                self._forget(task)
        if delay is None:
            return False
        _repeat.set((delay, _UNLIMITED if task else _UNKNOWN_TASK_ATTEMPTS))
        return True

    def _operation(self, task: str | None) -> Operation:
        with self._lock:
            operation = self._operations.get(task or "")
        if operation is None:
            operation = Operation(self.options)
        if task is not None:
            with self._lock:
                self._operations[task] = operation
                if len(self._operations) > _MOST_TASKS:
                    # Nodes that succeeded after a failure: LangGraph does not say so.
                    del self._operations[next(iter(self._operations))]
        return operation

    def _forget(self, task: str | None) -> None:
        with self._lock:
            self._operations.pop(task or "", None)


_repeat: ContextVar[tuple[float, int]] = ContextVar("failwell_node_repeat", default=(0.0, 1))
"""The wait before the next run of the node, and the runs that LangGraph may count. It reads both right after asking."""


def _task_of(error: Exception) -> str | None:
    notes = getattr(error, "__notes__", None) or ("",)
    match = _TASK.fullmatch(notes[-1])
    return None if match is None else match[1]


def _policy(nodes: _Nodes) -> Any:
    base = need("langgraph.types").RetryPolicy

    class Reliability(base):
        """A policy whose numbers are those of the failure that LangGraph has just asked about."""

        initial_interval = property(lambda _self: _repeat.get()[0])
        max_interval = property(lambda _self: _repeat.get()[0])
        max_attempts = property(lambda _self: _repeat.get()[1])
        backoff_factor = property(lambda _self: 1.0)
        jitter = property(lambda _self: False)
        retry_on = property(lambda _self: nodes.may_repeat)

    return Reliability()


def _handler(key: str, go_to: str | None) -> Callable[..., Any]:
    node_error = need("langgraph.errors").NodeError
    command = need("langgraph.types").Command

    def record_failure(_state: object, error: Any) -> Any:
        update = {key: finite(describe(error.error, origin="call").view("model"))}
        return update if go_to is None else command(update=update, goto=go_to)

    # LangGraph passes what failed to a parameter of this type.
    record_failure.__annotations__["error"] = node_error
    return record_failure


async def run_agent(graph: Any, call: "AgentCall") -> "AgentAnswer":
    """The answer of a graph that runs as a step: the entry point of `failwell.own_agents`."""
    from failwell.agents.turn import TurnLimit

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


def _callbacks(call: "AgentCall") -> Any:
    """LangChain's own callbacks, which reach every model and tool inside a graph."""
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
            kind = describe(error, origin="tool").kind if isinstance(error, Exception) else "tool.failed"
            call.end_tool(self._tools.pop(run_id, ""), kind)

    return Watch()


def _count_message(message: Any, call: "AgentCall") -> None:
    counts: object = safe_getattr(message, "usage_metadata")
    if not isinstance(counts, Mapping):
        return
    known = cast("Mapping[str, Any]", counts)
    about = cast("Mapping[str, Any]", safe_getattr(message, "response_metadata") or {})
    tokens = {
        name: known[name] for name in ("input_tokens", "output_tokens") if isinstance(known.get(name), int)
    }
    call.end_model(str(about.get("model_provider") or ""), str(about.get("model_name") or ""), tokens)


def _text_of(message: Any) -> Any:
    text: object = safe_getattr(message, "text")
    return text if isinstance(text, str) else safe_getattr(message, "content")
