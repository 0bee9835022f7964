"""LangChain: `create_agent(..., middleware=[reliability()])` puts model and tool calls under one retry authority.

The retries of the chat model's client are off, so each request is an attempt in the ledger. A tool that raises gives
the model a typed result instead of the exception's text, and the run goes on.

Example:
    >>> from failwell.integrations.langchain import reliability
    >>> def build(model, tools):
    ...     from langchain.agents import create_agent
    ...     return create_agent(model, tools, middleware=[reliability()])
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, Unpack, cast

from failwell.agents.tool_errors import ToolCalls, ToolFailure
from failwell.calls.model_calls import Copies, ModelCalls, has_field, switch_off_sdk_retries
from failwell.calls.retry_options import RetryParameters
from failwell.calls.sdk_retries import RetriesNotSwitchable, without_sdk_retries
from failwell.calls.suppress import catch, catch_async
from failwell.errors.foreign_objects import safe_call, safe_getattr
from failwell.errors.missing_extra import need
from failwell.errors.report import ErrorReport

__all__ = ["reliability", "reliable_model"]

_M = TypeVar("_M")
_Target = tuple[str | None, str | None]
_MOST_MODELS = 64
_ROOTS = ("root_client", "root_async_client")
"""Where a chat model holds a vendor's client."""
_RESOURCES = ("client", "async_client")
"""Where it holds a part of one, such as `client.chat.completions`."""
_MADE_LATE = ("_client_params", "_client", "_async_client")
"""Clients that a chat model makes when they are first used, from its `max_retries`."""


def reliability(
    *,
    on_tool_error: Callable[[ErrorReport], object] | None = None,
    **parameters: Unpack[RetryParameters],
) -> Any:
    """An agent middleware: model calls are repeated as their failures allow, tool errors become typed results.

    A streamed answer is repeated only before its first chunk. An interrupt of the graph passes through. A tool call that
    failed twice in the same way is refused.

    Args:
        on_tool_error: Called with the report of each failed tool call; `failwell.calls.observe` by default.
        parameters: Those of `failwell.retry`.

    Raises:
        MissingExtra: langchain is not installed.
        TypeError: a parameter has the wrong type, or there is none of that name.
    """
    return _middleware(ModelCalls("langchain", **parameters), ToolCalls(observer=on_tool_error))


def reliable_model(model: _M, /, **parameters: Unpack[RetryParameters]) -> _M:
    """A copy of a chat model whose calls are repeated as their failures allow, for chains and graph nodes.

    Args:
        model: A chat model; it is not changed.
        parameters: Those of `failwell.retry`.

    Raises:
        MissingExtra: langchain-core is not installed.
        TypeError: it is no chat model, or a parameter has the wrong type.
    """
    copy = _copies(ModelCalls("langchain", **parameters))(model)
    if copy is None:
        raise TypeError(
            f"pass a chat model, not {type(model).__name__}: bind tools and settings after `reliable_model`"
        )
    return copy


def _middleware(calls: ModelCalls, tools: ToolCalls) -> Any:
    copy_of = _copies(calls)
    middleware = need("langchain.agents.middleware")

    class Reliability(middleware.AgentMiddleware):
        """The middleware that `reliability` returns."""

        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            model = copy_of(request.model)
            if model is None:
                return calls.run(None, None, _with_messages(request, handler), request.messages)
            return handler(request.override(model=model))

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            model = copy_of(request.model)
            if model is None:
                return await calls.run_async(None, None, _with_messages(request, handler), request.messages)
            return await handler(request.override(model=model))

        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            call = _ToolCall(request, tools)
            if (refusal := call.refused()) is not None:
                return refusal
            return call.ended(*catch(handler, request))

        async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
            call = _ToolCall(request, tools)
            if (refusal := call.refused()) is not None:
                return refusal
            return call.ended(*await catch_async(handler, request))

    return Reliability()


def _with_messages(request: Any, handler: Any) -> Callable[[list[Any]], Any]:
    return lambda messages: handler(request.override(messages=messages))


class _ToolCall:
    """One call of a tool, and the message that the model gets of its failure."""

    def __init__(self, request: Any, tools: ToolCalls) -> None:
        self._call: dict[str, Any] = request.tool_call
        self._tools = tools
        # The first message of a conversation tells it from others.
        state: Any = safe_getattr(request, "state")
        messages: Any = cast("dict[str, Any]", state).get("messages") if isinstance(state, dict) else None
        self._run: str | None = safe_getattr(messages[0], "id") if messages else None

    def refused(self) -> Any:
        failure = self._tools.refused(self._call["name"], self._call["args"], run=self._run)
        return None if failure is None else self._message(failure)

    def ended(self, result: Any, error: Exception | None) -> Any:
        """The result, or what the model gets of the failure."""
        if error is not None:
            return self._failed(error)
        if safe_getattr(result, "status") != "error":
            self._tools.succeeded(self._call["name"], self._call["args"], run=self._run)
        return result

    def _failed(self, error: Exception) -> Any:
        graph_errors: Any = need("langgraph.errors")
        is_invalid_resume = getattr(graph_errors, "is_invalid_resume", None)
        if isinstance(error, graph_errors.GraphBubbleUp) or (is_invalid_resume and is_invalid_resume(error)):
            # An interrupt, a command of the graph, or an answer to an interrupt that the model cannot mend.
            raise error
        call = self._call
        return self._message(
            self._tools.failed(error, tool=call["name"], arguments=call["args"], run=self._run)
        )

    def _message(self, failure: ToolFailure) -> Any:
        message = need("langchain_core.messages").ToolMessage
        return message(
            content=failure.text, name=self._call["name"], tool_call_id=self._call["id"], status="error"
        )


def _copies(calls: ModelCalls) -> Callable[[Any], Any]:
    """Returns the copy of a model; `None` if it is no chat model, such as one that is chosen for each call."""
    copies = Copies(lambda cls: _methods(cls, calls), _without_client_retries)
    chat_model = _chat_model()

    def copy_of(model: Any) -> Any:
        return copies.of(model) if isinstance(model, chat_model) else None

    return copy_of


def _methods(cls: Any, calls: ModelCalls) -> dict[str, Callable[..., Any]]:
    """The methods that call the vendor, of those that the class defines: LangChain asks which these are."""
    target_of = _Targets().of

    def _generate(self: Any, *args: Any, **kwargs: Any) -> Any:
        return calls.run(*target_of(self), partial(cls._generate, self), *args, **kwargs)

    async def _agenerate(self: Any, *args: Any, **kwargs: Any) -> Any:
        return await calls.run_async(*target_of(self), partial(cls._agenerate, self), *args, **kwargs)

    def _stream(self: Any, *args: Any, **kwargs: Any) -> Any:
        return calls.stream(*target_of(self), partial(cls._stream, self), *args, **kwargs)

    def _astream(self: Any, *args: Any, **kwargs: Any) -> Any:
        return calls.astream(*target_of(self), partial(cls._astream, self), *args, **kwargs)

    base = _chat_model()
    ours = (_generate, _agenerate, _stream, _astream)
    return {
        each.__name__: each
        for each in ours
        if getattr(cls, each.__name__) is not getattr(base, each.__name__)
    }


def _chat_model() -> Any:
    return need("langchain_core.language_models.chat_models").BaseChatModel


class _Targets:
    """Provider and model of each chat model, as LangChain's own traces name them. To ask takes as long as the rest of a call."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, object, _Target]] = {}
        """By the `id` of the model, which is held so that no other gets the same, with the name that it had."""

    def of(self, model: Any) -> _Target:
        fields = model.__dict__
        name = fields.get("model_name") or fields.get("model")
        known = self._known.get(id(model))
        if known is not None and known[0] is model and known[1] == name:
            return known[2]
        # The only place that knows the provider; every chat model has it.
        names: dict[str, Any] = safe_call(model._get_ls_params, None) or {}  # noqa: SLF001
        provider, model_name = names.get("ls_provider"), names.get("ls_model_name")
        target = (
            provider if isinstance(provider, str) else None,
            model_name if isinstance(model_name, str) else None,
        )
        if len(self._known) >= _MOST_MODELS:
            self._known.clear()
        self._known[id(model)] = (model, name, target)
        return target


def _without_client_retries(model: Any) -> Any:
    copy = model.model_copy(update={"max_retries": 0} if has_field(model, "max_retries") else None)
    for name in _MADE_LATE:
        copy.__dict__.pop(name, None)
    switch_off_sdk_retries(copy, *_ROOTS)
    for name in _RESOURCES:
        resource = safe_getattr(copy, name)
        client = safe_getattr(resource, "_client")
        if client is None:
            continue
        try:
            setattr(copy, name, type(resource)(without_sdk_retries(client)))
        except (RetriesNotSwitchable, AttributeError, TypeError, ValueError):
            # It repeats on its own; the loop notices that and warns.
            continue
    return copy
