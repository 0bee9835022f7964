"""Acting on failures in this process: retry, fallback chain, budgets, guards, streams, cancellation, batches.

Example:
    >>> from failwell import Backoff, Policy, describe
    >>> from failwell.calls import Match, Rule, Schedule, RetryState, decide
    >>> patient = Schedule(max_attempts=5, backoff=Backoff(curve="fixed", first=2.0))
    >>> policy = Policy(rules=(Rule(match=Match.of("provider.connection"), schedule=patient),))
    >>> report = describe(ConnectionRefusedError(111, "Connection refused"))
    >>> decide(policy, report, RetryState(attempts=1))
    Retry(after=2.0, ...)
"""

TYPE_CHECKING = False  # as `typing.TYPE_CHECKING`, which would cost an import: checkers go by the name
if TYPE_CHECKING:
    from failwell.calls.attempt_loop import AttemptFailed as AttemptFailed
    from failwell.calls.attempt_loop import NestedRetries as NestedRetries
    from failwell.calls.attempt_loop import OperationEnded as OperationEnded
    from failwell.calls.attempt_loop import watch as watch
    from failwell.calls.budget import Spent as Spent
    from failwell.calls.cancel import CancelScope as CancelScope
    from failwell.calls.chain.entry import ChainReply as ChainReply
    from failwell.calls.chain.entry import PassedEntry as PassedEntry
    from failwell.calls.chain.entry import ReplySource as ReplySource
    from failwell.calls.circuit_breaker import BreakerPolicy as BreakerPolicy
    from failwell.calls.circuit_breaker import Bucket as Bucket
    from failwell.calls.clock import Clock as Clock
    from failwell.calls.cost import Price as Price
    from failwell.calls.cost import Prices as Prices
    from failwell.calls.gather import Partial as Partial
    from failwell.calls.guard import CircuitOpen as CircuitOpen
    from failwell.calls.guard import Guard as Guard
    from failwell.calls.guard import GuardState as GuardState
    from failwell.calls.guard import Paused as Paused
    from failwell.calls.idempotency import keyed as keyed
    from failwell.calls.operation import Operation as Operation
    from failwell.calls.operation import collect_ledgers as collect_ledgers
    from failwell.calls.policy import AskPerson as AskPerson
    from failwell.calls.policy import Decision as Decision
    from failwell.calls.policy import Evict as Evict
    from failwell.calls.policy import Fallback as Fallback
    from failwell.calls.policy import GiveUp as GiveUp
    from failwell.calls.policy import Match as Match
    from failwell.calls.policy import Park as Park
    from failwell.calls.policy import Preemption as Preemption
    from failwell.calls.policy import Retry as Retry
    from failwell.calls.policy import RetryState as RetryState
    from failwell.calls.policy import Rule as Rule
    from failwell.calls.policy import Schedule as Schedule
    from failwell.calls.policy import Shrink as Shrink
    from failwell.calls.policy import decide as decide
    from failwell.calls.retry_options import RetryOptions as RetryOptions
    from failwell.calls.retry_options import RetryParameters as RetryParameters
    from failwell.calls.sdk_retries import RetriesNotSwitchable as RetriesNotSwitchable
    from failwell.calls.sdk_retries import without_sdk_retries as without_sdk_retries
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
    from failwell.calls.suppress import observe as observe
else:
    from failwell._lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "failwell.calls.attempt_loop": "AttemptFailed NestedRetries OperationEnded watch",
            "failwell.calls.budget": "Spent",
            "failwell.calls.cancel": "CancelScope",
            "failwell.calls.chain.entry": "ChainReply PassedEntry ReplySource",
            "failwell.calls.circuit_breaker": "BreakerPolicy Bucket",
            "failwell.calls.clock": "Clock",
            "failwell.calls.cost": "Price Prices",
            "failwell.calls.gather": "Partial",
            "failwell.calls.guard": "CircuitOpen Guard GuardState Paused",
            "failwell.calls.idempotency": "keyed",
            "failwell.calls.operation": "Operation collect_ledgers",
            "failwell.calls.policy": (
                "AskPerson Decision Evict Fallback GiveUp Preemption Match Park Retry Rule Schedule "
                "Shrink RetryState decide"
            ),
            "failwell.calls.retry_options": "RetryOptions RetryParameters",
            "failwell.calls.sdk_retries": "RetriesNotSwitchable without_sdk_retries",
            "failwell.calls.shared_budget": "BudgetExceeded Reservation SharedBudget Unpriced",
            "failwell.calls.shared_limits": "LimitStore",
            "failwell.calls.streams.asynchronous": "limit_astream",
            "failwell.calls.streams.plain": "limit_stream",
            "failwell.calls.streams.timeouts": "StreamTimedOut StreamTimeouts",
            "failwell.calls.suppress": "Subscription observe",
        },
    )
