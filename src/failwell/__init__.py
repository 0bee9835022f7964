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
    from failwell.adapters.checked_replies import checked as checked
    from failwell.adapters.describe import describe as describe
    from failwell.adapters.log_records.log_record import classify as classify
    from failwell.adapters.registrations import register_exception as register_exception
    from failwell.calls.attempt_loop import Parked as Parked
    from failwell.calls.backoff import Backoff as Backoff
    from failwell.calls.budget import Budget as Budget
    from failwell.calls.cancel import cancel_scope as cancel_scope
    from failwell.calls.chain.chain import Chain as Chain
    from failwell.calls.chain.entry import ChainPolicy as ChainPolicy
    from failwell.calls.chain.entry import Entry as Entry
    from failwell.calls.gather import gather as gather
    from failwell.calls.idempotency import idempotency_key as idempotency_key
    from failwell.calls.policy import Policy as Policy
    from failwell.calls.retry import retry as retry
    from failwell.calls.retry import retrying as retrying
    from failwell.calls.suppress import suppress as suppress
    from failwell.errors.axes import Category as Category
    from failwell.errors.fault import Fault as Fault
    from failwell.errors.redact import register_secret as register_secret
    from failwell.errors.report import ErrorReport as ErrorReport
    from failwell.store.effects.effect import effect as effect
else:
    _HOMES = {
        "failwell._version": "__version__",
        "failwell.adapters.checked_replies": "checked",
        "failwell.adapters.describe": "describe",
        "failwell.adapters.registrations": "register_exception",
        "failwell.adapters.log_records.log_record": "classify",
        "failwell.calls.attempt_loop": "Parked",
        "failwell.calls.backoff": "Backoff",
        "failwell.calls.budget": "Budget",
        "failwell.calls.cancel": "cancel_scope",
        "failwell.calls.chain.chain": "Chain",
        "failwell.calls.chain.entry": "ChainPolicy Entry",
        "failwell.calls.gather": "gather",
        "failwell.calls.idempotency": "idempotency_key",
        "failwell.calls.policy": "Policy",
        "failwell.calls.retry": "retry retrying",
        "failwell.calls.suppress": "suppress",
        "failwell.errors.axes": "Category",
        "failwell.errors.fault": "Fault",
        "failwell.errors.redact": "register_secret",
        "failwell.errors.report": "ErrorReport",
        "failwell.store.effects.effect": "effect",
    }
    __all__ = [name for names in _HOMES.values() for name in names.split()]
    __all__.sort()

    # `lazy_names` is not called here: loading it takes as long as everything else in this module.
    def __getattr__(name: str) -> object:
        from failwell._lazy import load_name

        return load_name(__name__, name, _HOMES)

    def __dir__() -> list[str]:
        from failwell._lazy import listed_names

        return listed_names(__name__, __all__)
