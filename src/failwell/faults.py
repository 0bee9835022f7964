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
    from failwell.adapters.revival import revive as revive
    from failwell.adapters.revival import translate as translate
    from failwell.errors.axes import ActionKind as ActionKind
    from failwell.errors.axes import Blame as Blame
    from failwell.errors.axes import Category as Category
    from failwell.errors.axes import Certainty as Certainty
    from failwell.errors.axes import Domain as Domain
    from failwell.errors.explanations import translate_name as translate_name
    from failwell.errors.facts import NotBefore as NotBefore
    from failwell.errors.facts import Origin as Origin
    from failwell.errors.facts import ProviderMetadata as ProviderMetadata
    from failwell.errors.facts import ResourceShortfall as ResourceShortfall
    from failwell.errors.facts import UserAction as UserAction
    from failwell.errors.fault import Fault as Fault
    from failwell.errors.faults import Cancellation as Cancellation
    from failwell.errors.faults import ExtensionHost as ExtensionHost
    from failwell.errors.faults import ProviderCapability as ProviderCapability
    from failwell.errors.faults import ProviderTransient as ProviderTransient
    from failwell.errors.faults import Session as Session
    from failwell.errors.faults import ToolTerminal as ToolTerminal
    from failwell.errors.faults import ToolTransient as ToolTransient
    from failwell.errors.faults import Validation as Validation
    from failwell.errors.kind_registry import KindError as KindError
    from failwell.errors.kind_registry import find_kind as find_kind
    from failwell.errors.kind_registry import is_kind as is_kind
    from failwell.errors.kind_registry import kind as kind
    from failwell.errors.kind_registry import kinds as kinds
    from failwell.errors.kind_registry import register_kind as register_kind
    from failwell.errors.kinds_table import Kind as Kind
else:
    from failwell._lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "ActionKind": "failwell.errors.axes",
            "Blame": "failwell.errors.axes",
            "Cancellation": "failwell.errors.faults",
            "Category": "failwell.errors.axes",
            "Certainty": "failwell.errors.axes",
            "Domain": "failwell.errors.axes",
            "ExtensionHost": "failwell.errors.faults",
            "Fault": "failwell.errors.fault",
            "Kind": "failwell.errors.kinds_table",
            "KindError": "failwell.errors.kind_registry",
            "NotBefore": "failwell.errors.facts",
            "Origin": "failwell.errors.facts",
            "ProviderCapability": "failwell.errors.faults",
            "ProviderMetadata": "failwell.errors.facts",
            "ProviderTransient": "failwell.errors.faults",
            "ResourceShortfall": "failwell.errors.facts",
            "Session": "failwell.errors.faults",
            "ToolTerminal": "failwell.errors.faults",
            "ToolTransient": "failwell.errors.faults",
            "UserAction": "failwell.errors.facts",
            "Validation": "failwell.errors.faults",
            "find_kind": "failwell.errors.kind_registry",
            "is_kind": "failwell.errors.kind_registry",
            "kind": "failwell.errors.kind_registry",
            "kinds": "failwell.errors.kind_registry",
            "register_code": "failwell.adapters.registrations",
            "register_exception": "failwell.adapters.registrations",
            "register_kind": "failwell.errors.kind_registry",
            "revive": "failwell.adapters.revival",
            "translate": "failwell.adapters.revival",
            "translate_name": "failwell.errors.explanations",
        },
    )
