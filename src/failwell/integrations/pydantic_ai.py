"""Pydantic AI: a capability that repeats model requests as their failures allow and turns tool errors into results.

`FallbackModel(..., fallback_on=fallback_on)` moves on only where another model may succeed.

Example:
    >>> from failwell.integrations.pydantic_ai import fallback_on, reliability
    >>> from pydantic_ai import Agent
    >>> agent = Agent("test", capabilities=[reliability()])
    >>> fallback_on(ConnectionRefusedError(111, "Connection refused")), fallback_on(ValueError("no"))
    (True, False)
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Unpack, cast

from failwell.adapters.describe import describe
from failwell.agents.tool_errors import ToolCalls
from failwell.calls.model_calls import ByIdentity, ModelCalls, switch_off_sdk_retries
from failwell.calls.operation import Operation
from failwell.calls.policy import falls_through
from failwell.calls.retry_options import RetryParameters
from failwell.calls.suppress import OnRaise
from failwell.errors.foreign_objects import safe_getattr
from failwell.errors.missing_extra import need
from failwell.errors.report import ErrorReport

if TYPE_CHECKING:
    from pydantic_ai import ModelRequestContext, RunContext
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.capabilities.abstract import WrapModelRequestHandler
    from pydantic_ai.messages import ModelResponse, ToolCallPart
    from pydantic_ai.models import Model

    from failwell.agents.own_agents import AgentAnswer, AgentCall

__all__ = ["fallback_on", "reliability"]

_DEEPEST = 8


def fallback_on(error: Exception, *, idempotent: bool | None = None) -> bool:
    """Whether pydantic-ai should ask another provider, because it may succeed where this one failed.

    As in a `Chain`: a call that is itself at fault fails anywhere, and one whose outcome is unknown is
    not made twice unless it is declared `idempotent`.

    Args:
        error: What the model raised.
        idempotent: Whether a second call is harmless although the first may have been served; bind it
            with `partial`.
    """
    return falls_through(describe(error, origin="call", idempotent=idempotent), idempotent)


def reliability(
    *,
    on_tool_error: Callable[[ErrorReport], object] | None = None,
    **parameters: Unpack[RetryParameters],
) -> "AbstractCapability[Any]":
    """A capability for `Agent(model, capabilities=[reliability()])`.

    A model request is repeated as its failures allow, and by nobody else: the retries of the SDK's client are off.
    A wait that the server asked for is kept exactly; one that is too long to sleep raises `Parked`. The ledger is on
    the exception. An exception of a tool becomes a failed result with the model's view of it, or a request to correct
    the arguments where those were at fault, and the run goes on. A call that failed twice in the same way is refused.

    Args:
        on_tool_error: Called with the report of each failed tool call. Without it the observers of
            `failwell.calls.observe` get it, or the log.
        parameters: Those of `failwell.retry`: `attempts`, `backoff`, `on`, `policy`, `timeout`, `idempotent`,
            `account`, `repeat_exhausted`, `guard`, `budget`, `watcher`, `cancel`, `shrink`, `stream`, `clock`, `jitter`.

    Raises:
        MissingExtra: pydantic-ai is not installed.
        TypeError: a parameter has the wrong type, or there is none of that name.
        ValueError: a number makes no sense.
    """
    calls = ModelCalls("pydantic-ai", **parameters)
    return _capability(_ShrinkHooks if calls.shrinks else _Hooks)(calls, ToolCalls(observer=on_tool_error))


class _Request:
    """A model request: its operation, and whether its latest attempt has failed."""

    __slots__ = ("has_failed", "messages", "operation", "streaming")

    def __init__(self, operation: Operation, *, streaming: bool) -> None:
        self.operation = operation
        self.streaming = streaming
        self.has_failed = False
        self.messages: list[Any] | None = None
        """The messages of the further attempts, once they were shortened."""

    def replace_messages(self, messages: list[Any]) -> None:
        self.messages = messages


_request: ContextVar[_Request | None] = ContextVar("failwell_pydantic_ai", default=None)


class _Hooks:
    """The hooks of the capability."""

    def __init__(self, calls: ModelCalls, tools: ToolCalls) -> None:
        self._calls = calls
        self._tools = tools
        self._takes_setting = ByIdentity[Any, bool](_switch_off_retries)

    @classmethod
    def get_serialization_name(cls) -> None:
        """No agent spec can name it: its options are objects."""

    async def wrap_model_request(
        self,
        _ctx: "RunContext[Any]",
        *,
        request_context: "ModelRequestContext",
        handler: "WrapModelRequestHandler",
    ) -> "ModelResponse":
        """Open one operation around all attempts of a request."""
        request = _Request(self._begin(request_context.model), streaming=request_context.streaming)
        if request.operation.options.guard is not None:
            await request.operation.hold_async()
        self._change_settings(request_context)
        token = _request.set(request)
        operation = request.operation.enter()
        is_answered = False
        try:
            response = await handler(request_context)
            is_answered = True
            request.operation.succeeded()
            return response
        finally:
            if not is_answered and not request.has_failed:
                request.operation.abandoned()
            operation.detach()
            _request.reset(token)

    def get_wrapper_model(self, model: "Model") -> "Model | None":
        """The model with deadlines for its streams."""
        request = _request.get()
        if request is None or not request.streaming:
            return None
        return _stream_model()(model, request)

    async def on_model_request_error(
        self, _ctx: "RunContext[Any]", *, request_context: "ModelRequestContext", error: Exception
    ) -> "ModelResponse":
        """Wait and ask for another attempt, or raise the failure."""
        request = _request.get()
        if request is None:
            raise error
        if request.operation.options.model != request_context.model.model_name:
            # Another capability moved the request to another model, whose attempts are counted apart.
            request.operation = self._begin(request_context.model)
        self._calls.shrink_with(request.operation, request_context.messages, request.replace_messages)
        try:
            request.has_failed = True
            delay = await request.operation.failed_async(error)
            if delay is None:
                raise error
            await request.operation.wait_async(delay)
            request.has_failed = False
            raise need("pydantic_ai.exceptions").RetryModelRequest from error
        finally:
            del error  # kept here it would form a cycle with its traceback

    async def before_tool_execute(
        self, ctx: "RunContext[Any]", *, call: "ToolCallPart", args: dict[str, Any], **_details: Any
    ) -> dict[str, Any]:
        """Refuse a call that has failed in the same way before."""
        refusal = self._tools.refused(call.tool_name, args, run=ctx.run_id)
        if refusal is not None:
            raise need("pydantic_ai.exceptions").ToolFailed(refusal.text)
        return args

    async def after_tool_execute(
        self,
        ctx: "RunContext[Any]",
        *,
        call: "ToolCallPart",
        args: dict[str, Any],
        result: Any,
        **_details: Any,
    ) -> Any:
        """Take note of a call that worked."""
        self._tools.succeeded(call.tool_name, args, run=ctx.run_id)
        return result

    async def on_tool_execute_error(
        self,
        ctx: "RunContext[Any]",
        *,
        call: "ToolCallPart",
        args: dict[str, Any],
        error: Exception,
        **_details: Any,
    ) -> Any:
        """Answer the model with what it may know about the failure."""
        failure = self._tools.failed(error, tool=call.tool_name, arguments=args, run=ctx.run_id)
        exceptions: Any = need("pydantic_ai.exceptions")
        result = exceptions.ModelRetry if failure.is_input else exceptions.ToolFailed
        raise result(failure.text) from error

    def _begin(self, model: Any) -> Operation:
        return self._calls.operation(model.system, model.model_name)

    def _change_settings(self, request_context: "ModelRequestContext") -> None:
        """Switch the client's own retries off: by a setting, or at a client that the setting does not reach.

        The first and the whole of a stream have settings too, so that opening it counts.
        """
        settings: Any = {**(request_context.model_settings or {})}
        if self._takes_setting.of(request_context.model):
            settings["max_retries"] = 0
        timeouts = self._calls.timeouts
        if timeouts is not None and request_context.streaming:
            limits = {"first_event_timeout": timeouts.first, "request_timeout": timeouts.total}
            settings |= {name: seconds for name, seconds in limits.items() if seconds is not None}
        request_context.model_settings = settings


class _ShrinkHooks(_Hooks):
    """The hooks of a capability that shortens messages. The one more makes every request of an agent cost more."""

    async def prepare_model_request(
        self, _ctx: "RunContext[Any]", request_context: "ModelRequestContext"
    ) -> "ModelRequestContext":
        """Send the messages that were shortened."""
        request = _request.get()
        if request is not None and request.messages is not None:
            request_context.messages = list(request.messages)
        return request_context


class _Streams:
    """The streams of a model: a pause that is too long ends them, and a failure in the middle is recorded."""

    wrapped: "Model"

    def __init__(self, wrapped: "Model", request: _Request) -> None:
        super().__init__(wrapped)  # pyright: ignore[reportCallIssue]  (the class beside it takes the model)
        self._request = request

    @asynccontextmanager
    async def request_stream(self, *args: Any, **kwargs: Any) -> AsyncGenerator[Any]:
        """Open the stream of the wrapped model."""
        async with self.wrapped.request_stream(*args, **kwargs) as stream:
            response: Any = stream
            # The method that the class of a stream tells models to override.
            events: Callable[[], Any] = response._get_event_iterator  # noqa: SLF001
            response._get_event_iterator = partial(_events, events, self._request)  # noqa: SLF001
            yield response


async def _events(source: Callable[[], Any], request: _Request) -> AsyncGenerator[Any]:
    operation, count = request.operation, 0
    events: Any = source()
    timeouts = operation.options.stream
    if timeouts is not None and timeouts.idle is not None:
        from failwell.calls.streams.asynchronous import limit_astream

        idle = replace(timeouts, first=None, total=None)
        events = limit_astream(events, idle, clock=operation.options.clock)

    async def failed(error: Exception) -> None:
        # No hook is called once something has reached the reader.
        if count:
            operation.visible = request.has_failed = True
            await operation.failed_async(error)

    async with aclosing(events), OnRaise(failed):
        async for event in events:
            count += 1
            yield event


@cache
def _stream_model() -> Any:
    """The class of models with deadlines for their streams."""
    return type("ReliableStreams", (_Streams, need("pydantic_ai.models.wrapper").WrapperModel), {})


@cache
def _capability(hooks: type[_Hooks]) -> Any:
    """The class of the capability; it exists once pydantic-ai is loaded."""
    return type("Reliability", (hooks, need("pydantic_ai.capabilities").AbstractCapability), {})


def _switch_off_retries(model: Any) -> bool:
    """Switch retries off at the clients that the setting `max_retries` does not reach; whether it reaches any."""
    leaves = _leaves(model)
    for leaf in leaves:
        if _ignores_setting(leaf):
            switch_off_sdk_retries(leaf, "client")
    return not all(map(_ignores_setting, leaves))


def _leaves(model: Any, depth: int = 0) -> list[Any]:
    """The models that make the calls, below wrappers and fallbacks."""
    inner: Any = safe_getattr(model, "models")
    if not isinstance(inner, list | tuple):
        wrapped = safe_getattr(model, "wrapped")
        inner = () if wrapped is None else (wrapped,)
    if not inner or depth > _DEEPEST:
        return [model]
    return [leaf for each in cast("list[Any]", inner) for leaf in _leaves(each, depth + 1)]


def _ignores_setting(model: Any) -> bool:
    ignored: Any = safe_getattr(model, "unsupported_settings")
    return isinstance(ignored, frozenset) and "max_retries" in ignored


async def run_agent(agent: Any, call: "AgentCall") -> "AgentAnswer":
    """The answer of an agent that runs as a step: the entry point of `failwell.own_agents`."""
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.usage import UsageLimits

    from failwell.agents.models import usage_of

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
            try:
                result = await handler(args)
            except Exception as error:
                # Only noted here; the framework decides what becomes of it.
                watched.end_tool(call.tool_name, describe(error, origin="tool").kind)
                raise
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
