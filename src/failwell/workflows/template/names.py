"""The names that a template can use, and what declarations and simple templates refer to.

A run may have 100,000 nodes, so the whole context is never built: names are looked up one by one
while a template is rendered. Nothing here loads Jinja2.
"""

import re
from typing import Any, Final, NamedTuple, Protocol, cast

from failwell.workflows.plan import Template


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


# ---------------------------------------------------------------- references

SLOTS = frozenset({"output", "error", "outputs", "errors", "count"})
"""The fields of a node or a group."""

_WHOLE = re.compile(r"\{\{-?\s*([^\W\d]\w*(?:\.\w+)*)\s*-?\}\}")
_SHAPE = re.compile(r"[^\W\d](?:[\w-]|[^\x00-\x7f\s])*(?:\.(?:[\w-]|[^\x00-\x7f\s])+)*\Z")


def whole_reference(template: Template) -> str | None:
    """The dotted path, if the template is exactly one reference, so that its value can be passed on unchanged."""
    match = _WHOLE.fullmatch(template.text)
    return None if match is None else match[1]


def is_expression(condition: Template) -> bool:
    """Whether a condition is an expression, and not a template."""
    return not ("{{" in condition.text and "}}" in condition.text)


class Reference(NamedTuple):
    """One dotted path that a template reads."""

    path: tuple[str, ...]
    guarded: bool
    """Whether the template handles a missing value, with `default`, `is defined` or a condition."""
    absent: frozenset[str] = frozenset()
    """Steps that have no output where it is read: those of an `if step` whose `else` it is in."""

    @property
    def root(self) -> str:
        """The first name."""
        return self.path[0]

    @property
    def slot(self) -> str | None:
        """`output`, `error`, `outputs`, `errors` or `count`, if one of them comes second."""
        return self.path[1] if len(self.path) > 1 and self.path[1] in SLOTS else None

    @property
    def rest(self) -> tuple[str, ...]:
        """What comes after the slot, or after the first name where there is no slot."""
        return self.path[1:] if self.slot is None else self.path[2:]


# ---------------------------------------------------------------- declarations


class ReferenceMistake(ValueError):
    """A declaration is not a dotted reference."""


class InputReference(NamedTuple):
    """An entry of `input:`, or a `source`, in full: `node.a` is `node.output.a`."""

    path: tuple[str, ...]
    is_optional: bool = False

    @property
    def root(self) -> str:
        """The node, the group, or `workflow`."""
        return self.path[0]

    @property
    def slot(self) -> str:
        """`output`, `error`, `outputs`, `errors`, `count`; of `workflow`, `input`, `dir`, `file` or `name`."""
        return self.path[1]

    @property
    def rest(self) -> tuple[str, ...]:
        """What comes after the slot."""
        return self.path[2:]


def input_reference(text: str) -> InputReference:
    """The reference in an entry of `input:`. A `?` at its end makes it optional.

    Raises:
        ReferenceMistake: it is not a dotted reference.
    """
    bare = text.strip()
    is_optional = bare.endswith("?")
    return InputReference(_declared(bare.removesuffix("?")), is_optional)


def _declared(text: str) -> tuple[str, ...]:
    if _SHAPE.match(text) is None:
        raise ReferenceMistake("write it with dots and without braces, as in `build.output.version`")
    root, *fields = text.split(".")
    if root == "workflow":
        if not fields:
            raise ReferenceMistake("name a field of the workflow, as in `workflow.input.name`")
        return (root, *fields)
    if not fields or fields[0] not in SLOTS:
        fields = ["output", *fields]
    return (root, *fields)


# ---------------------------------------------------------------- plain templates

# A large workflow has tens of thousands of templates, and nearly all of them are text and tags that hold a dotted
# name. These are matched by a pattern; everything else goes to Jinja2.
_TAG = re.compile(
    r"\{\{-?[ \t]*([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)[ \t]*(?:\|[ \t]*(?:(default)\((?:'[\w .,:/-]*')?\)|json|tojson)[ \t]*)?-?\}\}"
)
_RESERVED_WORDS = frozenset(
    {
        "and", "else", "false", "False", "if", "in", "is", "none", "None", "not", "or", "true", "True",
        "loop", "caller", "super", "self", "varargs", "kwargs",
    }
)  # fmt: skip


def simple_references(text: str) -> frozenset[Reference] | None:
    """The references of a simple template, or `None` if it has to be parsed."""
    remainder = _TAG.sub("", text)
    if "{" in remainder or "}" in remainder:
        return None
    refs: list[Reference] = []
    for path, guard in _TAG.findall(text):
        steps = tuple(path.split("."))
        if not _RESERVED_WORDS.isdisjoint(steps):
            return None
        refs.append(Reference(steps, bool(guard)))
    return frozenset(refs)
