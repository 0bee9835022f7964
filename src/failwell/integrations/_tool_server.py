"""The tools of an MCP server: a failed one answers with a typed result, and one that says a repeat is harmless is repeated.

A client, and the model behind it, sees the kind, the retry class, the wait and what to do, and not the exception's text.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

from failwell.adapters.describe import describe
from failwell.agents.tool_errors import ToolCalls, ToolFailure
from failwell.calls.argument_checks import check_callable
from failwell.calls.attempt_loop import Parked
from failwell.calls.operation import Operation
from failwell.calls.policy import Match, Rule
from failwell.calls.retry_options import RetryParameters
from failwell.calls.suppress import OnRaise, catch_async
from failwell.calls.task_calls import task_options
from failwell.delivery.plain_text import finite, json_text
from failwell.errors.axes import Category
from failwell.errors.fault import Fault
from failwell.errors.faults import ToolTerminal
from failwell.errors.foreign_objects import safe_call
from failwell.errors.redact import cut, redact_value
from failwell.errors.report import ErrorReport
from failwell.errors.safe_str import words_of
from failwell.store.effects.call import EffectCall, EffectOptions, run_effect_async
from failwell.store.effects.claims import ClaimStore
from failwell.store.effects.effect import KEEP, WAIT, effect_policy, is_idempotent, is_read_only
from failwell.store.effects.keys import argument_digests, effect_key

_R = TypeVar("_R")
_PROTOCOL_ERROR = "MCPError"
_LONGEST_WORD = 2_000


def is_repeatable(annotations: object) -> bool | None:
    """Whether a tool may be called again although it may have run: by its `readOnlyHint` and its `idempotentHint`.

    `None` where the tool says nothing; nothing is repeated then either. Hints of a server that you do not trust are
    no more than a claim.

    Args:
        annotations: A tool's annotations, as JSON or as the object that an MCP library made of it.
    """
    return True if is_read_only(annotations) else is_idempotent(annotations)


def _matches_all(_report: ErrorReport) -> bool:
    return True


_ONCE = Rule(
    match=Match.of(when=_matches_all),
    retryable=False,
    name="the tool does not say that a repeat is harmless",
)


class ToolEffects(NamedTuple):
    """How effects of tools are claimed: the key of a call, and where claims are kept."""

    key: Callable[[str, Mapping[str, Any]], str | None]
    store: ClaimStore | None = None

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        key: str,
        call: Callable[[], Awaitable[Any]],
        result_type: Any,
    ) -> Any:
        """The result of `call()`, or the stored one of an earlier call with the same key."""

        async def called() -> Any:
            result = await call()
            # A low-level server returns what it sends, the others an object of their library.
            is_plain = isinstance(result, dict)
            return cast("Any", result) if is_plain else result.model_dump(mode="json", by_alias=True)

        # Argument names of a tool are its own, so none of them is left out as the object of a method.
        digests = argument_digests({"arguments": dict(arguments)}, frozenset())
        effect = EffectCall(effect_key(f"mcp.{tool}", "", key), digests, called)
        return result_type.model_validate(
            await run_effect_async(effect, EffectOptions(store=self.store, keep=KEEP, wait=WAIT))
        )


class ToolServer:
    """Calls the tools of one server."""

    __slots__ = ("_effects", "_once", "_options", "_tools")

    def __init__(
        self,
        observer: Callable[[ErrorReport], object] | None,
        parameters: RetryParameters,
        *,
        effects: ToolEffects | None = None,
    ) -> None:
        if effects is not None:
            check_callable("effect_key", effects.key)
        self._effects = effects
        self._options = task_options("mcp", **parameters)
        policy = self._options.policy
        self._once = replace(self._options, policy=replace(policy, rules=(_ONCE, *policy.rules)))
        self._tools = ToolCalls(observer=observer)

    async def call(
        self,
        tool: str,
        annotations: Callable[[], Awaitable[object]],
        call: Callable[[], Awaitable[_R]],
        arguments: Mapping[str, Any],
        result_type: type[_R],
    ) -> _R | ToolFailure:
        """The result of `call()`, which is a `result_type`, or its failure for the client.

        Raises:
            Exception: an error of the protocol, which is no failure of the tool.
        """
        effects = self._effects
        key = None if effects is None else effects.key(tool, arguments)
        if effects is not None and key and effect_policy(await annotations()) == "claim":
            call = partial(effects.call, tool, arguments, key, call, result_type)
        try:
            operation = Operation(self._options)
            await operation.hold_async()
        except Fault as refusal:
            # A guard or a budget allows no call.
            return self._failure(refusal, tool)
        while True:
            operation.enter()
            try:
                # If the client cancels the call, that is no failure.
                with OnRaise(abandoned=lambda _error: operation.abandoned()):
                    result, error = await catch_async(call)
                if error is None:
                    operation.succeeded()
                    return result
                if type(error).__name__ == _PROTOCOL_ERROR:
                    operation.abandoned()
                    raise error
            finally:
                operation.detach()
            # Whatever else a tool raises is a result for the client.
            if operation.loop is None or not operation.loop.tries:
                hint = is_repeatable(await annotations())
                base = self._options if hint else self._once
                operation.options = replace(base, name=base.name or f"tool {tool}", idempotent=hint)
            try:
                delay = await operation.failed_async(error)
            except Parked as parked:
                error, delay = parked, None
            if delay is None:
                return self._failure(error, tool, operation)
            await operation.wait_async(delay)

    def _failure(self, error: Exception, tool: str, operation: Operation | None = None) -> ToolFailure:
        idempotent = None if operation is None else operation.options.idempotent
        failure = self._tools.failed(_input_fault(error) or error, tool=tool, idempotent=idempotent)
        content = failure.content
        calls = 0 if operation is None or operation.loop is None else operation.loop.calls
        if calls > 1:
            content = {**content, "attempts": calls}
        word = _word_of_tool(error)
        if word is not None:
            content = {**content, "message": word}
        if content is failure.content:
            return failure
        return replace(failure, content=finite(content), text=json_text(content))


def _input_fault(error: Exception) -> Fault | None:
    """The fault that says which arguments of the call were wrong, if that is what failed."""
    if type(error).__name__ not in ("ValidationError", "ToolError"):
        return None
    cause = error.__cause__ or error
    if type(cause).__name__ != "ValidationError":
        return None
    report = describe(cause, origin="input")
    if report.category is not Category.USER_INPUT:
        return None
    fault = ToolTerminal(kind="tool.input_invalid", fields_invalid=list(report.fields_invalid or ()))
    fault.__cause__ = error
    return fault


def _word_of_tool(error: Exception) -> str | None:
    """The text of a `ToolError` that the tool raised itself and not while it handled another exception.

    Both libraries document that text as the tool's own word to the model. It is masked and cut all the same.
    """
    if type(error).__name__ != "ToolError":
        return None
    inner = error.__cause__ if type(error.__cause__) is type(error) else error
    if inner is None or inner.__cause__ is not None or inner.__context__ is not None:
        return None
    text = safe_call(words_of, None, inner)
    return cut(str(redact_value(text)), _LONGEST_WORD) if isinstance(text, str) and text else None
