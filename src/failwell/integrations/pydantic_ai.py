"""Pydantic AI: a capability that repeats model requests as their failures allow and turns tool errors into results.

`FallbackModel(..., fallback_on=fallback_on)` moves on only where another model may succeed.

Example:
    >>> from failwell.integrations.pydantic_ai import fallback_on, reliability
    >>> from pydantic_ai import Agent
    >>> agent = Agent("test", capabilities=[reliability()])
    >>> fallback_on(ConnectionRefusedError(111, "Connection refused")), fallback_on(ValueError("no"))
    (True, False)
"""

from collections.abc import Callable
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any, Unpack, cast

from failwell._extras import need
from failwell.adapters.safe_getattr import safe_getattr
from failwell.decision.policy import falls_through
from failwell.integrations._model_calls import ModelCalls, PluginOptions, switch_off_sdk_retries
from failwell.integrations._tool_calls import ToolCalls
from failwell.report.describe import describe
from failwell.report.record import ErrorReport
from failwell.runtime.operation import Operation
from failwell.runtime.retry_options import RetryOptions

if TYPE_CHECKING:
    from pydantic_ai import ModelRequestContext, RunContext
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.capabilities.abstract import WrapModelRequestHandler
    from pydantic_ai.messages import ModelResponse, ToolCallPart

__all__ = ["fallback_on", "reliability"]

_operation: ContextVar[Operation | None] = ContextVar("failwell_pydantic_ai", default=None)
_MOST_MODELS = 64
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
    options: RetryOptions | None = None,
    *,
    on_tool_error: Callable[[ErrorReport], object] | None = None,
    **parameters: Unpack[PluginOptions],
) -> "AbstractCapability[Any]":
    """A capability for `Agent(model, capabilities=[reliability()])`.

    A model request is repeated as its failures allow, and by nobody else: the retries of the SDK's client are off.
    A wait that the server asked for is kept exactly; one that is too long to sleep raises `Parked`. The ledger is on
    the exception. An exception of a tool becomes a failed result with the model's view of it, or a request to correct
    the arguments where those were at fault, and the run goes on.

    Args:
        options: How a request is repeated, as one value. A parameter beside it wins.
        on_tool_error: Called with the report of each failed tool call. Without it the observers of
            `failwell.observe` get it, or the log.
        parameters: Those of `failwell.retry`: `attempts`, `backoff`, `on`, `policy`, `timeout`, `idempotent`,
            `account`, `repeat_exhausted`, `guard`, `budget`, `watcher`, `cancel`, `clock`, `jitter`.

    Raises:
        MissingExtra: pydantic-ai is not installed.
        TypeError: a parameter has the wrong type, or there is none of that name.
        ValueError: a number makes no sense.
    """
    calls = ModelCalls("pydantic-ai", options, **parameters)
    return _capability()(calls, ToolCalls(observer=on_tool_error))


class _Hooks:
    """The hooks of the capability."""

    def __init__(self, calls: ModelCalls, tools: ToolCalls) -> None:
        self._calls = calls
        self._tools = tools
        self._models: dict[int, tuple[Any, bool]] = {}
        """The models whose clients were looked at, and whether the setting reaches them."""

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
        operation = self._begin(request_context.model)
        self._switch_off_retries(request_context)
        token = _operation.set(operation)
        operation.enter()
        try:
            response = await handler(request_context)
        except (
            BaseException
        ) as error:  # raised again; a failure of the call was decided about in the hook below
            if operation.loop is None or not isinstance(error, Exception):
                operation.abandoned()
            raise
        else:
            (_operation.get() or operation).succeeded()
            return response
        finally:
            operation.detach()
            _operation.reset(token)

    async def on_model_request_error(
        self, _ctx: "RunContext[Any]", *, request_context: "ModelRequestContext", error: Exception
    ) -> "ModelResponse":
        """Wait and ask for another attempt, or raise the failure."""
        operation = _operation.get()
        if operation is None or operation.options.model != request_context.model.model_name:
            # Another capability moved the request to another model, whose attempts are counted apart.
            operation = self._begin(request_context.model)
            _operation.set(operation)
        try:
            delay = await operation.failed_async(error)
            if delay is None:
                raise error
            await operation.wait_async(delay)
            raise need("pydantic_ai.exceptions").RetryModelRequest from error
        finally:
            del error  # kept here it would form a cycle with its traceback

    async def on_tool_execute_error(
        self, _ctx: "RunContext[Any]", *, call: "ToolCallPart", error: Exception, **_details: Any
    ) -> Any:
        """Answer the model with what it may know about the failure."""
        failure = self._tools.failed(error, tool=call.tool_name)
        exceptions: Any = need("pydantic_ai.exceptions")
        result = exceptions.ModelRetry if failure.is_input else exceptions.ToolFailed
        raise result(failure.text) from error

    def _begin(self, model: Any) -> Operation:
        return self._calls.operation(model.system, model.model_name)

    def _switch_off_retries(self, request_context: "ModelRequestContext") -> None:
        """Switch the client's own retries off: by a setting, or at a client that the setting does not reach."""
        model: Any = request_context.model
        if id(model) not in self._models:
            if len(self._models) >= _MOST_MODELS:
                self._models.clear()
            leaves = _leaves(model)
            for leaf in leaves:
                if _ignores_setting(leaf):
                    switch_off_sdk_retries(leaf, "client")
            self._models[id(model)] = model, not all(map(_ignores_setting, leaves))
        if self._models[id(model)][1]:
            settings: Any = {**(request_context.model_settings or {}), "max_retries": 0}
            request_context.model_settings = settings


@cache
def _capability() -> Any:
    """The class of the capability; it exists once pydantic-ai is loaded."""
    return type("Reliability", (_Hooks, need("pydantic_ai.capabilities").AbstractCapability), {})


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
