"""What `failwell explain` says about a kind: when it happens, what to do, an example.

One module per namespace, imported when somebody asks about a kind of it and never before.
"""

from functools import cache
from importlib import import_module

from failwell.fault.explanations.entry import Explanation as Explanation

_MODULES = {
    "provider": ("provider_call", "provider_answer"),
    "tool": ("tool",),
    "resource": ("resource",),
    "worker": ("worker",),
    "limit": ("limit",),
    "cancel": ("cancel",),
    "session": ("session",),
    "validation": ("validation",),
    "extension": ("extension",),
    "internal": ("internal",),
    "subworkflow": ("workflow",),
    "retry": ("workflow",),
    "halt": ("workflow",),
}


def explanation(kind: str) -> Explanation | None:
    """The words for `kind`, or `None` when the runtime does not own it."""
    return _namespace(kind.partition(".")[0]).get(kind)


@cache
def _namespace(name: str) -> dict[str, Explanation]:
    found: dict[str, Explanation] = {}
    for module in _MODULES.get(name, ()):
        found |= import_module(f"{__name__}.{module}").EXPLANATIONS
    return found
