"""Which way out of a node. Success and failure have routes of their own and never take the other's."""

from typing import Any

from failwell.workflow.failure import Failure
from failwell.workflow.machine.context import ScopeNames
from failwell.workflow.plan import Node, Route, Selector
from failwell.workflow.template.condition import holds


def told_error(failure: Failure) -> dict[str, Any]:
    """The `error` that templates see: the envelope, and how it was classified."""
    report = failure["report"]
    return {
        **failure["envelope"],
        "category": report["category"],
        "certainty": report["certainty"],
        "blame": report["blame"],
        "retryable": report["retryable"],
    }


def fits(selector: Selector, failure: Failure) -> bool:
    """Whether an error route is for this failure."""
    if selector.any:
        return True
    report = failure["report"]
    kind: str = failure["envelope"]["kind"]
    by_kind = selector.kinds or selector.prefixes
    return (
        (not by_kind or kind in selector.kinds or kind.startswith(selector.prefixes or ("\0",)))
        and (not selector.categories or report["category"] in selector.categories)
        and (not selector.certainties or report["certainty"] in selector.certainties)
        and (not selector.blames or report["blame"] in selector.blames)
    )


def success_route(node: Node, names: ScopeNames) -> Route | None:
    """The first success route that holds."""
    for route in node.routes:
        if route.on_error is None and (route.when is None or holds(route.when, names)):
            return route
    return None


def error_route(node: Node, failure: Failure, names: ScopeNames, retries: int) -> Route | None:
    """The first error route that fits and holds; a retry that is used up is passed over."""
    for route in node.routes:
        if route.on_error is None or not fits(route.on_error, failure):
            continue
        if route.again is not None and retries >= route.again.most:
            continue
        if route.when is None or holds(route.when, names):
            return route
    return None


def has_success_routes(node: Node) -> bool:
    """Whether the author wrote any; without one, success leads to the end."""
    return any(route.on_error is None for route in node.routes)
