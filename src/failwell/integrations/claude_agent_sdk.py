"""Claude Agent SDK: `query = reliability()` is its `query` under one retry authority.

Claude Code repeats the calls to the API itself, ten times and also after a rejected key, and says so in its messages. The
plugin decides about each of these repeats: one that cannot help ends the run with a typed error. Claude Code waits, and
keeps the delay that the server asked for.

Example:
    >>> from failwell.integrations.claude_agent_sdk import reliability
    >>> async def ask(prompt):
    ...     query = reliability()
    ...     return [message async for message in query(prompt=prompt)]
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from copy import copy
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any, Unpack, cast

from failwell.adapters.checked_replies import checked
from failwell.adapters.log_records.log_record import fields_of
from failwell.adapters.vendors.claude_agent_sdk import read_result
from failwell.agents.tool_errors import ToolCalls, ToolFailure
from failwell.calls.model_calls import ModelCalls, refuse_options
from failwell.calls.operation import Operation
from failwell.calls.retry_options import RetryOptions, RetryParameters
from failwell.calls.suppress import OnRaise, catch_async
from failwell.errors.context import attach
from failwell.errors.facts import NotBefore
from failwell.errors.fault import Fault
from failwell.errors.faults import ToolTerminal
from failwell.errors.foreign_objects import safe_getattr
from failwell.errors.missing_extra import need
from failwell.errors.report import ErrorReport

__all__ = ["ApiCallFailed", "hooks", "reliability", "reliable_tools"]

_PROVIDER = "anthropic"
_EVENT = "PostToolUseFailure"
_STOP = 1.0
"""Seconds for which a failed run waits for the end of Claude Code."""
_TYPED = '{"kind": "'
"""How the result of a tool begins that `reliable_tools` has typed and reported already."""


class ApiCallFailed(Fault):
    """A call of Claude Code to the API failed, and a repeat would not help or is one too many."""


def reliability(
    *,
    on_tool_error: Callable[[ErrorReport], object] | None = None,
    **parameters: Unpack[RetryParameters],
) -> Callable[..., AsyncGenerator[Any]]:
    """The SDK's `query`, whose failed API calls are repeated as their failures allow and whose errors are typed.

    It takes what `claude_agent_sdk.query` takes and yields its messages. Claude Code repeats one call to the API, never
    the run, so tools that have run do not run again. Tool errors are reported through the hook of `hooks()`.

    Args:
        on_tool_error: Called with the report of each failed tool call; `failwell.calls.observe` by default.
        parameters: Those of `failwell.retry`, except that Claude Code waits by its
            own clock and chooses the waits for which the server named none. `stream` limits the pauses between messages.

    Raises:
        TypeError: a parameter has the wrong type, or there is none of that name.
    """
    calls = ModelCalls("claude_agent_sdk", **parameters)
    refuse_options(calls.options(_PROVIDER, None), "claude_agent_sdk", "shrink")
    tools = ToolCalls(observer=on_tool_error)
    library = cache(lambda: need("claude_agent_sdk"))
    own_hooks = cache(lambda: _hooks(library(), tools))

    async def query(*, prompt: Any, options: Any = None, transport: Any = None) -> AsyncGenerator[Any]:
        sdk = library()
        settings = sdk.ClaudeAgentOptions() if options is None else copy(options)
        settings.hooks = _merged(settings.hooks, own_hooks())
        model = safe_getattr(settings, "model")
        watch = _ApiCalls(calls, model)
        await watch.begin()
        transport = transport or _own_transport(prompt, settings)
        source = sdk.query(prompt=prompt, options=settings, transport=transport)

        async def failed(error: Exception) -> None:
            await _stop(transport)
            # It gets its ledger.
            await watch.end(error)

        def abandoned(reason: BaseException) -> None:
            if not isinstance(reason, GeneratorExit):
                # It was cancelled. A reader who has enough lets Claude Code write its session down.
                _terminate(transport)
            watch.abandoned()

        limited = aclosing(_limited(source, calls.options(_PROVIDER, model)))
        async with limited as messages, OnRaise(failed, abandoned=abandoned):
            async for message in checked(_PROVIDER, messages):
                await watch.see(message)
                yield message

    return query


def hooks(*, on_tool_error: Callable[[ErrorReport], object] | None = None) -> dict[str, list[Any]]:
    """What `ClaudeAgentOptions(hooks=hooks())` takes: each failed tool call is reported, and typed for the model.

    Claude Code shows the model the text of the failure as well, which no hook can replace. For tools of your own that run
    in this process, `reliable_tools` does.

    Args:
        on_tool_error: Called with the report of each failed tool call; `failwell.calls.observe` by default.

    Raises:
        MissingExtra: claude-agent-sdk is not installed.
    """
    return _hooks(need("claude_agent_sdk"), ToolCalls(observer=on_tool_error))


def reliable_tools(
    tools: Sequence[Any], *, on_tool_error: Callable[[ErrorReport], object] | None = None
) -> list[Any]:
    """Copies of the tools for `create_sdk_mcp_server` that return a typed result where they raise.

    Args:
        tools: What the decorator `claude_agent_sdk.tool` made.
        on_tool_error: Called with the report of each failed tool call; `failwell.calls.observe` by default.
    """
    calls = ToolCalls(observer=on_tool_error)
    return [
        replace(tool, handler=calls.guarded(tool.handler, tool=tool.name, answer=_result)) for tool in tools
    ]


def _result(failure: ToolFailure) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": failure.text}], "is_error": True}


def _hooks(sdk: Any, tools: ToolCalls) -> dict[str, list[Any]]:
    async def tool_failed(
        event: Mapping[str, Any], _tool_use_id: str | None, _context: Any
    ) -> dict[str, Any]:
        if event.get("is_interrupt") or str(event.get("error")).startswith(_TYPED):
            return {}
        # The text is the tool's, so nothing is read from it.
        failure = tools.failed(ToolTerminal(kind="tool.failed"), tool=event.get("tool_name"))
        return {"hookSpecificOutput": {"hookEventName": _EVENT, "additionalContext": failure.text}}

    return {_EVENT: [sdk.HookMatcher(hooks=[tool_failed])]}


def _merged(theirs: Mapping[str, list[Any]] | None, ours: dict[str, list[Any]]) -> dict[str, list[Any]]:
    known = dict(theirs or {})
    return {**known, **{event: [*known.get(event, ()), *matchers] for event, matchers in ours.items()}}


class _ApiCalls:
    """Follows the calls that Claude Code makes to the API, from its messages."""

    def __init__(self, calls: ModelCalls, model: str | None) -> None:
        self._calls = calls
        self._model = model
        # The first call is refused here if a budget or a guard refuses it.
        self._operation: Operation | None = calls.operation(_PROVIDER, model)
        self._is_over = False

    async def begin(self) -> None:
        """Wait until the delay is over that the provider requested from somebody else who uses the guard."""
        await self._failing().hold_async()

    async def see(self, message: Any) -> None:
        """Take note of a message.

        Raises:
            ApiCallFailed: Claude Code is about to repeat a call that should not be repeated.
            Parked: the wait before the repeat is too long.
        """
        name = type(message).__name__
        if name == "SystemMessage" and safe_getattr(message, "subtype") == "api_retry":
            error = _api_failure(message.data)
            self._is_over = True
            if await self._failing().failed_async(error) is None:
                raise error
            self._is_over = False
        elif (
            name == "AssistantMessage" and not safe_getattr(message, "error") and self._operation is not None
        ):
            operation, self._operation = self._operation, None
            operation.succeeded()

    async def end(self, error: Exception) -> None:
        """Take note of how the run failed, unless the decision about a repeat has ended it."""
        if self._is_over:
            return
        operation = self._failing()
        if await operation.failed_async(error) is not None:
            # The policy allows a repeat, and Claude Code has given up.
            ledger = operation.failing_loop().ledger()
            last = replace(ledger.attempts[-1], wait=None, reason="Claude Code did not repeat it")
            attach(error, replace(ledger, attempts=(*ledger.attempts[:-1], last), stopped=last.reason))

    def abandoned(self) -> None:
        """Take note of a run whose end says nothing about the API."""
        if self._operation is not None:
            self._operation.abandoned()

    def _failing(self) -> Operation:
        if self._operation is None:
            self._operation = self._calls.operation(_PROVIDER, self._model)
        return self._operation


def _own_transport(prompt: Any, settings: Any) -> Any:
    """The transport that the SDK would make itself, so that its process can be ended; `None` where the SDK has to make it."""
    if safe_getattr(settings, "session_store") is not None:
        # The SDK changes the options first.
        return None
    try:
        client: Any = need("claude_agent_sdk._internal.client")
        configure: Any = safe_getattr(client, "_configure_can_use_tool")
        return client.SubprocessCLITransport(prompt=prompt, options=configure(settings))
    except (ImportError, AttributeError, TypeError):
        # Another release, which is organised otherwise. Its process makes further calls until the SDK has ended it.
        return None


def _terminate(transport: Any) -> Any:
    """End Claude Code at once: the SDK gives it five seconds, in which it would make further calls. Returns the process."""
    process: Any = safe_getattr(transport, "_process")
    if process is None or process.returncode is not None:
        return None
    process.terminate()
    return process


async def _stop(transport: Any) -> None:
    """End Claude Code, and wait for its end for a moment."""
    import asyncio

    process = _terminate(transport)
    if process is None:
        return
    try:
        async with asyncio.timeout(_STOP):
            await process.wait()
    except TimeoutError:
        # The SDK kills it later.
        return


def _limited(source: Any, options: RetryOptions) -> Any:
    if options.stream is None:
        return source
    from failwell.calls.streams.asynchronous import limit_astream

    return limit_astream(_apart(source), options.stream, clock=options.clock)


_tasks: set[Any] = set()
"""Keeps the tasks that read alive until Claude Code has ended."""


async def _apart(source: Any) -> AsyncGenerator[Any]:
    """The messages, read in a task of their own: the SDK takes seconds to end Claude Code, and a deadline is over at once."""
    import asyncio

    pieces: asyncio.Queue[tuple[Any, Exception | None]] = asyncio.Queue(1)

    async def read() -> None:
        async for message in source:
            await pieces.put((message, None))

    async def read_to_the_end() -> None:
        _, error = await catch_async(read)
        # It is raised where the messages are read.
        await pieces.put((None, StopAsyncIteration() if error is None else error))

    task = asyncio.create_task(read_to_the_end())
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)
    try:
        while True:
            message, end = await pieces.get()
            if isinstance(end, StopAsyncIteration):
                return
            if end is not None:
                raise end
            yield message
    finally:
        task.cancel()


def _api_failure(data: Mapping[str, Any]) -> ApiCallFailed:
    status = data.get("error_status")
    reason = data.get("error")
    if status is None and reason in (None, "unknown"):
        # There was no reply.
        fields: dict[str, Any] = {"kind": "provider.connection", "provider": _PROVIDER}
    else:
        fields = fields_of(
            read_result(SimpleNamespace(terminal_reason=reason, api_error_status=status, errors=[]))
        )
    delay = data.get("retry_delay_ms")
    if isinstance(delay, int | float):
        fields["not_before"] = NotBefore(after=cast("float", delay) / 1000, source="Claude Code")
    return ApiCallFailed(**fields)
