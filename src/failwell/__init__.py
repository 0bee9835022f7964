"""Everything fails. Fail well: one typed error model, and the runtime that acts on it.

Importing this package imports nothing else: each name below is loaded when it is first used.
"""

# `typing.TYPE_CHECKING`, without paying for `typing`: checkers go by the name.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from failwell._version import __version__ as __version__
    from failwell.adapters.classify import register_code as register_code
    from failwell.decision.policy import Policy as Policy
    from failwell.fault.axes import Blame as Blame
    from failwell.fault.axes import Category as Category
    from failwell.fault.axes import Certainty as Certainty
    from failwell.fault.axes import Domain as Domain
    from failwell.fault.base import Fault as Fault
    from failwell.fault.facts import NotBefore as NotBefore
    from failwell.fault.facts import ProviderMetadata as ProviderMetadata
    from failwell.fault.facts import ResourceShortfall as ResourceShortfall
    from failwell.fault.facts import UserAction as UserAction
    from failwell.fault.registry import kind as kind
    from failwell.fault.registry import kinds as kinds
    from failwell.fault.registry import register_kind as register_kind
    from failwell.report.checked import check_reply as check_reply
    from failwell.report.checked import checked as checked
    from failwell.report.describe import describe as describe
    from failwell.report.policy import TracebackPolicy as TracebackPolicy
    from failwell.report.record import ErrorReport as ErrorReport
    from failwell.report.record import Scene as Scene
    from failwell.report.redact import register_secret as register_secret
    from failwell.report.revive import revive as revive
    from failwell.report.revive import translate as translate
    from failwell.report.saved import classify as classify
    from failwell.report.scene import scene as scene
    from failwell.report.unclassified import unclassified as unclassified
    from failwell.runtime.cancel import cancel_scope as cancel_scope
    from failwell.runtime.chain import Chain as Chain
    from failwell.runtime.chain_entry import Entry as Entry
    from failwell.runtime.gather import Partial as Partial
    from failwell.runtime.gather import gather as gather
    from failwell.runtime.loop import Parked as Parked
    from failwell.runtime.operation import idempotency_key as idempotency_key
    from failwell.runtime.retry import retry as retry
    from failwell.runtime.retry import retrying as retrying
    from failwell.runtime.sdk_retries import without_sdk_retries as without_sdk_retries
    from failwell.runtime.suppress import observe as observe
    from failwell.runtime.suppress import suppress as suppress

_HOMES = {
    "Blame": "failwell.fault.axes",
    "Category": "failwell.fault.axes",
    "Certainty": "failwell.fault.axes",
    "Chain": "failwell.runtime.chain",
    "Domain": "failwell.fault.axes",
    "Entry": "failwell.runtime.chain_entry",
    "ErrorReport": "failwell.report.record",
    "Fault": "failwell.fault.base",
    "NotBefore": "failwell.fault.facts",
    "Parked": "failwell.runtime.loop",
    "Partial": "failwell.runtime.gather",
    "Policy": "failwell.decision.policy",
    "ProviderMetadata": "failwell.fault.facts",
    "ResourceShortfall": "failwell.fault.facts",
    "Scene": "failwell.report.record",
    "TracebackPolicy": "failwell.report.policy",
    "UserAction": "failwell.fault.facts",
    "__version__": "failwell._version",
    "cancel_scope": "failwell.runtime.cancel",
    "check_reply": "failwell.report.checked",
    "checked": "failwell.report.checked",
    "classify": "failwell.report.saved",
    "describe": "failwell.report.describe",
    "gather": "failwell.runtime.gather",
    "idempotency_key": "failwell.runtime.operation",
    "kind": "failwell.fault.registry",
    "kinds": "failwell.fault.registry",
    "observe": "failwell.runtime.suppress",
    "without_sdk_retries": "failwell.runtime.sdk_retries",
    "register_code": "failwell.adapters.classify",
    "register_kind": "failwell.fault.registry",
    "register_secret": "failwell.report.redact",
    "retry": "failwell.runtime.retry",
    "retrying": "failwell.runtime.retry",
    "revive": "failwell.report.revive",
    "scene": "failwell.report.scene",
    "suppress": "failwell.runtime.suppress",
    "translate": "failwell.report.revive",
    "unclassified": "failwell.report.unclassified",
}

__all__ = [
    "Blame",
    "Category",
    "Certainty",
    "Chain",
    "Domain",
    "Entry",
    "ErrorReport",
    "Fault",
    "NotBefore",
    "Parked",
    "Partial",
    "Policy",
    "ProviderMetadata",
    "ResourceShortfall",
    "Scene",
    "TracebackPolicy",
    "UserAction",
    "__version__",
    "cancel_scope",
    "check_reply",
    "checked",
    "classify",
    "describe",
    "gather",
    "idempotency_key",
    "kind",
    "kinds",
    "observe",
    "register_code",
    "register_kind",
    "register_secret",
    "retry",
    "retrying",
    "revive",
    "scene",
    "suppress",
    "translate",
    "unclassified",
    "without_sdk_retries",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
