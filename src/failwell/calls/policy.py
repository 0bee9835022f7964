"""Decides what to do about a failure, from its report and the attempts so far.

Rules are tried in order, and the first that matches applies; without a match the default of the kind does. No
rule can allow what is never safe: a repeat after a cancel, after part of the result was used, or of work whose
outcome is unknown.

Which failures a rule is about: kind, prefix, category, certainty, blame, status, or a predicate.

What to do about a failure: a closed set of decisions, each with its reason.
"""

from collections.abc import Callable
from types import NoneType
from typing import NamedTuple, TypeAlias, assert_never

from failwell.calls.argument_checks import check_count, check_number, check_type
from failwell.calls.backoff import Backoff
from failwell.calls.budget import NO_BUDGET, Budget, Spent, over
from failwell.errors.axes import Blame, Category, Certainty
from failwell.errors.facts import LONGEST_WAIT, NotBefore
from failwell.errors.fault import Fault
from failwell.errors.frozen import frozen
from failwell.errors.kind_registry import KINDS, check_kind, check_prefix
from failwell.errors.report import ErrorReport


@frozen
class Match:
    """Every field that is set must match; with none set, every failure does.

    `kinds` and `prefixes` together name the kinds: one of either is enough.
    """

    kinds: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()
    """Beginnings of kinds, with their dot: `provider.`."""
    categories: frozenset[Category] = frozenset()
    certainties: frozenset[Certainty] = frozenset()
    blames: frozenset[Blame] = frozenset()
    statuses: frozenset[int] = frozenset()
    """HTTP statuses the provider answered with."""
    predicate: Callable[[ErrorReport], bool] | None = None

    def fits(self, report: ErrorReport) -> bool:
        """Whether `report` is one of these failures. What the predicate raises is raised."""
        metadata = report.provider_metadata
        return (
            self.names(report.kind)
            and (not self.categories or report.category in self.categories)
            and (not self.certainties or report.certainty in self.certainties)
            and (not self.blames or report.blame in self.blames)
            and (not self.statuses or (metadata is not None and metadata.status_code in self.statuses))
            and (self.predicate is None or bool(self.predicate(report)))
        )

    def check_kinds(self) -> None:
        """Refuse kinds and prefixes that can only be misspelt.

        Raises:
            KindError: one is; the message names the nearest.
        """
        for kind in self.kinds:
            check_kind(kind)
        for prefix in self.prefixes:
            check_prefix(prefix)

    def names(self, kind: str) -> bool:
        """Whether `kinds` or `prefixes` cover `kind`; they do if neither is set."""
        if not self.kinds and not self.prefixes:
            return True
        return kind in self.kinds or kind.startswith(self.prefixes)

    @property
    def is_any(self) -> bool:
        """Whether every failure matches."""
        return not (
            self.kinds
            or self.prefixes
            or self.categories
            or self.certainties
            or self.blames
            or self.statuses
            or self.predicate is not None
        )

    @classmethod
    def of(
        cls,
        *kinds: str,
        category: Category | str | None = None,
        certainty: Certainty | str | None = None,
        blame: Blame | str | None = None,
        status: int | None = None,
        when: Callable[[ErrorReport], bool] | None = None,
    ) -> "Match":
        """A match written briefly; a kind that ends in a dot is a prefix.

        Raises:
            KindError: a kind can only be misspelt.
        """
        match = cls(
            kinds=frozenset(kind for kind in kinds if not kind.endswith(".")),
            prefixes=tuple(kind for kind in kinds if kind.endswith(".")),
            categories=frozenset() if category is None else frozenset({Category(category)}),
            certainties=frozenset() if certainty is None else frozenset({Certainty(certainty)}),
            blames=frozenset() if blame is None else frozenset({Blame(blame)}),
            statuses=frozenset() if status is None else frozenset({status}),
            predicate=when,
        )
        match.check_kinds()
        return match

    def __str__(self) -> str:
        kinds = [*sorted(self.kinds), *(f"{prefix}*" for prefix in self.prefixes)]
        parts = [" or ".join(kinds)] if kinds else []
        parts += [f"{name} {', '.join(sorted(map(str, values)))}" for name, values in (
            ("category", self.categories), ("certainty", self.certainties), ("blame", self.blames), ("status", self.statuses),
        ) if values]  # fmt: skip
        if self.predicate is not None:
            parts.append("a predicate")
        return " and ".join(parts) if parts else "anything"


@frozen
class Retry:
    """Make the same call again after `after` seconds."""

    after: float
    why: str
    charged: bool = True
    """Whether the failed attempt counts against those that the schedule allows."""


@frozen
class Fallback:
    """Leave this entry of a chain and try the next one, at once."""

    why: str


@frozen
class Evict:
    """Free the resource that is short, then make the same call again."""

    resource: str
    why: str


@frozen
class Shrink:
    """Shorten the messages, then make the call again, once."""

    why: str


@frozen
class Park:
    """Put the work aside until a time that is too far away to sleep for; no attempt is spent."""

    after: float
    why: str


@frozen
class AskPerson:
    """Only a person (or a reconcile hook) can say whether this may be repeated."""

    question: str
    why: str
    after: float = 0.0
    """Seconds to wait before the repeat, if the answer allows one."""


@frozen
class GiveUp:
    """Nothing that this policy allows would help."""

    why: str
    cancelled: bool = False
    """Whether the work was cancelled rather than failed."""
    exhausted: bool = False
    """Whether a repeat might have helped, and a limit ruled it out: attempts, seconds, money."""


Decision: TypeAlias = Retry | Fallback | Evict | Shrink | Park | AskPerson | GiveUp


def decision_text(decision: Decision) -> str:
    """One lower-case clause, to follow a colon."""
    match decision:
        case Retry(after=seconds, why=why):
            return f"retrying in {seconds:.1f} s, {why}" if seconds else f"retrying at once, {why}"
        case Fallback(why=why):
            return f"falling back, {why}"
        case Evict(resource=resource, why=why):
            return f"freeing {resource}, {why}"
        case Shrink(why=why):
            return f"shortening the messages, {why}"
        case Park(after=seconds, why=why):
            return f"parked for {seconds:.0f} s, {why}"
        case AskPerson(question=question, why=why):
            return f"asking: {question} {why}"
        case GiveUp(why=why):
            return f"giving up, {why}"
        case _:
            assert_never(decision)


_ONCE_ONLY = "it is tried once only"
_TOO_LONG = "provider.context_too_long"
_SEEN = "part of the result has already been seen"
IN_PROCESS_LIMIT = 60.0
"""Seconds. A longer wait that a provider requests is parked, not slept."""


@frozen
class Schedule:
    """How often, and with which waits."""

    max_attempts: int
    """Calls in all, the first included."""
    backoff: Backoff

    def __post_init__(self) -> None:
        check_type("backoff", self.backoff, Backoff, "a `Backoff`")
        check_count("max_attempts", self.max_attempts)


_SERVER = Schedule(max_attempts=3, backoff=Backoff(curve="exponential", first=1.0, jitter=0.2))
ONCE = Schedule(max_attempts=1, backoff=Backoff(curve="fixed", first=0.0))

SCHEDULES: dict[str, Schedule] = {
    "rate_limit": Schedule(max_attempts=6, backoff=Backoff(curve="exponential", first=5.0, jitter=0.2)),
    "server": _SERVER,
    "store": Schedule(max_attempts=3, backoff=Backoff(curve="linear", first=2.0)),
    "evict": Schedule(max_attempts=2, backoff=Backoff(curve="fixed", first=0.0)),
    "reconcile": _SERVER,
    "none": ONCE,
    "park": ONCE,
    "refresh_auth": ONCE,
}
"""The named default policies; each kind names one of them."""


@frozen
class Rule:
    """What to do about the failures that match."""

    match: Match
    schedule: Schedule | None = None
    """`None` keeps the kind's own."""
    retryable: bool | None = None
    """`False` never repeats these; `True` repeats them although their category would not."""
    name: str = ""

    def __post_init__(self) -> None:
        check_type("match", self.match, Match, "a `Match`")
        check_type("schedule", self.schedule, (Schedule, NoneType), "a `Schedule`")
        self.match.check_kinds()

    def __str__(self) -> str:
        return self.name or str(self.match)


class PredicateFailed(Fault, kind="validation.config_invalid"):
    """The predicate of a rule raised, so it is unknown whether the rule applies. Nothing is repeated."""

    rule: str
    raised: str
    """The type of what it raised."""

    def summary(self) -> str:
        return f"the policy cannot be applied: the predicate of rule `{self.rule}` raised {self.raised}"


@frozen
class Policy:
    """Ordered rules, a budget over everything, and how long a wait may be slept."""

    rules: tuple[Rule, ...] = ()
    budget: Budget = NO_BUDGET
    in_process_limit: float = IN_PROCESS_LIMIT
    name: str = "default"
    repeat_exhausted: bool = False
    """Whether to repeat what a loop inside has already repeated up to its limit: the calls of both multiply."""

    def __post_init__(self) -> None:
        check_type("rules", self.rules, (tuple, list), "a tuple of `Rule`s")
        for rule in self.rules:
            check_type("rules", rule, Rule, "a tuple of `Rule`s")
        check_type("budget", self.budget, Budget, "a `Budget`")
        check_number("in_process_limit", self.in_process_limit, endless=True)


class Preemption(NamedTuple):
    """An attempt that ended through no fault of the work, such as one whose worker was stopped for another."""

    why: str
    before: int = 0
    """Attempts of the same work that were lost before."""
    most: int = 20
    """Lost attempts that are repeated without being charged; after them the failure counts as any other."""


class RetryState(NamedTuple):
    """What a loop knows when it decides: how often it called, what was spent, what it can do."""

    attempts: int
    """Calls made so far, the one that failed included."""
    budgets: tuple[tuple[Budget, Spent], ...] = ()
    """Every budget that applies to this call, with what was spent of it."""
    idempotent: bool | None = None
    """Whether the call may be repeated although its outcome is unknown."""
    may_fall_back: bool = False
    may_evict: bool = False
    may_park: bool = True
    may_ask: bool = False
    visible: bool = False
    """Whether part of the result has already been used; then nothing is repeated."""
    elapsed: float = 0.0
    """Seconds since the failure; they count toward a server-requested delay."""
    max_attempts: int | None = None
    """Calls in all that the work itself allows, instead of the schedule's number. It allows nothing that the
    policy never repeats."""
    cancelled: bool = False
    """Whether the work was cancelled, whatever the failure is."""
    lost: Preemption | None = None
    """Set where the attempt failed through no fault of the work: it is repeated and not charged."""
    same_limit: str | None = None
    """A limit of ours that ended the attempt and was not raised since: a repeat would reach it again."""
    exhausted: str | None = None
    """Why a loop inside this one has given up, if a limit ended it; see `exhausted_inside`."""
    delivered: bool = False
    """Whether a loop inside this one had delivered part of its result; only a rule with `retryable=True` repeats
    it then."""
    may_shrink: bool = False
    """Whether the messages can be shortened where they are too long for the model, which is done once."""


class ExplainedDecision(NamedTuple):
    """A decision, the rule that it follows from, and the rules that would have applied next."""

    decision: Decision
    rule: str
    others: tuple[str, ...] = ()


def decide(policy: Policy, report: ErrorReport, tries: RetryState, jitter: float = 0.5) -> Decision:
    """What to do about `report`; `jitter` in [0, 1) is drawn by the caller.

    Raises:
        PredicateFailed: the predicate of a rule raised.
    """
    return decide_by(policy, first_rule(policy, report), report, tries, jitter)


def first_rule(policy: Policy, report: ErrorReport) -> Rule | None:
    """The rule that applies to `report`; `None` where the kind's own schedule does.

    Raises:
        PredicateFailed: the predicate of a rule raised.
    """
    return next((rule for rule in policy.rules if _fits(rule, report)), None)


def _fits(rule: Rule, report: ErrorReport) -> bool:
    try:
        return rule.match.fits(report)
    except PredicateFailed:
        raise
    except Exception as error:
        # A predicate is foreign code: whatever it raises becomes one error that names the rule.
        raise PredicateFailed(rule=str(rule), raised=type(error).__name__) from error


def schedule_of(rule: Rule | None, report: ErrorReport, max_attempts: int | None = None) -> Schedule:
    """How often and how soon `rule` repeats `report`; `max_attempts` replaces the number of calls."""
    schedule = None if rule is None else rule.schedule
    if max_attempts is None:
        return SCHEDULES[default_schedule(report)] if schedule is None else schedule
    return Schedule(max_attempts=max_attempts, backoff=(schedule or _SERVER).backoff)


def exhausted_inside(report: ErrorReport) -> str | None:
    """Why a report from elsewhere should not be repeated: a loop there has done so up to its limit."""
    last = report.attempts[-1] if report.attempts else None
    if last is None or last.exhausted is not True:
        return None
    return f"`{last.layer or 'a loop inside'}` has already tried it {last.number} times"


def reason(policy: Policy, report: ErrorReport, tries: RetryState, jitter: float = 0.5) -> ExplainedDecision:
    """`decide`, with the rule that applies and those that would have applied next."""
    matching = [rule for rule in policy.rules if _fits(rule, report)]
    names = [*(str(rule) for rule in matching), f"default `{default_schedule(report)}`"]
    decision = decide_by(policy, matching[0] if matching else None, report, tries, jitter)
    return ExplainedDecision(decision, names[0], tuple(names[1:]))


def default_schedule(report: ErrorReport) -> str:
    """Which of `SCHEDULES` the report's kind names."""
    kind = KINDS.get(report.kind)
    if kind is not None:
        return kind.policy if kind.policy in SCHEDULES else "none"
    return "server" if report.retryable else "none"


def falls_through(report: ErrorReport, idempotent: bool | None) -> bool:
    """Whether another provider may succeed where this one failed: only if the call itself was valid."""
    if is_unsure(report, idempotent):
        return False
    return report.retryable or report.category in _SOUND


def is_unsure(report: ErrorReport, idempotent: bool | None) -> bool:
    """Whether the work may have been done, so that a repeat could do it twice."""
    if report.category is Category.AMBIGUOUS:
        return not idempotent
    return idempotent is False and report.certainty in _MAYBE_DONE


_SOUND = (Category.RESOURCE, Category.CAPACITY, Category.AMBIGUOUS)
_MAYBE_DONE = (Certainty.UNKNOWN, Certainty.PARTIAL, Certainty.DONE_BUT_LOST)


def decide_by(
    policy: Policy, rule: Rule | None, report: ErrorReport, tries: RetryState, jitter: float = 0.5
) -> Decision:
    """`decide`, where the rule that applies is already known."""
    category, lost = report.category, tries.lost
    # A worker that is stopped for another job may report that its call was cancelled; the work was not.
    if tries.cancelled or (category is Category.CANCELLED and lost is None):
        return GiveUp(why="it was cancelled", cancelled=True)
    if tries.visible or (tries.delivered and not (rule is not None and rule.retryable)):
        return GiveUp(why=_SEEN)
    if lost is not None and lost.before < lost.most:
        return _uncharged(tries, report, lost)
    never_again = _reason_to_stop(tries)
    if never_again is not None:
        return _fall_back(tries, report, never_again)
    schedule = schedule_of(rule, report, tries.max_attempts)
    allowed = None if rule is None else rule.retryable
    if allowed is False:
        return _fall_back(tries, report, "the policy does not repeat it")
    if is_unsure(report, tries.idempotent):
        if tries.may_ask and _spent_reason(policy, tries, schedule) is None:
            wait = schedule.backoff.wait(tries.attempts, jitter)
            limit_reason = _limit_reason(tries, wait)
            if limit_reason is not None:
                return GiveUp(why=limit_reason, exhausted=True)
            return AskPerson(question="was the work done?", why="the outcome is unknown", after=wait)
        return GiveUp(why="the outcome is unknown, and a repeat might do the work twice")
    if category is Category.RESOURCE and (tries.may_evict or not allowed):
        return _evict(policy, tries, report, schedule)
    if allowed is None and category is Category.CAPACITY:
        return _until_renewed(tries, report)
    if allowed is None and category is not Category.AMBIGUOUS and not report.retryable:
        return _shrink(tries, report) or _fall_back(tries, report, _reason_against(report))
    return _repeat(policy, tries, report, schedule, jitter)


def _reason_to_stop(tries: RetryState) -> str | None:
    """Why the work is not repeated, whatever the policy says."""
    if tries.same_limit is not None:
        return f"a repeat would reach {tries.same_limit} again"
    return _ONCE_ONLY if tries.max_attempts is not None and tries.max_attempts <= 1 else None


def _uncharged(tries: RetryState, report: ErrorReport, lost: Preemption) -> Decision:
    requested = report.not_before
    wait = 0.0 if requested is None else _left(requested, tries)
    limit_reason = _limit_reason(tries, wait)
    return (
        Retry(after=wait, why=lost.why, charged=False)
        if limit_reason is None
        else GiveUp(why=limit_reason, exhausted=True)
    )


def _repeat(
    policy: Policy, tries: RetryState, report: ErrorReport, schedule: Schedule, jitter: float
) -> Decision:
    requested = report.not_before
    delay = None if requested is None else _left(requested, tries)
    why = "after a back-off" if requested is None else f"as {requested.source} says"
    if delay is not None and delay > policy.in_process_limit and schedule.max_attempts > 1:
        # A call that was turned away until later has not been tried; it spends no attempt.
        return _park(tries, report, delay, why)
    spent_reason = _spent_reason(policy, tries, schedule)
    if spent_reason is not None:
        return _fall_back(tries, report, spent_reason, exhausted=_is_limit(tries, schedule))
    # A server-requested delay is kept exactly, without jitter.
    wait = schedule.backoff.wait(tries.attempts, jitter) if delay is None else delay
    limit_reason = _limit_reason(tries, wait)
    return (
        Retry(after=wait, why=why)
        if limit_reason is None
        else _fall_back(tries, report, limit_reason, exhausted=True)
    )


def _until_renewed(tries: RetryState, report: ErrorReport) -> Decision:
    if report.not_before is None:
        return _fall_back(tries, report, _reason_against(report))
    delay = _left(report.not_before, tries)
    return _park(tries, report, delay, "the quota renews then")


def _left(requested: NotBefore, tries: RetryState) -> float:
    """Seconds that are left of a requested delay; never more than anybody can compute a time from."""
    return min(max(0.0, requested.after - tries.elapsed), LONGEST_WAIT)


def _park(tries: RetryState, report: ErrorReport, after: float, why: str) -> Decision:
    limit_reason = _limit_reason(tries, after)
    fallback = _fall_back(
        tries, report, limit_reason or f"the wait of {after:.0f} s is longer than may be slept"
    )
    if limit_reason is not None or isinstance(fallback, Fallback) or not tries.may_park:
        return fallback
    return Park(after=after, why=why)


def _evict(policy: Policy, tries: RetryState, report: ErrorReport, schedule: Schedule) -> Decision:
    if not tries.may_evict:
        return _fall_back(tries, report, "nothing here can free the resource")
    spent_reason = _spent_reason(policy, tries, schedule)
    if spent_reason is not None:
        return _fall_back(tries, report, spent_reason, exhausted=_is_limit(tries, schedule))
    limit_reason = _limit_reason(tries, 0.0)
    if limit_reason is not None:
        return GiveUp(why=limit_reason, exhausted=True)
    short = report.resource_shortfall
    return Evict(resource=short.resource if short is not None else report.kind, why="it is used up")


def _shrink(tries: RetryState, report: ErrorReport) -> Decision | None:
    if not tries.may_shrink or report.kind != _TOO_LONG:
        return None
    limit_reason = _limit_reason(tries, 0.0)
    if limit_reason is not None:
        return GiveUp(why=limit_reason, exhausted=True)
    return Shrink(why="the request is longer than the model can read")


def _fall_back(tries: RetryState, report: ErrorReport, why: str, *, exhausted: bool = False) -> Decision:
    """Use the next entry of the chain if there is one for this failure and the budgets allow it; else give up."""
    if tries.may_fall_back and falls_through(report, tries.idempotent):
        limit_reason = _limit_reason(tries, 0.0)
        return Fallback(why=why) if limit_reason is None else GiveUp(why=limit_reason, exhausted=True)
    return GiveUp(why=why, exhausted=exhausted)


def _limit_reason(tries: RetryState, wait: float) -> str | None:
    for budget, spent in tries.budgets:
        limit_reason = over(budget, spent, wait=wait)
        if limit_reason is not None:
            return limit_reason
    return None


def _reason_against(report: ErrorReport) -> str:
    if report.category.retryable:
        if report.certainty is Certainty.PARTIAL:
            return _SEEN
        return "its exception forbids a repeat"
    return (
        f"{'an' if report.category[0] in 'au' else 'a'} {report.category} failure does not go away by itself"
    )


def _spent_reason(policy: Policy, tries: RetryState, schedule: Schedule) -> str | None:
    """Why no attempt is left, or `None`."""
    if tries.exhausted is not None and not policy.repeat_exhausted:
        return tries.exhausted
    calls = schedule.max_attempts
    if tries.attempts < calls:
        return None
    return f"all {calls} attempts are spent" if calls > 1 else _ONCE_ONLY


def _is_limit(tries: RetryState, schedule: Schedule) -> bool:
    """Whether a repeat was possible at all, here or in a loop inside: a single attempt is no limit."""
    return tries.exhausted is not None or schedule.max_attempts > 1
