"""How a call is repeated: the parameters of everything that repeats, and the value that is made of them.

The parameters are written once, here: `retry`, `retrying`, `Chain` and every `reliability(...)` of a plugin read them
with `Unpack`. `retry` says what each of them means.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field, replace
from types import NoneType
from typing import Any, TypedDict, Unpack

from failwell.calls.argument_checks import check_callable, check_count, check_number, check_type
from failwell.calls.attempt_loop import Watcher
from failwell.calls.backoff import Backoff
from failwell.calls.budget import NO_BUDGET
from failwell.calls.cancel import CancelScope
from failwell.calls.chain.entry import Shorten
from failwell.calls.clock import SYSTEM_CLOCK, Clock, random_jitter
from failwell.calls.guard import Guard
from failwell.calls.policy import Match, Policy, Rule, Schedule
from failwell.calls.shared_budget import SharedBudget
from failwell.calls.streams.timeouts import StreamTimeouts
from failwell.errors.frozen import frozen
from failwell.errors.report import ErrorReport


class LoopParameters(TypedDict, total=False):
    """What a retry loop and a chain take. `None` is as if it were left out."""

    name: str | None
    guard: Guard | None
    budget: SharedBudget | None
    watcher: Watcher | None
    cancel: CancelScope | None
    clock: Clock | None
    jitter: Callable[[], float] | None


class RetryParameters(LoopParameters, total=False):
    """What `retry`, `retrying` and the plugins take; `retry` says what each means."""

    attempts: int | None
    backoff: Backoff | None
    on: Match | str | None
    policy: Policy | None
    timeout: float | None
    idempotent: bool | None
    keyed: bool | None
    provider: str | None
    model: str | None
    account: str | None
    repeat_exhausted: bool | None
    evict: Callable[[ErrorReport], bool | Awaitable[bool]] | None
    reconcile: Callable[[ErrorReport], bool | Awaitable[bool | None] | None] | None
    shrink: Shorten | None
    stream: StreamTimeouts | None
    options: "RetryOptions | None"


@frozen
class RetryOptions:
    """How a call is repeated: the policy, and everything that is injected."""

    policy: Policy = Policy()
    name: str | None = None
    """The name of the loop in ledgers and reports; by default that of the function."""
    idempotent: bool | None = None
    """Whether a repeat is harmless although the outcome is unknown."""
    keyed: bool = False
    """Whether the call sends `idempotency_key()`: a call with an unknown outcome may then be repeated, provided
    that the attempt read the key."""
    provider: str | None = None
    model: str | None = None
    account: str = ""
    evict: Callable[[ErrorReport], bool | Awaitable[bool]] | None = None
    """Frees what the report says is short; returns `False` when nothing could be freed."""
    reconcile: Callable[[ErrorReport], bool | Awaitable[bool | None] | None] | None = None
    """Says whether work with an unknown outcome was done: `True`, `False`, or `None` for "cannot tell"."""
    guard: Guard | None = None
    budget: SharedBudget | None = None
    watcher: Watcher | None = None
    clock: Clock = SYSTEM_CLOCK
    jitter: Callable[[], float] = random_jitter
    cancel: CancelScope | None = None
    shrink: Shorten | None = None
    """Shortens the messages of a call that is too long for the model; called once, and the call is made again."""
    stream: StreamTimeouts | None = None
    """How long the stream that the call returns may take; a stream that stalls before its first chunk is repeated."""
    has_limits: bool = field(init=False, repr=False)
    """Whether a guard or a budget must be checked before the first call."""

    def __post_init__(self) -> None:
        self._check_types()
        object.__setattr__(self, "has_limits", self.guard is not None or self.policy.budget is not NO_BUDGET)
        if self.guard is not None and self.provider is None:
            raise ValueError("a guard needs to know the `provider` whose calls it counts")

    def _check_types(self) -> None:
        """Refuse a wrong type here: later, its error would replace the failure of the call."""
        check_type("policy", self.policy, Policy, "a `Policy`")
        for name, expected, takes in _TYPES:
            value = getattr(self, name)
            if value is not None and not isinstance(value, expected):
                check_type(name, value, expected, takes)
        for hook in ("evict", "reconcile", "shrink", "watcher", "jitter"):
            function = getattr(self, hook)
            if function is not None:
                check_callable(hook, function)
        if not hasattr(self.clock, "monotonic"):
            raise TypeError(f"`clock` takes a `Clock`, not {type(self.clock).__name__}")


_TYPES: tuple[tuple[str, type, str], ...] = (
    ("name", str, "a name"),
    ("idempotent", bool, "`True` or `False`"),
    ("keyed", bool, "`True` or `False`"),
    ("provider", str, "the name of a provider"),
    ("model", str, "the name of a model"),
    ("account", str, "the name of an account"),
    ("guard", Guard, "a `Guard`"),
    ("budget", SharedBudget, "a `SharedBudget`"),
    ("cancel", CancelScope, "a `CancelScope`"),
    ("stream", StreamTimeouts, "`StreamTimeouts`, such as `StreamTimeouts(first=10, idle=20)`"),
)


_DEFAULTS = RetryOptions()
_ON_TAKES = "a kind, the beginning of kinds with its dot, or a `Match` such as `Match.of('provider.', 'tool.timeout')`"


def merge_options(
    defaults: Mapping[str, Any] | None = None, /, **parameters: Unpack[RetryParameters]
) -> RetryOptions:
    """The options that the parameters of `retry` stand for.

    Args:
        defaults: Fields that neither a parameter nor `options` sets.
        parameters: A parameter beside `options` wins.

    Raises:
        TypeError: a parameter has the wrong type, or there is none of that name.
        ValueError: a number makes no sense: no attempt at all, a negative time.
    """
    given: dict[str, Any] = {name: value for name, value in parameters.items() if value is not None}
    unknown = next((name for name in parameters if name not in RetryParameters.__annotations__), None)
    if unknown is not None:
        raise TypeError(
            f"there is no parameter `{unknown}`; there are {', '.join(RetryParameters.__annotations__)}"
        )
    options, policy, on = given.pop("options", None), given.pop("policy", None), given.pop("on", None)
    attempts, backoff = given.pop("attempts", None), given.pop("backoff", None)
    timeout, repeat_exhausted = given.pop("timeout", None), given.pop("repeat_exhausted", None)
    check_type("options", options, (RetryOptions, NoneType), "`RetryOptions`")
    check_type("policy", policy, (Policy, NoneType), "a `Policy`")
    check_type("backoff", backoff, (Backoff, NoneType), "a `Backoff`, such as `Backoff(first=2.0)`")
    check_type("on", on, (str, Match, NoneType), _ON_TAKES)
    check_type("repeat_exhausted", repeat_exhausted, (bool, NoneType), "`True` or `False`")
    if attempts is not None:
        check_count("attempts", attempts)
    if timeout is not None:
        check_number("timeout", timeout, endless=True)
    base = options or _DEFAULTS
    policy = policy or base.policy
    rules = policy.rules
    match = Match.of(on) if isinstance(on, str) else on
    if match is not None:
        match.check_kinds()
    if attempts is not None or backoff is not None:
        schedule = Schedule(
            max_attempts=3 if attempts is None else attempts, backoff=backoff or Backoff(jitter=0.2)
        )
        rules = (Rule(match=match or _RETRYABLE, schedule=schedule, name="parameters of `retry`"), *rules)
    if match is not None:
        other = Rule(match=Match.of(when=_none_of(match)), retryable=False, name="not in `on`")
        rules = (other, *rules)
    if timeout is not None:
        policy = replace(policy, budget=replace(policy.budget, seconds=timeout))
    if repeat_exhausted is not None:
        policy = replace(policy, repeat_exhausted=repeat_exhausted)
    unset = {name: value for name, value in (defaults or {}).items() if getattr(base, name) is None}
    return replace(base, policy=replace(policy, rules=rules), **{**unset, **given})


def _is_retryable(report: ErrorReport) -> bool:
    return report.retryable


_RETRYABLE = Match.of(when=_is_retryable)


def _none_of(match: Match) -> Callable[[ErrorReport], bool]:
    return lambda report: not match.fits(report)
