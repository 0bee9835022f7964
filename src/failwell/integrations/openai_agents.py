"""OpenAI Agents: a run configuration whose model calls are repeated as their failures allow.

Tool errors become typed results, and a run that fails keeps what it had.

Example:
    >>> from failwell.integrations.openai_agents import reliability, tool_error
    >>> async def run(agent):
    ...     from agents import Runner
    ...     return await Runner.run(agent, "hello", run_config=reliability())
    >>> "provider.connection" in tool_error(None, ConnectionRefusedError(111, "Connection refused"))
    True

Runs of OpenAI Agents: the callbacks of a run configuration, and the models and tools that take part in it.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing
from contextvars import ContextVar
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack, cast

from failwell.adapters.describe import describe
from failwell.adapters.replies import take
from failwell.agents.tool_errors import ToolCalls
from failwell.calls.model_calls import ModelCalls, Subclasses
from failwell.calls.operation import Operation
from failwell.calls.retry_options import RetryParameters
from failwell.calls.sdk_retries import RetriesNotSwitchable, without_sdk_retries
from failwell.calls.suppress import OnRaise
from failwell.errors.faults import Cancellation
from failwell.errors.foreign_objects import safe_call, safe_getattr, str_attr
from failwell.errors.missing_extra import need
from failwell.errors.report import ErrorReport

_MOST_RETRIES = 1_000
"""The runner asks the policy no more often than this. The options decide much earlier."""
_MOST_CLIENTS = 64
_ADOPTED = "_failwell_adopted"
_NOT_VISIBLE = frozenset({"response.created", "response.in_progress"})
"""Events of a stream that carry no part of the answer."""


class _Turn:
    """One model call of a run, with all its attempts."""

    __slots__ = ("agent", "context", "input", "is_open", "operation", "plugin", "was_shortened")

    def __init__(self, plugin: "RunCallbacks", data: Any) -> None:
        self.plugin = plugin
        self.is_open = True
        self.operation: Operation | None = None
        self.agent = data.agent
        self.context = data.context
        self.input: Any = data.model_data.input
        self.was_shortened = False

    def begin(self, model: Any) -> Operation:
        if self.operation is None:
            self.operation = self.plugin.calls.operation(_provider(model), str_attr(model, "model"))
        return self.operation

    def replace_input(self, items: list[Any]) -> None:
        self.input, self.was_shortened = items, True

    def arguments(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments of an attempt, of which the input may have been shortened."""
        return {**kwargs, "input": self.input} if self.was_shortened else kwargs

    def end(self) -> None:
        self.is_open = False

    def keep_run_data(self, error: Exception) -> None:
        """Leave on the exception what the run had, as the runner does with exceptions of its own."""
        self.end()
        if safe_getattr(error, "run_data") is None:
            details: Any = need("agents.exceptions").RunErrorDetails
            context: Any = need("agents").RunContextWrapper(context=self.context)
            error.run_data = details(  # type: ignore[attr-defined]
                input=self.input,
                new_items=[],
                raw_responses=[],
                last_agent=self.agent,
                context_wrapper=context,
                input_guardrail_results=[],
                output_guardrail_results=[],
            )


_turn: ContextVar[_Turn | None] = ContextVar("failwell_openai_agents", default=None)


class RunCallbacks:
    """What the callbacks of one run configuration share."""

    def __init__(self, calls: ModelCalls, tools: ToolCalls) -> None:
        self.calls = calls
        self._tools = tools
        self._clients: dict[int, tuple[Any, Any]] = {}
        """Clients and their copies without retries."""
        self._running: dict[tuple[_Run, str | None], bool] = {}
        """The tool calls that run, and whether they have failed. Ids of calls are those of a run: some servers count them."""

    def configure(self, config: Any) -> Any:
        """The configuration with the callbacks of this plugin, which call those that it had."""
        agents: Any = need("agents")
        own_filter, own_formatter = config.call_model_input_filter, config.tool_error_formatter
        settings = config.model_settings or agents.ModelSettings()
        retry: Any = need("agents.retry").ModelRetrySettings(max_retries=_MOST_RETRIES, policy=self.decide)

        def begin(data: Any) -> Any:
            _turn.set(_Turn(self, data))
            for model in (config.model, data.agent.model):
                if isinstance(model, agents.Model):
                    _adopt(model)
            for tool in data.agent.tools:
                if isinstance(tool, agents.FunctionTool):
                    _adopt_tool(tool)
            return data.model_data if own_filter is None else own_filter(data)

        def format_error(arguments: Any) -> Any:
            if arguments.kind != "tool_exception" or arguments.error is None:
                return None if own_formatter is None else own_formatter(arguments)
            return self.describe_failure(arguments)

        return replace(
            config,
            model_provider=_adopting(config.model_provider),
            model_settings=replace(settings, retry=retry),
            call_model_input_filter=begin,
            tool_error_formatter=format_error,
        )

    def describe_failure(self, arguments: Any) -> str | None:
        """What the model gets for the exception of a tool."""
        context = arguments.run_context
        run = _Run(safe_getattr(context, "usage"))
        if (run, arguments.call_id) in self._running:
            self._running[run, arguments.call_id] = True
        try:
            failure = self._tools.failed(
                arguments.error,
                tool=arguments.tool_name,
                arguments=safe_getattr(context, "tool_arguments"),
                run=run,
            )
        except Cancellation:
            # The runner has already made a result of it.
            return None
        return failure.text

    async def invoke(self, tool: Any, invoke: Callable[..., Awaitable[Any]], context: Any, text: str) -> Any:
        """Call a tool, unless the same call has failed in the same way before."""
        run = _Run(safe_getattr(context, "usage"))
        refusal = self._tools.refused(tool.name, text, run=run)
        if refusal is not None:
            return refusal.text
        call = run, str_attr(context, "tool_call_id")
        self._running[call] = False
        try:
            result = await invoke(context, text)
            if not self._running.get(call):
                self._tools.succeeded(tool.name, text, run=run)
            return result
        finally:
            self._running.pop(call, None)

    async def decide(self, context: Any) -> Any:
        """The policy that the runner asks after a failed attempt."""
        decision: Any = need("agents.retry").RetryDecision
        turn = _turn.get()
        if turn is None or turn.operation is None:
            return decision(retry=False)
        operation = turn.operation
        items: Any = turn.input
        if isinstance(items, list):
            self.calls.shrink_with(operation, cast("list[Any]", items), turn.replace_input)
        # The work may be parked or cancelled.
        with OnRaise(turn.keep_run_data):
            delay = await operation.failed_async(context.error)
        if delay is None:
            turn.keep_run_data(context.error)
            return decision(retry=False)
        if context.stateful_request and context.replay_safety != "safe":
            # The runner may still refuse, so it does the waiting.
            return decision(retry=True, delay=delay)
        await operation.wait_async(delay)
        # A model call is declared idempotent, or the decision above would have been another.
        return decision(retry=True, delay=0.0, approve_unsafe_replay=True)

    def quiet(self, client: Any) -> Any:
        """The client without retries of its own."""
        known = self._clients.get(id(client))
        if known is not None and known[0].api_key == known[1].api_key:
            return known[1]
        if len(self._clients) >= _MOST_CLIENTS:
            self._clients.clear()
        try:
            copied = without_sdk_retries(client)
        except RetriesNotSwitchable:
            # The loop notices its calls and warns about them.
            return client
        self._clients[id(client)] = client, copied
        return copied


class _Run:
    """What the tool calls of one run have in common: the object that counts its usage."""

    __slots__ = ("_usage",)

    def __init__(self, usage: object) -> None:
        self._usage = usage

    def __hash__(self) -> int:
        return id(self._usage)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Run) and other._usage is self._usage


def _open_turn() -> _Turn | None:
    turn = _turn.get()
    return turn if turn is not None and turn.is_open else None


async def _respond(
    model: Any, call: Callable[..., Awaitable[Any]], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Make one attempt; outside a run with the plugin, only the call."""
    from asyncio import CancelledError

    turn = _open_turn()
    if turn is None:
        return await call(model, *args, **kwargs)
    operation = turn.begin(model)
    if operation.options.guard is not None:
        await operation.hold_async()
    operation.enter()
    try:
        response = await call(model, *args, **turn.arguments(kwargs))
        operation.succeeded()
        turn.end()
        return response
    except CancelledError:
        operation.abandoned()
        raise
    finally:
        operation.detach()


async def _read(
    model: Any, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> AsyncGenerator[Any]:
    """Read the stream of one attempt."""
    turn = _open_turn()
    operation = None if turn is None else turn.begin(model)
    if operation is not None and operation.options.guard is not None:
        await operation.hold_async()
    events = call(model, *args, **(kwargs if turn is None else turn.arguments(kwargs)))
    if operation is not None and operation.options.stream is not None:
        from failwell.calls.streams.asynchronous import limit_astream

        options = operation.options
        events = limit_astream(events, operation.options.stream, clock=options.clock)

    async def failed(error: Exception) -> None:
        if turn is not None and operation is not None and operation.visible:
            # The runner does not ask the policy once something has reached the reader.
            await operation.failed_async(error)
            turn.keep_run_data(error)

    def abandoned(_reason: BaseException) -> None:
        # The reader went away, or was cancelled.
        if operation is not None:
            operation.abandoned()

    async with aclosing(events), OnRaise(failed, abandoned=abandoned):
        async for event in events:
            if operation is not None and not operation.visible:
                operation.visible = safe_getattr(event, "type") not in _NOT_VISIBLE
            yield event
        if turn is not None and operation is not None:
            operation.succeeded()
            turn.end()


def _model_methods(cls: Any) -> dict[str, Any]:
    """The methods of a model whose calls go through the plugin of the run that makes them, if it has one."""

    async def get_response(self: Any, *args: Any, **kwargs: Any) -> Any:
        return await _respond(self, cls.get_response, args, kwargs)

    def stream_response(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _read(self, cls.stream_response, args, kwargs)

    def _get_client(self: Any) -> Any:
        client, turn = cls._get_client(self), _open_turn()
        return client if turn is None else turn.plugin.quiet(client)

    methods: dict[str, Any] = {"get_response": get_response, "stream_response": stream_response}
    return {**methods, "_get_client": _get_client} if hasattr(cls, "_get_client") else methods


def _provider_methods(cls: Any) -> dict[str, Any]:
    """The method of a provider whose models are adopted."""

    def get_model(self: Any, model_name: str | None) -> Any:
        return _adopt(cls.get_model(self, model_name))

    return {"get_model": get_model}


_models = Subclasses(_model_methods)
_providers = Subclasses(_provider_methods)


def _adopt(model: Any) -> Any:
    """Change the class of a model, which the agent or its provider holds, to one that knows the plugin."""
    if not _models.holds(model):
        _models.put(model)
    return model


def _adopting(provider: Any) -> Any:
    """A copy of the provider whose models are adopted."""
    copied = copy(provider)
    if not _providers.holds(copied):
        _providers.put(copied)
    return copied


def _adopt_tool(tool: Any) -> None:
    """Let the calls of a tool go through the plugin of the run that makes them, if it has one."""
    invoke = tool.on_invoke_tool
    if hasattr(invoke, _ADOPTED):
        return

    async def invoke_tool(context: Any, text: str) -> Any:
        turn = _turn.get()
        if turn is None:
            return await invoke(context, text)
        return await turn.plugin.invoke(tool, invoke, context, text)

    setattr(invoke_tool, _ADOPTED, True)
    tool.on_invoke_tool = invoke_tool


def _provider(model: Any) -> str | None:
    """The provider of a model: named before the model by LiteLLM and others, and else the vendor of its class."""
    named, slash, _ = (str_attr(model, "model") or "").partition("/")
    if slash:
        return named
    return "openai" if hasattr(model, "_get_client") else None


if TYPE_CHECKING:
    from failwell.agents.outcome import Outcome
    from failwell.agents.own_agents import AgentAnswer, AgentCall

__all__ = ["outcome", "reliability", "tool_error"]


def reliability(
    *,
    run_config: Any = None,
    on_tool_error: Callable[[ErrorReport], object] | None = None,
    **parameters: Unpack[RetryParameters],
) -> Any:
    """A run configuration for `Runner.run(agent, …, run_config=reliability())`.

    The runner repeats a model call when the policy in this configuration says so, and nobody else does: the retries of
    the client are off. A wait that the server asked for is kept exactly; one that is too long to sleep raises `Parked`.
    The ledger is on the exception, and so is `run_data`, with the input to resume the run with. An exception of a tool
    that has no error function of its own becomes the model's view of it.

    Args:
        run_config: Your own `RunConfig`, which is copied. Its `retry` setting is replaced.
        on_tool_error: Called with the report of each failed tool call. Without it the observers of
            `failwell.calls.observe` get it, or the log.
        parameters: Those of `failwell.retry`: `attempts`, `backoff`, `on`, `policy`, `timeout`, `idempotent`,
            `account`, `repeat_exhausted`, `guard`, `budget`, `watcher`, `cancel`, `shrink`, `stream`, `clock`, `jitter`.

    Returns:
        A `RunConfig`.

    Raises:
        MissingExtra: openai-agents is not installed.
        TypeError: a parameter has the wrong type, or there is none of that name.
        ValueError: a number makes no sense.
    """
    callbacks = RunCallbacks(ModelCalls("openai-agents", **parameters), ToolCalls(observer=on_tool_error))
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


async def run_agent(agent: Any, call: "AgentCall") -> "AgentAnswer":
    """The answer of an agent that runs as a step: the entry point of `failwell.own_agents`."""
    from failwell.agents.models import usage_of
    from failwell.agents.turn import TurnLimit

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
