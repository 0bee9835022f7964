"""Runs one tool call: every check before the call, in a fixed order, and every bound on its result.

The order is part of the security of a tool: name, grant, complete arguments, secrets, schema, policy, approval, call.
A denial never names a value of an argument. Tools that must not happen twice run under a claim. A model sees a bounded
result, marked as text that nobody has vouched for.
"""

import os
import re
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from hashlib import blake2b
from json import dumps, loads
from pathlib import Path
from secrets import token_hex
from typing import Any, cast

from failwell.adapters.describe import describe
from failwell.agents.audit import NotAudited, TurnAudit
from failwell.agents.grants import GrantRequest, StageGrants, digest_of
from failwell.agents.people.queue import InteractionRequired
from failwell.agents.recovery import Recovery
from failwell.agents.tool_loop import ToolLoopBreaker
from failwell.agents.tools.tool import ApprovalRequest, Approver, Tool, ToolContext
from failwell.calls.attempt_loop import Watcher
from failwell.calls.backoff import Backoff
from failwell.calls.cancel import CancelScope
from failwell.calls.policy import Match, Policy, Rule, Schedule
from failwell.calls.retry import run_async
from failwell.calls.retry_options import RetryOptions
from failwell.calls.suppress import catch, catch_async
from failwell.delivery.plain_text import finite, json_text
from failwell.errors.fault import Fault
from failwell.errors.faults import ToolTerminal, ToolTransient
from failwell.errors.field_paths import declared_names, field_path
from failwell.errors.foreign_objects import safe_call
from failwell.errors.frozen import frozen
from failwell.errors.json_walk import map_texts, texts_in
from failwell.errors.missing_extra import need
from failwell.errors.redact import MARK, mask_known, redact_text, redact_value
from failwell.errors.report import ErrorReport
from failwell.errors.safe_str import words_of
from failwell.store.effects.call import EffectCall, EffectOptions, run_effect_async
from failwell.store.effects.claims import ClaimStore
from failwell.store.effects.keys import effect_key
from failwell.store.private_files import create_private

_KEEP = 30 * 86_400.0
_WAIT = 60.0


class OnceCalls:
    """The calls of one step with effects.

    Two calls are the same effect if the tool and the arguments are the same and as many such calls have succeeded before, in
    this run of the step or in one that was interrupted.

    Args:
        store: Keeps the claims.
        scope: The step, the same for all its attempts.
    """

    def __init__(self, store: ClaimStore, scope: str) -> None:
        self._store = store
        self._scope = scope
        self.succeeded: Counter[str] = Counter()
        """How often each call succeeded. A session that is resumed fills it again."""

    async def run(
        self, tool: str, arguments: Mapping[str, Any], function: Callable[[], Awaitable[Any]]
    ) -> Any:
        """The result of `function`, which is not called where the effect has happened already.

        Raises:
            EffectUnclear: it was begun before, and nobody knows whether it happened.
        """
        text = dumps(arguments, sort_keys=True, ensure_ascii=False, default=str)
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
        call = f"{tool}/{digest}"
        key = effect_key(tool, self._scope, f"{digest}/{self.succeeded[call] + 1}")

        async def once() -> Any:
            # A result is stored, so the first caller gets what a later one would get.
            return loads(json_text(finite(await function())))

        options = EffectOptions(store=self._store, keep=_KEEP, wait=_WAIT)
        result = await run_effect_async(EffectCall(key, {}, once), options)
        self.succeeded[call] += 1
        return result


_MARKER = re.compile(r"<(\s{0,9}/?\s{0,9}tool_result)", re.IGNORECASE)
_MOST_LINES = 2_000
_HEAD = 0.7
"""The share of a shortened result that is its beginning; the rest is its end."""


def bounded(value: Any, tool: str, longest: int, scratch: Path | None) -> str:
    """The text of a result, shortened and kept in a file beside where it is too long."""
    text = value if isinstance(value, str) else json_text(finite(value))
    text = redact_text(text, 2 * len(text) + 100)
    if len(text) > longest or text.count("\n") >= _MOST_LINES:
        text = _shortened(text, longest, _spilled(text, tool, scratch))
    return untrusted(text, tool)


def masked_values(value: Any) -> Any:
    """A result without the values that are known to be secret; what only looks like one is left."""
    return map_texts(
        value, lambda text: mask_known(text, 2 * len(text) + 100), deepest=sys.getrecursionlimit()
    )


def untrusted(text: str, tool: str) -> str:
    """The text between markers that say it is the tool's and not an instruction. It can neither close nor open them."""
    inner = _MARKER.sub(r"<\\\1", text)
    return f'<tool_result tool="{tool}" trusted="false">\n{inner}\n</tool_result>'


def _shortened(text: str, longest: int, file: str | None) -> str:
    lines = text.splitlines()
    if len(lines) >= _MOST_LINES:
        head = int(_MOST_LINES * _HEAD)
        begin, end = "\n".join(lines[:head]), "\n".join(lines[head - _MOST_LINES :])
    else:
        begin = end = text
    limit = int(longest * _HEAD)
    begin, end = begin[:limit], end[-(longest - limit) :]
    where = "" if file is None else f"; all of it is in {file}"
    return f"{begin}\n[… {len(text) - len(begin) - len(end)} characters left out{where} …]\n{end}"


def _spilled(text: str, tool: str, scratch: Path | None) -> str | None:
    """The file that holds all of the result, or `None` where it is not wanted or could not be written."""
    if scratch is None:
        return None
    name = f"tool-{''.join(letter if letter.isalnum() else '_' for letter in tool[:40])}-{token_hex(6)}.txt"
    try:
        with os.fdopen(create_private(scratch / name), "wb") as file:
            file.write(text.encode("utf-8", "replace"))
    except OSError:
        # The model has the beginning and the end.
        return None
    return name


_LONGEST_DETAIL = 2_000
_NOT_CALLED = frozenset({"tool.not_found", "tool.input_invalid", "tool.denied"})
_CORRECTABLE = frozenset({"tool.not_found", "tool.input_invalid"})


@frozen
class ToolOutcome:
    """How one call ended: a value, or a report."""

    tool: str
    value: Any = None
    report: ErrorReport | None = None
    seen: str = ""
    """What the model sees."""

    @property
    def is_correctable(self) -> bool:
        """Whether the model made a mistake that it can correct: an unknown tool, or arguments that do not fit."""
        return self.report is not None and self.report.kind in _CORRECTABLE


class Dispatcher:
    """Runs the calls of one agent.

    Args:
        tools: Every registered tool by name.
        granted: The names that this agent may call; `None` grants all.
        agent: The name of the agent, for people who approve.
        approver: Asks a person. Without one, a tool that needs an approval is denied.
        cancel: The scope of the turn.
        longest: Characters of a result that a model sees.
        shows_text: Whether the model also sees the redacted text of what a tool raised.
        once: Claims the calls that must not happen twice; without it they are not protected from a crash.
        grants: Asks a person about single calls of tools that are not granted; without it they are denied.
        audit: Records each call before it is made, and what became of it.
        recovery: Asks a person after a failed call, for the tools that want it.
    """

    def __init__(
        self,
        tools: Mapping[str, Tool],
        *,
        granted: Collection[str] | None = None,
        agent: str = "",
        approver: Approver | None = None,
        cancel: CancelScope | None = None,
        longest: int = 50 * 1024,
        shows_text: bool = False,
        once: OnceCalls | None = None,
        grants: StageGrants | None = None,
        audit: TurnAudit | None = None,
        recovery: Recovery | None = None,
    ) -> None:
        self._tools = tools
        self._granted = frozenset(tools if granted is None else granted)
        self._agent = agent
        self._approver = approver
        self._cancel = cancel
        self._longest = longest
        self._shows_text = shows_text
        self._once = once
        self._grants = grants
        self.audit = audit
        self._recovery = recovery
        self._breaker = ToolLoopBreaker()
        self._validators: dict[str, Any] = {}

    @property
    def offered(self) -> list[Tool]:
        """The tools that the model is told about."""
        return [tool for name, tool in self._tools.items() if name in self._granted]

    async def call(self, name: str, arguments: object, context: ToolContext) -> ToolOutcome:
        """Run one call. Its failures are part of the outcome; a cancellation is raised.

        Raises:
            InteractionRequired: the call needs an approval, and nobody can be asked.
            NotAudited: the audit cannot be written, so nothing was called.
        """
        refusal = self._breaker.refuses(name, arguments, run=self._agent)
        if refusal is not None:
            report = describe(refusal, origin="tool")
            return ToolOutcome(
                tool=name, report=report, seen=json_text({"error": finite(refusal.result(report))})
            )
        value, error = await catch_async(self._run, name, arguments, context)
        self._check_cancel()
        if isinstance(error, InteractionRequired | NotAudited):
            # Nothing that the model could do about it.
            raise error
        seen = ""
        if error is None:
            seen, error = catch(_seen_value, value, name, self._longest, context.scratch)
        if error is not None:
            report = describe(error, origin="tool")
            if self.audit is not None and report.kind in _NOT_CALLED:
                self.audit.record(
                    "tool:denied",
                    tool=name[:100],
                    key=context.key,
                    kind=report.kind,
                    reason=(report.details or {}).get("reason"),
                )
            self._breaker.failed(name, arguments, report, run=self._agent)
            detail = _text_of(error) if self._shows_text else None
            return ToolOutcome(tool=name, report=report, seen=_seen_failure(report, detail))
        self._breaker.succeeded(name, arguments, run=self._agent)
        if self.audit is not None:
            self.audit.record("tool:ended", tool=name, key=context.key)
        return ToolOutcome(tool=name, value=value, seen=seen)

    async def _run(self, name: str, arguments: object, context: ToolContext) -> Any:
        self._check_cancel()
        tool = self._tools.get(name)
        if tool is None:
            raise ToolTerminal(
                kind="tool.not_found",
                details={"tool": name[:100], "known": sorted(self._granted)},
                message="no tool of that name is registered",
            )
        is_granted = name in self._granted
        if not is_granted and self._grants is None:
            raise _denied(name, "not_granted")
        effective = self._checked(tool, arguments, context)
        if not is_granted:
            await self._ask_for_grant(tool, effective, context)
        elif tool.approval == "ask":
            await self._approve(tool, effective)
        self._check_cancel()
        # Asked once: a repeat is a part of the call that was approved.
        value, error = await catch_async(self._repeated, tool, effective, context)
        if error is None:
            return value
        self._check_cancel()
        if self._recovery is None or tool.recovery == "none" or isinstance(error, NotAudited):
            raise error
        return await self._recover(tool, effective, context, error)

    async def _repeated(self, tool: Tool, arguments: Mapping[str, Any], context: ToolContext) -> Any:
        options = _retry_options(tool, None if self.audit is None else self.audit.tool_watcher(tool.name))
        return await run_async(options, self._execute, tool, arguments, context)

    async def _recover(
        self, tool: Tool, arguments: Mapping[str, Any], context: ToolContext, error: Exception
    ) -> Any:
        """Call the tool once more if a person says so. What they type passes the checks of every call."""
        assert self._recovery is not None

        def problem_with(replacement: object) -> str | None:
            effective, refused = catch(self._checked, tool, replacement, context)
            del effective
            return None if refused is None else str(refused)

        report = describe(error, origin="tool")
        replacement = await self._recovery.arguments_for(tool, report, arguments, problem_with)
        self._check_cancel()
        if replacement is None:
            raise error
        # Once: the person decided about this call and not about further ones.
        return await self._repeated(
            replace(tool, attempts=1), self._checked(tool, replacement, context), context
        )

    def _checked(self, tool: Tool, arguments: object, context: ToolContext) -> dict[str, Any]:
        """The complete arguments, if the schema and the policy of the tool allow them."""
        effective = self._effective(tool, arguments)
        self._check_secrets(tool, effective)
        self._check_schema(tool, effective)
        reason = tool.check(effective, context)
        if reason is not None:
            raise _denied(tool.name, reason)
        return effective

    async def _execute(self, tool: Tool, arguments: Mapping[str, Any], context: ToolContext) -> Any:
        if tool.effect != "once" or self._once is None:
            return await self._announced(tool, arguments, context)
        return await self._once.run(tool.name, arguments, lambda: self._announced(tool, arguments, context))

    async def _announced(self, tool: Tool, arguments: Mapping[str, Any], context: ToolContext) -> Any:
        """Run the tool after the audit says so."""
        if self.audit is not None:
            self.audit.tool_called(tool.name, arguments, key=context.key, effect=tool.effect)
        return await _within(tool, arguments, context)

    def _effective(self, tool: Tool, arguments: object) -> dict[str, Any]:
        """The complete arguments: those of the model, and over them those that the file sets."""
        if isinstance(arguments, str):
            try:
                arguments = loads(arguments) if arguments.strip() else {}
            except (ValueError, RecursionError):
                raise _invalid(tool.name, "the arguments are not valid JSON") from None
        if arguments is None:
            arguments = {}
        if not isinstance(arguments, Mapping):
            raise _invalid(tool.name, "the arguments are not a JSON object")
        sent = cast("Mapping[str, Any]", arguments)
        return {**{key: value for key, value in sent.items() if key not in tool.fixed}, **tool.fixed}

    def _check_secrets(self, tool: Tool, arguments: Mapping[str, Any]) -> None:
        """A model never needs a secret: one in its arguments was read somewhere, and would be sent somewhere."""
        for key, value in arguments.items():
            if key not in tool.fixed and any(_holds_secret(text) for text in texts_in(value)):
                raise _invalid(tool.name, f"`{key[:100]}` holds a secret", key)

    def _check_schema(self, tool: Tool, arguments: Mapping[str, Any]) -> None:
        validator = self._validators.get(tool.name)
        if validator is None:
            need("jsonschema_rs", "engine")
            from jsonschema_rs import validator_for

            validator = self._validators[tool.name] = validator_for(
                dict(tool.parameters), retriever=_fetch_nothing
            )
        for error in validator.iter_errors(dict(arguments)):
            path = error.instance_path
            place = field_path(path, declared_names(error.evaluation_path)) if path else ""
            missing = getattr(error.kind, "property", None)
            parameter = ".".join(part for part in (place, str(missing or "")) if part)
            rule = "is missing" if missing else f"breaks the rule `{error.kind.name}`"
            raise _invalid(tool.name, f"`{parameter or 'the arguments'}` {rule}", parameter or None)

    async def _approve(self, tool: Tool, arguments: Mapping[str, Any]) -> None:
        if self._approver is None:
            raise _denied(tool.name, "no_approval_hook")
        request = ApprovalRequest(
            tool=tool.name, agent=self._agent, arguments=redact_value(dict(arguments)), effect=tool.effect
        )
        answer, error = await catch_async(self._approver, request)
        self._check_cancel()
        if isinstance(error, InteractionRequired):
            raise error
        if isinstance(error, TimeoutError):
            raise _denied(tool.name, "approval_timeout") from error
        if error is not None:
            # Whoever cannot be asked has not agreed.
            raise _denied(tool.name, "approval_error") from error
        if answer is not True:
            raise _denied(tool.name, "user_rejected")

    async def _ask_for_grant(self, tool: Tool, arguments: Mapping[str, Any], context: ToolContext) -> None:
        assert self._grants is not None
        request = GrantRequest(
            tool=tool.name,
            agent=self._agent,
            arguments=redact_value(dict(arguments)),
            digest=digest_of(arguments),
            call=context.key,
        )
        reason = await self._grants.refuses(request)
        self._check_cancel()
        if reason is not None:
            raise _denied(tool.name, reason)

    def _check_cancel(self) -> None:
        if self._cancel is not None:
            self._cancel.check()


async def _within(tool: Tool, arguments: Mapping[str, Any], context: ToolContext) -> Any:
    import asyncio

    try:
        async with asyncio.timeout(tool.timeout):
            # A host that sends back what it was sent shows credentials of the file, and a result is stored.
            return masked_values(await tool.run(arguments, context))
    except TimeoutError as error:
        if tool.timeout is None:
            raise
        raise ToolTransient(
            kind="tool.timeout",
            message=f"`{tool.name}` did not end within {tool.timeout:g} s",
            details={"tool": tool.name, "timeout": tool.timeout},
        ) from error


def _fetch_nothing(address: str) -> Any:
    """Stands in for the validator's own client, which would read addresses and files that a schema names."""
    raise ValueError(f"a schema may not refer to {address[:100]}")


def _retry_options(tool: Tool, watcher: Watcher | None) -> RetryOptions:
    schedule = Schedule(max_attempts=tool.attempts, backoff=Backoff(jitter=0.2))
    return RetryOptions(
        policy=Policy(rules=(Rule(match=Match(), schedule=schedule, name="tool"),)),
        name=f"tool {tool.name}",
        watcher=watcher,
        idempotent=tool.effect != "once" or None,
    )


def _seen_value(value: Any, tool: str, longest: int, scratch: Path | None) -> str:
    """What a model sees of a result. A result that JSON cannot write is a failure of the tool."""
    try:
        return bounded(value, tool, longest, scratch)
    except (ValueError, RecursionError) as error:
        raise ToolTerminal(
            kind="tool.failed", message=f"the result of `{tool}` is not JSON", details={"reason": "not_json"}
        ) from error


def _seen_failure(report: ErrorReport, detail: str | None) -> str:
    """What a model sees of a failed call: our words, and the tool's only where the file allows it."""
    seen: dict[str, Any] = {"error": finite(report.view("model"))}
    if detail is not None:
        seen["detail"] = detail
    return json_text(seen)


def _text_of(error: Exception) -> str:
    """The text of what a tool raised, redacted and cut."""
    words = safe_call(words_of, "", error)
    return redact_text(f"{type(error).__name__}: {words}", _LONGEST_DETAIL)


def _holds_secret(text: str) -> bool:
    return redact_text(text, 2 * len(text) + 100).count(MARK) > text.count(MARK)


def _denied(tool: str, reason: str) -> Fault:
    return ToolTerminal(
        kind="tool.denied",
        message=f"`{tool}` may not be called: {reason}",
        details={"tool": tool, "reason": reason},
        caller_facing=True,
    )


def _invalid(tool: str, reason: str, parameter: str | None = None) -> Fault:
    details: dict[str, Any] = {"tool": tool, "reason": reason}
    if parameter is not None:
        details["parameter"] = parameter[:200]
    return ToolTerminal(
        kind="tool.input_invalid",
        message=f"`{tool}` cannot be called so: {reason}",
        details=details,
        fields_invalid=[] if parameter is None else [parameter[:200]],
        caller_facing=True,
    )
