"""What can go wrong: the axes, the kinds, the faults to raise, and the report that says what happened.

Nothing here imports another room or anything outside the standard library. A kind is a stable dotted name; its
category, blame and status follow from it in `failwell.errors.kind_registry` and nowhere else.

Example:
    >>> from failwell import describe
    >>> from failwell.errors import ToolTerminal, kind
    >>> fault = ToolTerminal(kind="tool.not_found", message="there is no tool called `grep`")
    >>> describe(fault).kind
    'tool.not_found'
    >>> kind("tool.not_found").category.value
    'user_input'
"""

TYPE_CHECKING = False  # as `typing.TYPE_CHECKING`, which would cost an import: checkers go by the name
if TYPE_CHECKING:
    from failwell.errors.axes import ActionKind as ActionKind
    from failwell.errors.axes import Blame as Blame
    from failwell.errors.axes import Certainty as Certainty
    from failwell.errors.axes import Domain as Domain
    from failwell.errors.context import Layer as Layer
    from failwell.errors.context import Ledger as Ledger
    from failwell.errors.context import ledger_of as ledger_of
    from failwell.errors.context import scene as scene
    from failwell.errors.explanations import translate_name as translate_name
    from failwell.errors.facts import NotBefore as NotBefore
    from failwell.errors.facts import Origin as Origin
    from failwell.errors.facts import ProviderMetadata as ProviderMetadata
    from failwell.errors.facts import UserAction as UserAction
    from failwell.errors.faults import Cancellation as Cancellation
    from failwell.errors.faults import ExtensionHost as ExtensionHost
    from failwell.errors.faults import ProviderCapability as ProviderCapability
    from failwell.errors.faults import ProviderTransient as ProviderTransient
    from failwell.errors.faults import Session as Session
    from failwell.errors.faults import ToolTerminal as ToolTerminal
    from failwell.errors.faults import ToolTransient as ToolTransient
    from failwell.errors.faults import Validation as Validation
    from failwell.errors.identity import Unclassified as Unclassified
    from failwell.errors.identity import unclassified as unclassified
    from failwell.errors.kind_registry import KindError as KindError
    from failwell.errors.kind_registry import find_kind as find_kind
    from failwell.errors.kind_registry import is_kind as is_kind
    from failwell.errors.kind_registry import kind as kind
    from failwell.errors.kind_registry import kinds as kinds
    from failwell.errors.kind_registry import register_kind as register_kind
    from failwell.errors.kinds_table import Kind as Kind
    from failwell.errors.report import Attempt as Attempt
    from failwell.errors.report import Cause as Cause
    from failwell.errors.report import Evidence as Evidence
    from failwell.errors.report import Frame as Frame
    from failwell.errors.report import Internal as Internal
    from failwell.errors.report import Scene as Scene
    from failwell.errors.report import Severity as Severity
else:
    from failwell._lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "failwell.errors.axes": "ActionKind Blame Certainty Domain",
            "failwell.errors.context": "Layer Ledger ledger_of scene",
            "failwell.errors.explanations": "translate_name",
            "failwell.errors.facts": "NotBefore Origin ProviderMetadata UserAction",
            "failwell.errors.faults": (
                "Cancellation ExtensionHost ProviderCapability ProviderTransient Session "
                "ToolTerminal ToolTransient Validation"
            ),
            "failwell.errors.identity": "Unclassified unclassified",
            "failwell.errors.kind_registry": "KindError find_kind is_kind kind kinds register_kind",
            "failwell.errors.kinds_table": "Kind",
            "failwell.errors.report": "Attempt Cause Evidence Frame Internal Scene Severity",
        },
    )
