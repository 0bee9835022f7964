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
    from failwell.calls.attempt_loop import AttemptFailed as AttemptFailed
    from failwell.calls.attempt_loop import NestedRetries as NestedRetries
    from failwell.calls.attempt_loop import OperationEnded as OperationEnded
    from failwell.calls.attempt_loop import watch as watch
    from failwell.calls.backoff import Backoff as Backoff
    from failwell.calls.budget import Budget as Budget
    from failwell.calls.budget import Spent as Spent
    from failwell.calls.cancel import CancelScope as CancelScope
    from failwell.calls.chain.entry import ChainPolicy as ChainPolicy
    from failwell.calls.chain.entry import ChainReply as ChainReply
    from failwell.calls.chain.entry import PassedEntry as PassedEntry
    from failwell.calls.chain.entry import ReplySource as ReplySource
    from failwell.calls.circuit_breaker import BreakerPolicy as BreakerPolicy
    from failwell.calls.circuit_breaker import Bucket as Bucket
    from failwell.calls.clock import Clock as Clock
    from failwell.calls.cost import Price as Price
    from failwell.calls.cost import Prices as Prices
    from failwell.calls.guard import ClosedOff as ClosedOff
    from failwell.calls.guard import Guard as Guard
    from failwell.calls.guard import GuardState as GuardState
    from failwell.calls.guard import Paused as Paused
    from failwell.calls.idempotency import keyed as keyed
    from failwell.calls.operation import Operation as Operation
    from failwell.calls.operation import collect_ledgers as collect_ledgers
    from failwell.calls.policy import Ask as Ask
    from failwell.calls.policy import Decision as Decision
    from failwell.calls.policy import Evict as Evict
    from failwell.calls.policy import Fallback as Fallback
    from failwell.calls.policy import GiveUp as GiveUp
    from failwell.calls.policy import Lost as Lost
    from failwell.calls.policy import Match as Match
    from failwell.calls.policy import Park as Park
    from failwell.calls.policy import Policy as Policy
    from failwell.calls.policy import Retry as Retry
    from failwell.calls.policy import Rule as Rule
    from failwell.calls.policy import Schedule as Schedule
    from failwell.calls.policy import Shrink as Shrink
    from failwell.calls.policy import Tries as Tries
    from failwell.calls.policy import decide as decide
    from failwell.calls.retry_options import RetryOptions as RetryOptions
    from failwell.calls.retry_options import RetryParameters as RetryParameters
    from failwell.calls.sdk_retries import RetriesNotSwitchable as RetriesNotSwitchable
    from failwell.calls.shared_budget import BudgetExceeded as BudgetExceeded
    from failwell.calls.shared_budget import Reservation as Reservation
    from failwell.calls.shared_budget import SharedBudget as SharedBudget
    from failwell.calls.shared_budget import Unpriced as Unpriced
    from failwell.calls.shared_limits import LimitStore as LimitStore
    from failwell.calls.streams.asynchronous import limit_astream as limit_astream
    from failwell.calls.streams.plain import limit_stream as limit_stream
    from failwell.calls.streams.timeouts import StreamTimedOut as StreamTimedOut
    from failwell.calls.streams.timeouts import StreamTimeouts as StreamTimeouts
    from failwell.calls.suppress import Subscription as Subscription
    from failwell.files.policy_file import read_policy as read_policy
    from failwell.files.policy_file import read_policy_file as read_policy_file
    from failwell.store.redis_limits import RedisLimits as RedisLimits
    from failwell.store.sqlite_limits import SqliteLimits as SqliteLimits
else:
    from failwell._lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "Ask": "failwell.calls.policy",
            "AttemptFailed": "failwell.calls.attempt_loop",
            "Backoff": "failwell.calls.backoff",
            "BreakerPolicy": "failwell.calls.circuit_breaker",
            "Bucket": "failwell.calls.circuit_breaker",
            "Budget": "failwell.calls.budget",
            "BudgetExceeded": "failwell.calls.shared_budget",
            "CancelScope": "failwell.calls.cancel",
            "ChainPolicy": "failwell.calls.chain.entry",
            "ChainReply": "failwell.calls.chain.entry",
            "Clock": "failwell.calls.clock",
            "ClosedOff": "failwell.calls.guard",
            "Decision": "failwell.calls.policy",
            "Evict": "failwell.calls.policy",
            "Fallback": "failwell.calls.policy",
            "GiveUp": "failwell.calls.policy",
            "Guard": "failwell.calls.guard",
            "GuardState": "failwell.calls.guard",
            "LimitStore": "failwell.calls.shared_limits",
            "Lost": "failwell.calls.policy",
            "Match": "failwell.calls.policy",
            "NestedRetries": "failwell.calls.attempt_loop",
            "Operation": "failwell.calls.operation",
            "OperationEnded": "failwell.calls.attempt_loop",
            "Park": "failwell.calls.policy",
            "PassedEntry": "failwell.calls.chain.entry",
            "Paused": "failwell.calls.guard",
            "Policy": "failwell.calls.policy",
            "Price": "failwell.calls.cost",
            "Prices": "failwell.calls.cost",
            "RedisLimits": "failwell.store.redis_limits",
            "ReplySource": "failwell.calls.chain.entry",
            "Reservation": "failwell.calls.shared_budget",
            "RetriesNotSwitchable": "failwell.calls.sdk_retries",
            "Retry": "failwell.calls.policy",
            "RetryOptions": "failwell.calls.retry_options",
            "RetryParameters": "failwell.calls.retry_options",
            "Rule": "failwell.calls.policy",
            "Schedule": "failwell.calls.policy",
            "SharedBudget": "failwell.calls.shared_budget",
            "Shrink": "failwell.calls.policy",
            "Spent": "failwell.calls.budget",
            "SqliteLimits": "failwell.store.sqlite_limits",
            "StreamTimedOut": "failwell.calls.streams.timeouts",
            "StreamTimeouts": "failwell.calls.streams.timeouts",
            "Subscription": "failwell.calls.suppress",
            "Tries": "failwell.calls.policy",
            "Unpriced": "failwell.calls.shared_budget",
            "collect_ledgers": "failwell.calls.operation",
            "decide": "failwell.calls.policy",
            "keyed": "failwell.calls.idempotency",
            "limit_astream": "failwell.calls.streams.asynchronous",
            "limit_stream": "failwell.calls.streams.plain",
            "read_policy": "failwell.files.policy_file",
            "read_policy_file": "failwell.files.policy_file",
            "watch": "failwell.calls.attempt_loop",
        },
    )
