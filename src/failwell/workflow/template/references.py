"""Finds what templates, conditions and declarations refer to, before anything runs.

Templates are tokenized and never rendered. A path ends at its first computed part (`node[key]`).
Names that a template assigns itself are not references.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from failwell.workflow.plan import Template
from failwell.workflow.template.syntax.tokenizer import Token, expression_tokens, template_tokens
from failwell.workflow.template.template_errors import TemplateMistake

SLOTS = frozenset({"output", "error", "outputs", "errors", "count"})
"""The fields of a node or a group."""

_WHOLE = re.compile(r"\{\{-?\s*([^\W\d]\w*(?:\.\w+)*)\s*-?\}\}")
_SHAPE = re.compile(r"[^\W\d](?:[\w-]|[^\x00-\x7f\s])*(?:\.(?:[\w-]|[^\x00-\x7f\s])+)*\Z")
_WORDS = frozenset(
    {
        "and",
        "as",
        "else",
        "false",
        "False",
        "if",
        "in",
        "is",
        "none",
        "None",
        "not",
        "or",
        "recursive",
        "true",
        "True",
    }
)
_OPENERS = frozenset({"for", "set", "macro", "with", "call", "import", "from"})
_BUILT_IN = frozenset({"loop", "caller", "super", "self", "varargs", "kwargs"})


def whole_reference(template: Template) -> str | None:
    """The dotted path, if the template is exactly one reference, so that its value can be passed on unchanged."""
    match = _WHOLE.fullmatch(template.text)
    return None if match is None else match[1]


class Reference(NamedTuple):
    """One dotted path that a template reads."""

    path: tuple[str, ...]
    guarded: bool
    """Whether the template handles a missing value, with `default` or `is defined`."""

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


def references(template: Template, *, condition: bool = False) -> frozenset[Reference]:
    """Every path that `template` reads. One that cannot be parsed has none.

    With `condition`, a text without `{{ }}` is an expression.
    """
    is_expression = condition and not ("{{" in template.text and "}}" in template.text)
    if not is_expression and template.is_plain:
        return frozenset()
    try:
        tags = (
            [expression_tokens(template.text)]
            if is_expression
            else list(_tags(template_tokens(template.text)))
        )
    except TemplateMistake:
        return frozenset()
    local_names = _BUILT_IN.union(*(_assigned_names(tag) for tag in tags))
    paths = [entry for tag in tags for entry in _paths(tag)]
    tested = {path for path, _, is_tested in paths if is_tested}
    return frozenset(
        Reference(path, guarded or any(path[:n] in tested for n in range(1, len(path) + 1)))
        for path, guarded, _ in paths
        if path[0] not in local_names
    )


def _tags(tokens: list[Token]) -> Iterator[list[Token]]:
    tag: list[Token] = []
    for token in tokens:
        if token[0] in {"out", "block"}:
            tag = [token]
        elif token[0] in {"/out", "/block"}:
            yield [*tag, ("end", None, token[2], token[3], token[3])]
        else:
            tag.append(token)


def _assigned_names(tag: list[Token]) -> set[str]:
    """The names that a tag assigns: those before its `in` or `=`, and the parameters of a macro."""
    if tag[0][0] != "block" or len(tag) < 3 or tag[1][1] not in _OPENERS:
        return set()
    word = tag[1][1]
    if word in {"import", "from"}:
        starts = [
            index for index, token in enumerate(tag) if token[:2] in {("name", "as"), ("name", "import")}
        ]
        return {str(token[1]) for token in tag[starts[0] :] if token[0] == "name"} if starts else set()
    names: set[str] = set()
    for index in range(2, len(tag) - 1):
        kind, name, *_ = tag[index]
        if word == "for" and (kind, name) == ("name", "in"):
            break
        if word == "set" and (kind, name) in {("op", "="), ("op", "|")}:
            break
        if kind == "name" and tag[index - 1][1] != ".":
            # A macro's parameters and the names of a `with` are the ones before a `=`, a comma or a bracket.
            if word in {"macro", "with", "call"} and tag[index + 1][1] not in {"=", ",", ")", "("}:
                continue
            names.add(str(name))
    return names


def _paths(tag: list[Token]) -> Iterator[tuple[tuple[str, ...], bool, bool]]:
    """Path, whether it is guarded here, and whether it is tested with `is defined`."""
    index = 1 if tag[0][0] == "block" else 0
    if index and len(tag) > 1 and tag[1][0] == "name":
        if tag[1][1] in {"import", "from", "block"}:
            return
        index = 3 if tag[1][1] == "filter" else 2  # the word that says what the tag is, and a filter's name
    while index < len(tag):
        if not _starts(tag, index):
            index += 1
            continue
        path, index = _path(tag, index)
        if not path:
            continue
        is_tested = _is_tested(tag, index)
        yield path, is_tested or _has_default(tag, index), is_tested


def _starts(tag: list[Token], index: int) -> bool:
    kind, name, *_ = tag[index]
    if kind != "name" or name in _WORDS:
        return False
    previous = tag[index - 1][1] if index else None
    if previous in {".", "|"} or previous == "is" or (previous == "not" and tag[index - 2][1] == "is"):
        return False
    if previous in {"with", "without"} and name == "context":
        return False
    # `name=` inside of brackets names an argument; `==` is another token.
    return tag[index + 1][1] != "=" if index + 1 < len(tag) else True


def _path(tag: list[Token], index: int) -> tuple[tuple[str, ...], int]:
    path = [str(tag[index][1])]
    index += 1
    if tag[index][:2] == ("op", "("):
        return (), index  # a function
    while True:
        if tag[index][:2] == ("op", ".") and tag[index + 1][0] in {"name", "int"}:
            if tag[index + 2][:2] == ("op", "("):
                return tuple(path), index + 2  # a method
            path.append(str(tag[index + 1][1]))
            index += 2
        elif (
            tag[index][:2] == ("op", "[")
            and tag[index + 1][0] in {"str", "int"}
            and tag[index + 2][:2] == ("op", "]")
        ):
            path.append(str(tag[index + 1][1]))
            index += 3
        else:
            return tuple(path), index


def _is_tested(tag: list[Token], index: int) -> bool:
    words = [token[1] for token in tag[index : index + 3]]
    return words[:2] in (["is", "defined"], ["is", "undefined"]) or words in (
        ["is", "not", "defined"],
        ["is", "not", "undefined"],
    )


def _has_default(tag: list[Token], index: int) -> bool:
    while tag[index][:2] == ("op", ")"):
        index += 1
    return tag[index][:2] == ("op", "|") and tag[index + 1][1] in {"default", "d"}


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
# name. These are matched by a pattern; everything else goes to the tokenizer.
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
