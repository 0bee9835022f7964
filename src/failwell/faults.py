"""Faults to raise, the facts they carry, and the registry of kinds.

Example:
    >>> from failwell import describe
    >>> from failwell.faults import ToolTerminal, UserAction, kind
    >>> fault = ToolTerminal(kind="tool.not_found", message="there is no tool called `grep`")
    >>> describe(fault).kind
    'tool.not_found'
    >>> kind("tool.not_found").category.value
    'user_input'
"""

TYPE_CHECKING = False  # as `typing.TYPE_CHECKING`, which would cost an import: checkers go by the name
if TYPE_CHECKING:
    from failwell.adapters.registrations import register_code as register_code
    from failwell.adapters.registrations import register_exception as register_exception
    from failwell.fault.axes import ActionKind as ActionKind
    from failwell.fault.axes import Blame as Blame
    from failwell.fault.axes import Category as Category
    from failwell.fault.axes import Certainty as Certainty
    from failwell.fault.axes import Domain as Domain
    from failwell.fault.base import Fault as Fault
    from failwell.fault.classes import Cancellation as Cancellation
    from failwell.fault.classes import ExtensionHost as ExtensionHost
    from failwell.fault.classes import ProviderCapability as ProviderCapability
    from failwell.fault.classes import ProviderTransient as ProviderTransient
    from failwell.fault.classes import Session as Session
    from failwell.fault.classes import ToolTerminal as ToolTerminal
    from failwell.fault.classes import ToolTransient as ToolTransient
    from failwell.fault.classes import Validation as Validation
    from failwell.fault.facts import NotBefore as NotBefore
    from failwell.fault.facts import Origin as Origin
    from failwell.fault.facts import ProviderMetadata as ProviderMetadata
    from failwell.fault.facts import ResourceShortfall as ResourceShortfall
    from failwell.fault.facts import UserAction as UserAction
    from failwell.fault.kind import Kind as Kind
    from failwell.fault.registry import KindError as KindError
    from failwell.fault.registry import find_kind as find_kind
    from failwell.fault.registry import is_kind as is_kind
    from failwell.fault.registry import kind as kind
    from failwell.fault.registry import kinds as kinds
    from failwell.fault.registry import register_kind as register_kind
    from failwell.fault.rosetta import translate_name as translate_name
    from failwell.report.revive import revive as revive
    from failwell.report.revive import translate as translate
else:
    from failwell._lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "ActionKind": "failwell.fault.axes",
            "Blame": "failwell.fault.axes",
            "Cancellation": "failwell.fault.classes",
            "Category": "failwell.fault.axes",
            "Certainty": "failwell.fault.axes",
            "Domain": "failwell.fault.axes",
            "ExtensionHost": "failwell.fault.classes",
            "Fault": "failwell.fault.base",
            "Kind": "failwell.fault.kind",
            "KindError": "failwell.fault.registry",
            "NotBefore": "failwell.fault.facts",
            "Origin": "failwell.fault.facts",
            "ProviderCapability": "failwell.fault.classes",
            "ProviderMetadata": "failwell.fault.facts",
            "ProviderTransient": "failwell.fault.classes",
            "ResourceShortfall": "failwell.fault.facts",
            "Session": "failwell.fault.classes",
            "ToolTerminal": "failwell.fault.classes",
            "ToolTransient": "failwell.fault.classes",
            "UserAction": "failwell.fault.facts",
            "Validation": "failwell.fault.classes",
            "find_kind": "failwell.fault.registry",
            "is_kind": "failwell.fault.registry",
            "kind": "failwell.fault.registry",
            "kinds": "failwell.fault.registry",
            "register_code": "failwell.adapters.registrations",
            "register_exception": "failwell.adapters.registrations",
            "register_kind": "failwell.fault.registry",
            "revive": "failwell.report.revive",
            "translate": "failwell.report.revive",
            "translate_name": "failwell.fault.rosetta",
        },
    )
