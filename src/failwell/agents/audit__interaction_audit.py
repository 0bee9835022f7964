"""Records every exchange with people in the audit."""

from collections.abc import Callable

from failwell.agents.people.queue import InteractionEvent
from failwell.store.audit import AuditLog

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
