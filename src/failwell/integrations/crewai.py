"""CrewAI: `reliability(crew).kickoff()` puts model and tool calls under one retry authority.

The retries of the client, of CrewAI's LLM class and of its agents are off, so each request is an attempt in the ledger.
A tool that raises gives the model a typed `ToolFailure` instead of the exception's text, and the crew goes on.

Example:
    >>> from failwell.integrations.crewai import reliability
    >>> def kick_off(crew):
    ...     return reliability(crew).kickoff()
"""

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar, Unpack

from failwell.agents.tool_errors import ToolCalls, ToolFailure
from failwell.calls.model_calls import (
    Copies,
    ModelCalls,
    PluginOptions,
    Subclasses,
    has_field,
    switch_off_sdk_retries,
)
from failwell.calls.retry_options import RetryOptions
from failwell.errors.foreign_objects import safe_getattr
from failwell.errors.missing_extra import need
from failwell.errors.report import ErrorReport

__all__ = ["reliability"]

_T = TypeVar("_T")
_MODELS_OF_CREW = ("manager_llm", "planning_llm", "chat_llm")
_MODELS_OF_AGENT = ("llm", "function_calling_llm")
_CLIENTS = ("_client", "_async_client")


def reliability(
    crew: _T,
    options: RetryOptions | None = None,
    *,
    on_tool_error: Callable[[ErrorReport], object] | None = None,
    **parameters: Unpack[PluginOptions],
) -> _T:
    """Change a `Crew`, or one `Agent`, in place: models are repeated as their failures allow, tool errors become results.

    A streamed answer is repeated only before its first chunk. CrewAI reads it itself, so the shortest limit of `stream`
    holds for each read. Agents and tools that are added later are left alone.

    Args:
        crew: The crew or agent; it is returned.
        options: All parameters as one value. A parameter beside it wins.
        on_tool_error: Called with the report of each failed tool call; `failwell.observe` by default.
        parameters: See `PluginOptions`; they mean what they mean in `failwell.retry`.

    Raises:
        MissingExtra: crewai is not installed.
        TypeError: it is no crew or agent, or a parameter has the wrong type.
    """
    models = _Models(ModelCalls("crewai", options, **parameters))
    tools = _Tools(ToolCalls(observer=on_tool_error))
    target: Any = crew
    if safe_getattr(target, "agents") is not None:
        tasks = list(target.tasks)
        manager = safe_getattr(target, "manager_agent")
        agents = [
            *target.agents,
            *(task.agent for task in tasks if task.agent),
            *([manager] if manager else []),
        ]
        models.install(target, _MODELS_OF_CREW)
    elif safe_getattr(target, "max_retry_limit") is not None:
        tasks, agents = [], [target]
    else:
        raise TypeError(f"`reliability` takes a `Crew` or an `Agent`, not {type(target).__name__}")
    for agent in agents:
        # Its loop runs the whole task again after any error.
        agent.max_retry_limit = 0
        models.install(agent, _MODELS_OF_AGENT)
    for owner in (*agents, *tasks):
        tools.install(safe_getattr(owner, "tools") or ())
    return crew


class _Models:
    """Puts copies of models in their places: one copy for each model, one class for each of their classes."""

    def __init__(self, calls: ModelCalls) -> None:
        self._calls = calls
        self._base: Any = need("crewai.llms.base_llm").BaseLLM
        self._is_retrying: Any = safe_getattr(need("crewai.llms.retry"), "_active_llm_rate_limit_retry")
        self._copies = Copies(self._methods, lambda model: _without_client_retries(model, calls.read_limit))

    def install(self, owner: Any, names: Iterable[str]) -> None:
        """Put copies into these attributes of `owner`, where they hold a model."""
        for name in names:
            model = safe_getattr(owner, name)
            if isinstance(model, self._base):
                setattr(owner, name, self._copies.of(model))

    def _methods(self, cls: Any) -> dict[str, Callable[..., Any]]:
        calls = self._calls

        def call(model: Any, *args: Any, **kwargs: Any) -> Any:
            def attempt(*args: Any, **kwargs: Any) -> Any:
                with calls.reading() as note_chunk, self._one_attempt(note_chunk):
                    return cls.call(model, *args, **kwargs)

            return calls.run(safe_getattr(model, "provider"), model.model, attempt, *args, **kwargs)

        async def acall(model: Any, *args: Any, **kwargs: Any) -> Any:
            async def attempt(*args: Any, **kwargs: Any) -> Any:
                with calls.reading() as note_chunk, self._one_attempt(note_chunk):
                    return await cls.acall(model, *args, **kwargs)

            return await calls.run_async(
                safe_getattr(model, "provider"), model.model, attempt, *args, **kwargs
            )

        def _emit_stream_chunk_event(model: Any, *args: Any, **kwargs: Any) -> Any:
            _note_chunk.get()()
            return cls._emit_stream_chunk_event(model, *args, **kwargs)

        for method in (call, acall):
            # CrewAI puts its own loop around a method that has no such mark.
            method.__dict__["_crewai_rate_limit_wrapped"] = True
        return {"call": call, "acall": acall, "_emit_stream_chunk_event": _emit_stream_chunk_event}

    @contextmanager
    def _one_attempt(self, note_chunk: Callable[[], None]) -> Generator[None]:
        """A block in which CrewAI's loop over rate limits stays off, and the chunks that are shown are noted."""
        token = _note_chunk.set(note_chunk)
        flag = self._is_retrying
        flag_token = None if flag is None else flag.set(True)
        try:
            yield
        finally:
            if flag is not None:
                flag.reset(flag_token)
            _note_chunk.reset(token)


_note_chunk: ContextVar[Callable[[], None]] = ContextVar("failwell_crewai_chunk", default=lambda: None)


def _without_client_retries(model: Any, read_limit: float | None) -> Any:
    changes: dict[str, Any] = {"max_retries": 0} if has_field(model, "max_retries") else {}
    if safe_getattr(model, "is_litellm") is True:
        changes["additional_params"] = {**model.additional_params, "num_retries": 0, "max_retries": 0}
    if read_limit is not None and safe_getattr(model, "stream") is True and has_field(model, "timeout"):
        # CrewAI reads the stream itself; its clients are made again with this time limit for each read.
        copy = model.model_copy(update={**changes, "timeout": read_limit})
        for name in _CLIENTS:
            if safe_getattr(copy, name) is not None:
                setattr(copy, name, None)
        return copy
    copy = model.model_copy(update=changes)
    switch_off_sdk_retries(copy, *_CLIENTS)
    return copy


class _Tools:
    """Makes tools return their failures, with one class for each class of tools."""

    def __init__(self, tools: ToolCalls) -> None:
        self._tools = tools
        self._subclasses = Subclasses(self._methods)
        self._home: Any = need("crewai.tools.base_tool")
        self._failure: Any = need("crewai.tools.tool_failure")

    def install(self, tools: Iterable[Any]) -> None:
        """Change the tools in place."""
        for tool in tools:
            if not isinstance(tool, self._home.BaseTool) or self._subclasses.holds(tool):
                continue
            tool.cache_function = self._cache_successes(tool.cache_function)
            if has_field(tool, "func"):
                # Such a tool validates its arguments first; what it says about them is the model's to read.
                tool.func = self._tools.guarded(tool.func, tool=tool.name, answer=self._answer)
            else:
                self._subclasses.put(tool)
                self._keep_registered(tool)

    def _methods(self, cls: Any) -> dict[str, Callable[..., Any]]:
        guarded, answer = self._tools.guarded, self._answer

        def _run(tool: Any, *args: Any, **kwargs: Any) -> Any:
            return guarded(cls._run, tool=tool.name, answer=answer)(tool, *args, **kwargs)

        async def _arun(tool: Any, *args: Any, **kwargs: Any) -> Any:
            return await guarded(cls._arun, tool=tool.name, answer=answer)(tool, *args, **kwargs)

        return {"_run": _run, "_arun": _arun}

    def _keep_registered(self, tool: Any) -> None:
        """Let CrewAI load tools of this class as it did: a class enters itself under its name, and so did ours."""
        registry = safe_getattr(self._home, "_TOOL_TYPE_REGISTRY")
        cls: Any = type(tool).__mro__[1]
        if isinstance(registry, dict):
            registry[f"{cls.__module__}.{cls.__qualname__}"] = cls

    def _cache_successes(self, function: Callable[..., bool]) -> Callable[..., bool]:
        """CrewAI asks this function whether to keep a result; a failure was never kept, because it was raised."""
        failure = self._failure.ToolFailure

        def is_cached(args: Any = None, result: Any = None) -> bool:
            return not isinstance(result, failure) and function(args, result)

        return is_cached

    def _answer(self, failure: ToolFailure) -> Any:
        return self._failure.ToolFailure(
            message=failure.text,
            reason=self._failure.ToolFailureReason.EXCEPTION,
            retryable=failure.report.retryable,
            details=failure.content,
        )
