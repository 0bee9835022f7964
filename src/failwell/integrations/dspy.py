"""DSPy: `dspy.configure(**reliability(lm))` puts model and tool calls under one retry authority.

DSPy's own retries are off, so each request is an attempt in the ledger. A tool that raises gives the model a typed result
instead of a traceback, and the program goes on.

Example:
    >>> from failwell.integrations.dspy import reliability
    >>> def configure(name):
    ...     import dspy
    ...     dspy.configure(**reliability(dspy.LM(name)))
"""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, TypedDict, Unpack

from failwell.agents.tool_errors import ToolCalls
from failwell.calls.model_calls import ModelCalls, PluginOptions, Subclasses
from failwell.calls.retry_options import RetryOptions
from failwell.errors.missing_extra import need
from failwell.errors.report import ErrorReport

__all__ = ["reliability"]


class Settings(TypedDict):
    """What `dspy.configure` and `dspy.context` take."""

    lm: Any
    callbacks: list[Any]


def reliability(
    lm: Any,
    options: RetryOptions | None = None,
    *,
    on_tool_error: Callable[[ErrorReport], object] | None = None,
    **parameters: Unpack[PluginOptions],
) -> Settings:
    """The arguments of `dspy.configure` and `dspy.context`: a copy of `lm` that repeats, and a callback for tools.

    A streamed answer is repeated only before its first chunk. DSPy reads it itself, so the shortest limit of `stream` holds
    for each read. Callbacks that are configured already stay.

    Args:
        lm: The language model; it is not changed.
        options: All parameters as one value. A parameter beside it wins.
        on_tool_error: Called with the report of each failed tool call; `failwell.observe` by default.
        parameters: See `PluginOptions`; they mean what they mean in `failwell.retry`.

    Raises:
        MissingExtra: dspy is not installed.
        TypeError: `lm` is no language model, or a parameter has the wrong type.
    """
    calls = ModelCalls("dspy", options, **parameters)
    tools = ToolCalls(observer=on_tool_error)
    dspy = need("dspy")
    if not isinstance(lm, dspy.BaseLM):
        raise TypeError(f"`lm` takes a language model such as `dspy.LM(...)`, not {type(lm).__name__}")
    copy: Any = lm.copy(num_retries=0)
    Subclasses(lambda cls: _methods(cls, calls, dspy.settings)).put(copy)
    return Settings(lm=copy, callbacks=[*(dspy.settings.callbacks or ()), _tool_callback(tools)])


def _methods(cls: Any, calls: ModelCalls, settings: Any) -> dict[str, Callable[..., Any]]:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        def attempt(*args: Any, **kwargs: Any) -> Any:
            with calls.reading() as note_chunk, _watched(settings, note_chunk):
                return cls.__call__(self, *args, **_limited(calls, settings, kwargs))

        return calls.run(*_target(self), attempt, *args, **kwargs)

    async def acall(self: Any, *args: Any, **kwargs: Any) -> Any:
        async def attempt(*args: Any, **kwargs: Any) -> Any:
            with calls.reading() as note_chunk, _watched(settings, note_chunk):
                return await cls.acall(self, *args, **_limited(calls, settings, kwargs))

        return await calls.run_async(*_target(self), attempt, *args, **kwargs)

    return {"__call__": call, "acall": acall}


def _target(lm: Any) -> tuple[str | None, str]:
    provider, slash, model = lm.model.partition("/")
    return (provider, model) if slash else (None, provider)


def _limited(calls: ModelCalls, settings: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call; DSPy reads a stream itself, with this time limit for each read."""
    limit = calls.read_limit
    return kwargs if limit is None or settings.send_stream is None else {"timeout": limit, **kwargs}


def _watched(settings: Any, note_chunk: Callable[[], None]) -> Any:
    stream = settings.send_stream
    return nullcontext() if stream is None else settings.context(send_stream=_Stream(stream, note_chunk))


class _Stream:
    """The stream of a program, which notes what is sent."""

    def __init__(self, stream: Any, note_chunk: Callable[[], None]) -> None:
        self._stream = stream
        self._note_chunk = note_chunk

    async def send(self, chunk: Any) -> None:
        self._note_chunk()
        await self._stream.send(chunk)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _tool_callback(tools: ToolCalls) -> Any:
    class Reliability(need("dspy.utils.callback").BaseCallback):
        """Puts a function in place of a tool's own before it is called for the first time."""

        def on_tool_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:  # noqa: ARG002
            instance.func = tools.guarded(instance.func, tool=instance.name)

    return Reliability()
