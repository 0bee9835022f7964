"""What may be repeated, how often and how soon: policies, schedules, budgets, breakers and prices.

Example:
    >>> from failwell import describe
    >>> from failwell.policies import Backoff, Match, Policy, Retry, Rule, Schedule, Tries, decide
    >>> patient = Schedule(max_attempts=5, backoff=Backoff(curve="fixed", first=2.0))
    >>> policy = Policy(rules=(Rule(match=Match.of("provider.connection"), schedule=patient),))
    >>> report = describe(ConnectionRefusedError(111, "Connection refused"))
    >>> decide(policy, report, Tries(attempts=1))
    Retry(after=2.0, ...)
"""

TYPE_CHECKING = False  # as `typing.TYPE_CHECKING`, which would cost an import: checkers go by the name
if TYPE_CHECKING:
    from failwell.decision.backoff import Backoff as Backoff
    from failwell.decision.breaker import BreakerPolicy as BreakerPolicy
    from failwell.decision.bucket import Bucket as Bucket
    from failwell.decision.budget import Budget as Budget
    from failwell.decision.budget import Spent as Spent
    from failwell.decision.match import Match as Match
    from failwell.decision.policy import Lost as Lost
    from failwell.decision.policy import Policy as Policy
    from failwell.decision.policy import Rule as Rule
    from failwell.decision.policy import Schedule as Schedule
    from failwell.decision.policy import Tries as Tries
    from failwell.decision.policy import decide as decide
    from failwell.decision.policy_file import read_policy as read_policy
    from failwell.decision.policy_file import read_policy_file as read_policy_file
    from failwell.decision.verdict import Ask as Ask
    from failwell.decision.verdict import Decision as Decision
    from failwell.decision.verdict import Evict as Evict
    from failwell.decision.verdict import Fallback as Fallback
    from failwell.decision.verdict import GiveUp as GiveUp
    from failwell.decision.verdict import Park as Park
    from failwell.decision.verdict import Retry as Retry
    from failwell.decision.verdict import Shrink as Shrink
    from failwell.runtime.call_guard import ClosedOff as ClosedOff
    from failwell.runtime.call_guard import Guard as Guard
    from failwell.runtime.call_guard import GuardState as GuardState
    from failwell.runtime.call_guard import Paused as Paused
    from failwell.runtime.cancel import CancelScope as CancelScope
    from failwell.runtime.clock import Clock as Clock
    from failwell.runtime.cost import Price as Price
    from failwell.runtime.cost import Prices as Prices
    from failwell.runtime.fallback_entry import ChainPolicy as ChainPolicy
    from failwell.runtime.fallback_reply import ChainReply as ChainReply
    from failwell.runtime.fallback_reply import PassedEntry as PassedEntry
    from failwell.runtime.fallback_reply import ReplySource as ReplySource
    from failwell.runtime.idempotency import keyed as keyed
    from failwell.runtime.limits.sharing import LimitStore as LimitStore
    from failwell.runtime.loop import AttemptFailed as AttemptFailed
    from failwell.runtime.loop import NestedRetries as NestedRetries
    from failwell.runtime.loop import OperationEnded as OperationEnded
    from failwell.runtime.loop import watch as watch
    from failwell.runtime.operation import Operation as Operation
    from failwell.runtime.operation import collect_ledgers as collect_ledgers
    from failwell.runtime.retry_options import RetryOptions as RetryOptions
    from failwell.runtime.sdk_retries import RetriesNotSwitchable as RetriesNotSwitchable
    from failwell.runtime.shared_budget import BudgetExceeded as BudgetExceeded
    from failwell.runtime.shared_budget import Reservation as Reservation
    from failwell.runtime.shared_budget import SharedBudget as SharedBudget
    from failwell.runtime.shared_budget import Unpriced as Unpriced
    from failwell.runtime.streams.asynchronous import limit_astream as limit_astream
    from failwell.runtime.streams.plain import limit_stream as limit_stream
    from failwell.runtime.streams.timeouts import StreamTimedOut as StreamTimedOut
    from failwell.runtime.streams.timeouts import StreamTimeouts as StreamTimeouts
    from failwell.runtime.suppress import Subscription as Subscription
    from failwell.shared.redis_limits import RedisLimits as RedisLimits
    from failwell.shared.sqlite_limits import SqliteLimits as SqliteLimits
else:
    from failwell._lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "Ask": "failwell.decision.verdict",
            "AttemptFailed": "failwell.runtime.loop",
            "Backoff": "failwell.decision.backoff",
            "BreakerPolicy": "failwell.decision.breaker",
            "Bucket": "failwell.decision.bucket",
            "Budget": "failwell.decision.budget",
            "BudgetExceeded": "failwell.runtime.shared_budget",
            "CancelScope": "failwell.runtime.cancel",
            "ChainPolicy": "failwell.runtime.fallback_entry",
            "ChainReply": "failwell.runtime.fallback_reply",
            "Clock": "failwell.runtime.clock",
            "ClosedOff": "failwell.runtime.call_guard",
            "Decision": "failwell.decision.verdict",
            "Evict": "failwell.decision.verdict",
            "Fallback": "failwell.decision.verdict",
            "GiveUp": "failwell.decision.verdict",
            "Guard": "failwell.runtime.call_guard",
            "GuardState": "failwell.runtime.call_guard",
            "LimitStore": "failwell.runtime.limits.sharing",
            "Lost": "failwell.decision.policy",
            "Match": "failwell.decision.match",
            "NestedRetries": "failwell.runtime.loop",
            "Operation": "failwell.runtime.operation",
            "OperationEnded": "failwell.runtime.loop",
            "Park": "failwell.decision.verdict",
            "PassedEntry": "failwell.runtime.fallback_reply",
            "Paused": "failwell.runtime.call_guard",
            "Policy": "failwell.decision.policy",
            "Price": "failwell.runtime.cost",
            "Prices": "failwell.runtime.cost",
            "RedisLimits": "failwell.shared.redis_limits",
            "ReplySource": "failwell.runtime.fallback_reply",
            "Reservation": "failwell.runtime.shared_budget",
            "RetriesNotSwitchable": "failwell.runtime.sdk_retries",
            "Retry": "failwell.decision.verdict",
            "RetryOptions": "failwell.runtime.retry_options",
            "Rule": "failwell.decision.policy",
            "Schedule": "failwell.decision.policy",
            "SharedBudget": "failwell.runtime.shared_budget",
            "Shrink": "failwell.decision.verdict",
            "Spent": "failwell.decision.budget",
            "SqliteLimits": "failwell.shared.sqlite_limits",
            "StreamTimedOut": "failwell.runtime.streams.timeouts",
            "StreamTimeouts": "failwell.runtime.streams.timeouts",
            "Subscription": "failwell.runtime.suppress",
            "Tries": "failwell.decision.policy",
            "Unpriced": "failwell.runtime.shared_budget",
            "collect_ledgers": "failwell.runtime.operation",
            "decide": "failwell.decision.policy",
            "keyed": "failwell.runtime.idempotency",
            "limit_astream": "failwell.runtime.streams.asynchronous",
            "limit_stream": "failwell.runtime.streams.plain",
            "read_policy": "failwell.decision.policy_file",
            "read_policy_file": "failwell.decision.policy_file",
            "watch": "failwell.runtime.loop",
        },
    )
