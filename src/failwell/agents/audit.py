"""Records what an agent is about to do, what became of it, and every exchange with people, in the audit.

A record is on disk before the model or the tool is called. It names models, tools, kinds and reasons; arguments are recorded as a
digest, and prompts and answers not at all.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from inspect import isawaitable
from typing import Any, TypeVar, cast

from failwell.agents.grants import digest_of
from failwell.agents.models import usage_of
from failwell.agents.people.queue import InteractionEvent
from failwell.calls.attempt_loop import AttemptEvent, AttemptFailed, Watcher
from failwell.calls.chain.entry import Entry
from failwell.errors.axes import Certainty
from failwell.errors.fault import Fault
from failwell.errors.report import ErrorReport
from failwell.store.audit import Audit, AuditLog

_T = TypeVar("_T")


class NotAudited(Fault):
    """The audit could not be written, so the call that it announces was not made."""


class TurnAudit:
    """The records of one agent.

    Args:
        audit: Where they are written, with the scope of the agent.
    """

    def __init__(self, audit: Audit) -> None:
        self._audit = audit

    def record(self, type_: str, *, text: str | None = None, **data: Any) -> None:
        """Write one record.

        Raises:
            NotAudited: it cannot be written.
        """
        try:
            self._audit.record(type_, text=text, **data)
        except Fault as fault:
            raise NotAudited.wrap(
                fault, "the audit cannot be written; nothing was called", certainty=Certainty.NOT_SENT
            ) from fault

    # -------------------------------------------------------------- models

    def entry(self, entry: Entry[_T]) -> Entry[_T]:
        """`entry` with a record before each call, and one after each answer."""
        original = cast("Callable[..., Any]", entry.call)

        def call(*args: Any, **kwargs: Any) -> Any:
            self.record("model:called", provider=entry.provider, model=entry.model)
            result = original(*args, **kwargs)
            return self._answered(entry, result) if isawaitable(result) else result

        return replace(entry, call=cast("Any", call))

    async def _answered(self, entry: Entry[Any], call: Awaitable[Any]) -> Any:
        response = await call
        self.record("model:answered", provider=entry.provider, model=entry.model, used=usage_of(response))
        return response

    def model_failed(self, event: AttemptEvent) -> None:
        """A watcher of chains: one attempt failed, and this was decided about it."""
        if isinstance(event, AttemptFailed):
            row = event.attempt
            self._failed("model:failed", event, provider=row.provider, model=row.model)

    # -------------------------------------------------------------- tools

    def tool_called(self, tool: str, arguments: Mapping[str, Any], **facts: Any) -> None:
        """A tool is about to be called."""
        self.record("tool:called", tool=tool, digest=digest_of(arguments), **facts)

    def tool_watcher(self, tool: str) -> Watcher:
        """A watcher of the attempts of one call."""

        def failed(event: AttemptEvent) -> None:
            if isinstance(event, AttemptFailed):
                self._failed("tool:failed", event, tool=tool)

        return failed

    def _failed(self, type_: str, event: AttemptFailed, **facts: Any) -> None:
        row, report = event.attempt, event.report
        # Retries are decided before: nothing here may change what happens next.
        self._audit.record(
            type_,
            text=text_of(report),
            **facts,
            attempt=row.number,
            kind=row.kind,
            error_type=report.error_type,
            delay=row.wait,
            reason=row.reason or "no further attempt",
            error=report.id,
            ignored_waits=_ignored_waits(report),
        )


def _ignored_waits(report: ErrorReport) -> dict[str, str] | None:
    """Headers that asked for a wait which could not be understood, with what they said."""
    if report.provider_metadata is None:
        return None
    headers = report.provider_metadata.headers
    ignored = [str(one).removeprefix("header ") for one in report.details.get("ignored_waits", ())]
    return {name: headers[name] for name in ignored if name in headers} or None


def text_of(report: ErrorReport) -> str:
    """What was raised, as far as the policy for foreign texts lets it be kept."""
    return report.message if report.internal is None else report.internal.repr


_LEFT_OUT = frozenset({"id", "type", "scope", "values", "code"})
"""Of a request: `code` is good for signing in while it is fresh, the others are recorded under names of their own."""


def record_event(audit: Callable[[], AuditLog], event: InteractionEvent) -> None:
    """Write an event of a queue, as `interaction:raised`, before it takes effect.

    Args:
        audit: Opens the audit.
        event: What happens.
    """
    request = event.request
    scope = {name: value for name, value in request.get("scope", {}).items() if value is not None}
    run = scope.pop("run", None) or scope.get("session")
    facts = {"question": request["id"], "request": request.get("type"), **scope}
    if event.type == "raised":
        facts |= {name: value for name, value in request.items() if name not in _LEFT_OUT}
    audit().append(f"interaction:{event.type}", {**facts, **event.data}, run=run)
