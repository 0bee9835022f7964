"""The names that a template can use, and `MISSING` for a name that does not exist.

A run may have 100,000 nodes, so the whole context is never built: names are looked up one by one
while a template is rendered.
"""

from typing import Any, Final, Protocol, cast

from failwell.workflows.template.memory_budget import note_undefined


class _Missing:
    """The type of `MISSING`, which a template's unknown name has."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING: Final = _Missing()
"""What `Names.get` returns for a name that does not exist. `None` is a value like any other."""


class _NeverRan:
    """The type of `NEVER_RAN`, which a step has that did not run."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "NEVER_RAN"

    def __str__(self) -> str:
        note_undefined()
        return ""

    def __bool__(self) -> bool:
        return False


NEVER_RAN: Final = _NeverRan()
"""What `Names.get` returns for a step that has not run. It is undefined, and false as a condition."""


class Names(Protocol):
    """Looks up the names of a template."""

    def get(self, name: str, /) -> object:
        """The value under `name`, as plain JSON, or `MISSING`, or `NEVER_RAN`."""
        ...


class FlatNames:
    """Names in a condition without `{{ }}`: flattened one level, besides the dotted ones.

    `finder_output` is `finder.output`, `workflow_input` is `workflow.input`, `error_kind` is `error.kind`.
    The keys of the routed error and of the current `output` are names too. They take precedence over nodes of
    the same name, except for names in `dotted`, which a dot follows in the condition.
    """

    __slots__ = ("_dotted", "_names")

    def __init__(self, names: Names, dotted: frozenset[str] = frozenset()) -> None:
        self._names = names
        self._dotted = dotted

    def get(self, name: str, /) -> object:
        if name in self._dotted or name in _OWN:
            return self._first(name, self._names.get, self._bare, self._joined)
        return self._first(name, self._bare, self._names.get, self._joined)

    def known(self) -> list[str]:
        """Names to suggest for an unknown one."""
        names: list[str] = cast("Any", getattr(self._names, "known", list))()
        for owner in ("error", "output"):
            slot = self._names.get(owner)
            names += cast("dict[str, object]", slot) if isinstance(slot, dict) else ()
        return names

    def _first(self, name: str, *lookups: Any) -> object:
        never_ran = False
        for look_up in lookups:
            value = look_up(name)
            if value is NEVER_RAN:
                never_ran = True
            elif value is not MISSING:
                return value
        return NEVER_RAN if never_ran else MISSING

    def _bare(self, name: str) -> object:
        for owner in ("error", "output"):
            slot = self._names.get(owner)
            if isinstance(slot, dict) and name in slot:
                return cast("dict[str, object]", slot)[name]
        return MISSING

    def _joined(self, name: str) -> object:
        end = name.rfind("_")
        while end > 0:
            slot = self._names.get(name[:end])
            if isinstance(slot, dict) and name[end + 1 :] in slot:
                return cast("dict[str, object]", slot)[name[end + 1 :]]
            end = name.rfind("_", 0, end)
        return MISSING


_OWN = frozenset({"workflow", "context", "output", "error"})
"""Names that a key of an output never shadows."""
