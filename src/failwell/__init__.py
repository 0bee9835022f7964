"""One typed error model for agents, workflows and jobs, and the runtime that acts on it.

Importing this package imports nothing else: each name is loaded when it is first used.

Example:
    >>> import failwell
    >>> report = failwell.describe(ConnectionRefusedError(111, "Connection refused"))
    >>> report.kind, report.retryable
    ('provider.connection', True)
    >>> @failwell.retry(attempts=3, backoff=failwell.Backoff(first=0.0))
    ... def answer() -> int:
    ...     return 42
    >>> answer()
    42
"""

TYPE_CHECKING = False  # as `typing.TYPE_CHECKING`, which would cost an import: checkers go by the name
if TYPE_CHECKING:
    __all__: list[str]
    from failwell._version import __version__ as __version__
    from failwell.adapters.registrations import register_exception as register_exception
    from failwell.agents.message_repair import repair as repair
    from failwell.decision.backoff import Backoff as Backoff
    from failwell.decision.budget import Budget as Budget
    from failwell.decision.policy import Policy as Policy
    from failwell.fault.axes import Blame as Blame
    from failwell.fault.axes import Category as Category
    from failwell.fault.axes import Certainty as Certainty
    from failwell.fault.base import Fault as Fault
    from failwell.report.checked import checked as checked
    from failwell.report.describe import describe as describe
    from failwell.report.record import ErrorReport as ErrorReport
    from failwell.report.redact import register_secret as register_secret
    from failwell.report.saved_failures.saved_row import classify as classify
    from failwell.runtime.call_guard import Guard as Guard
    from failwell.runtime.cancel import cancel_scope as cancel_scope
    from failwell.runtime.fallback import Chain as Chain
    from failwell.runtime.fallback_entry import ChainPolicy as ChainPolicy
    from failwell.runtime.fallback_entry import Entry as Entry
    from failwell.runtime.gather import Partial as Partial
    from failwell.runtime.gather import gather as gather
    from failwell.runtime.idempotency import idempotency_key as idempotency_key
    from failwell.runtime.loop import Parked as Parked
    from failwell.runtime.retry import retry as retry
    from failwell.runtime.retry import retrying as retrying
    from failwell.runtime.sdk_retries import without_sdk_retries as without_sdk_retries
    from failwell.runtime.suppress import observe as observe
    from failwell.runtime.suppress import suppress as suppress
    from failwell.shared.effect import effect as effect
else:
    _HOMES = {
        "Backoff": "failwell.decision.backoff",
        "Blame": "failwell.fault.axes",
        "Budget": "failwell.decision.budget",
        "Category": "failwell.fault.axes",
        "Certainty": "failwell.fault.axes",
        "Chain": "failwell.runtime.fallback",
        "ChainPolicy": "failwell.runtime.fallback_entry",
        "Entry": "failwell.runtime.fallback_entry",
        "ErrorReport": "failwell.report.record",
        "Fault": "failwell.fault.base",
        "Guard": "failwell.runtime.call_guard",
        "Parked": "failwell.runtime.loop",
        "Partial": "failwell.runtime.gather",
        "Policy": "failwell.decision.policy",
        "__version__": "failwell._version",
        "cancel_scope": "failwell.runtime.cancel",
        "checked": "failwell.report.checked",
        "classify": "failwell.report.saved_failures.saved_row",
        "describe": "failwell.report.describe",
        "effect": "failwell.shared.effect",
        "gather": "failwell.runtime.gather",
        "idempotency_key": "failwell.runtime.idempotency",
        "observe": "failwell.runtime.suppress",
        "register_exception": "failwell.adapters.registrations",
        "register_secret": "failwell.report.redact",
        "repair": "failwell.agents.message_repair",
        "retry": "failwell.runtime.retry",
        "retrying": "failwell.runtime.retry",
        "suppress": "failwell.runtime.suppress",
        "without_sdk_retries": "failwell.runtime.sdk_retries",
    }
    __all__ = list(_HOMES)

    # `lazy_names` is not called here: loading it takes as long as everything else in this module.
    def __getattr__(name: str) -> object:
        from failwell._lazy import load_name

        return load_name(__name__, name, _HOMES)

    def __dir__() -> list[str]:
        from failwell._lazy import listed_names

        return listed_names(__name__, __all__)
