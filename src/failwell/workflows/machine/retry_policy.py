"""The `retry` of a node and of a route, as policies that `failwell.calls.decide` answers for.

A node's `retry` repeats retryable failures and every kind that `retry_on` names. A route's `retry` repeats
whatever the route matches, because the author chose those failures.
"""

from collections.abc import Iterable
from dataclasses import replace

from failwell.calls.backoff import Backoff
from failwell.calls.policy import Match, Policy, Rule, Schedule
from failwell.errors.axes import Category
from failwell.errors.report import ErrorReport

_CATEGORIES = frozenset(map(str, Category))
ROUTE_BACKOFF = Backoff(curve="exponential", first=5.0, longest=86_400.0, jitter=0.25)


def route_retry(max_retries: int = 3, backoff: Backoff = ROUTE_BACKOFF) -> Policy:
    """The policy of a route that runs the same node again, at most `max_retries` more times."""
    schedule = Schedule(max_attempts=max_retries + 1, backoff=backoff)
    return Policy(rules=(Rule(match=Match(), schedule=schedule, retryable=True, name="route"),), name="route")


def node_retry(
    max_attempts: int,
    backoff: Backoff,
    retry_on: Iterable[str] | None = None,
    *,
    repeat_exhausted: bool = False,
) -> Policy:
    """The policy of a node's `retry` block.

    Args:
        max_attempts: Calls, the first one included.
        backoff: The waits between them.
        retry_on: Kinds or categories; `None` admits everything that is retryable.
        repeat_exhausted: Whether to repeat what a job or a loop inside the node has repeated up to its limit.
    """
    schedule = Schedule(max_attempts=max_attempts, backoff=backoff)
    if retry_on is None:
        return Policy(rules=tuple(_rules(Match(), schedule)), name="node", repeat_exhausted=repeat_exhausted)
    entries = frozenset(retry_on)
    categories = entries & _CATEGORIES
    kinds = entries - categories
    rules: list[Rule] = []
    if kinds:
        rules.append(Rule(match=Match(kinds=kinds), schedule=schedule, retryable=True, name="retry_on"))
    if categories:
        rules += _rules(Match(categories=frozenset(map(Category, categories))), schedule)
    rules.append(Rule(match=Match(), retryable=False, name="not in retry_on"))
    return Policy(rules=tuple(rules), name="node", repeat_exhausted=repeat_exhausted)


ATTEMPT_KINDS = frozenset(
    {"validation.assertion_failed", "internal.template_error", "provider.context_too_long"}
)
"""Failures of one attempt of a stage: its work was not accepted, or its request could not be composed."""


def stage_retry(max_attempts: int, backoff: Backoff, retry_on: Iterable[str] | None = None) -> Policy:
    """The policy of a stage's `retryPolicy`: what concerns one attempt, and whatever can be repeated.

    Args:
        max_attempts: Attempts, the first one included.
        backoff: The waits between them.
        retry_on: More kinds or categories that are repeated.
    """
    schedule = Schedule(max_attempts=max_attempts, backoff=backoff)
    entries = frozenset(retry_on or ())
    kinds = ATTEMPT_KINDS | (entries - _CATEGORIES)
    rules = [Rule(match=Match(kinds=kinds), schedule=schedule, retryable=True, name="attempt")]
    for category in sorted(entries & _CATEGORIES):
        match = Match(categories=frozenset({Category(category)}))
        rules.append(Rule(match=match, schedule=schedule, retryable=True, name="retry_on"))
    return Policy(rules=(*rules, *_rules(Match(), schedule)), name="stage")


def renews(report: ErrorReport) -> bool:
    """Whether it is known when a used-up quota is renewed."""
    return report.not_before is not None


def _rules(match: Match, schedule: Schedule) -> list[Rule]:
    """The rules of a node's `retry`: they repeat what `match` covers as its category allows.

    A used-up resource is retried after a wait, because nothing here can free it. A quota is retried only if
    the time of its renewal is known.
    """
    rules: list[Rule] = []
    if not match.categories or Category.RESOURCE in match.categories:
        resource = replace(match, categories=frozenset({Category.RESOURCE}))
        rules.append(Rule(match=resource, schedule=schedule, retryable=True, name="resource"))
    if not match.categories or Category.CAPACITY in match.categories:
        capacity = replace(match, categories=frozenset({Category.CAPACITY}), predicate=renews)
        rules.append(Rule(match=capacity, schedule=schedule, retryable=True, name="capacity"))
    return [*rules, Rule(match=match, schedule=schedule, name="retry")]
