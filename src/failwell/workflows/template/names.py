"""Finds what templates, conditions and declarations refer to, before anything runs.

Templates are parsed and never rendered. A path ends at its first computed part (`node[key]`).
Names that a template assigns itself are not references.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from failwell.workflows.plan import Template
from failwell.workflows.template.syntax.block_tags import parse_block
from failwell.workflows.template.syntax.expressions import parse_expression
from failwell.workflows.template.syntax.tokenizer import Token, expression_tokens, template_tokens
from failwell.workflows.template.syntax.tree import Expression, Step
from failwell.workflows.template.template_errors import TemplateMistake

SLOTS = frozenset({"output", "error", "outputs", "errors", "count"})
"""The fields of a node or a group."""

_WHOLE = re.compile(r"\{\{-?\s*([^\W\d]\w*(?:\.\w+)*)\s*-?\}\}")
_SHAPE = re.compile(r"[^\W\d](?:[\w-]|[^\x00-\x7f\s])*(?:\.(?:[\w-]|[^\x00-\x7f\s])+)*\Z")
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


def references(template: Template, *, condition: bool = False) -> frozenset[Reference]:
    """Every path that `template` reads. One that cannot be parsed has none.

    With `condition`, a text without `{{ }}` is an expression.
    """
    is_expression = condition and not ("{{" in template.text and "}}" in template.text)
    if not is_expression and template.is_plain:
        return frozenset()
    reader = _Reader()
    local_names: set[str] = set(_BUILT_IN)
    try:
        if is_expression:
            reader.read(parse_expression(expression_tokens(template.text)[:-1]), frozenset())
        else:
            for tag in tags(template_tokens(template.text)):
                local_names |= assigned_names(tag)
                reader.read_tag(tag)
    except TemplateMistake:
        return frozenset()
    return frozenset(
        Reference(
            path,
            guarded or any(path[:n] in reader.tested for n in range(1, len(path) + 1)),
            absent,
        )
        for path, guarded, absent in reader.paths
        if path[0] not in local_names
    )


def line_of(template: Template, path: tuple[str, ...], *, condition: bool = False) -> int | None:
    """The first line of a template's text that reads `path`, counted from 1."""
    try:
        if condition and not ("{{" in template.text and "}}" in template.text):
            tagged = [("out", expression_tokens(template.text)[:-1])]
        else:
            tagged = [(tag[0][0], tag[1:-1]) for tag in tags(template_tokens(template.text))]
        for kind, tokens in tagged:
            expressions = [parse_expression(tokens)] if kind == "out" else parse_block(tokens)
            for expression in expressions:
                for part in expression.walk():
                    if path_of(part)[: len(path)] == path:
                        return part.line
    except TemplateMistake:
        pass  # it has no references either
    return None


def path_of(expression: Expression) -> tuple[str, ...]:
    """The path that an expression begins with, up to its first computed part; empty if it is none."""
    if expression.kind == "name":
        return (str(expression.value),)
    if expression.kind != "chain" or expression.parts[0].kind != "name":
        return ()
    path = [str(expression.parts[0].value)]
    steps: list[Step] = expression.parts[1:]
    for index, step in enumerate(steps):
        following = steps[index + 1] if index + 1 < len(steps) else None
        if step.kind == "call":
            return () if index == 0 else tuple(path)
        if following is not None and following.kind == "call":
            return tuple(path)
        if step.kind == "attribute":
            path.append(step.name)
        elif step.kind == "item" and step.arguments[0].kind == "const":
            path.append(str(step.arguments[0].value))
        else:
            break
    return tuple(path)


def _negated(expression: Expression) -> bool:
    return (expression.value == "undefined") is not expression.is_negated


class _Reader:
    """Collects the paths of a template, in the order of its tags."""

    def __init__(self) -> None:
        self.paths: list[tuple[tuple[str, ...], bool, frozenset[str]]] = []
        self.tested: set[tuple[str, ...]] = set()
        """Paths that a condition asks for."""
        self._branches: list[tuple[frozenset[str], frozenset[str]]] = []
        """For each open `if` and `for`: the absent steps around it, and those that its conditions so far leave absent."""
        self._absent: frozenset[str] = frozenset()

    def read_tag(self, tag: list[Token]) -> None:
        """Read a tag, with its opening token and its end."""
        inner = tag[1:-1]
        if tag[0][0] == "out":
            self.read(parse_expression(inner), self._absent)
            return
        word = str(inner[0][1]) if inner else ""
        if word in {"if", "for"}:
            self._branches.append((self._absent, frozenset()))
        if word in {"else", "elif"} and self._branches:
            around, absent = self._branches[-1]
            self._absent = around | absent
        elif word in {"endif", "endfor"} and self._branches:
            self._absent = self._branches.pop()[0]
        expressions = parse_block(inner)
        if word in {"import", "from"}:
            return
        for expression in expressions:
            self.read(expression, self._absent)
        if word in {"if", "elif"} and self._branches:
            self._test(expressions[0])
            around, absent = self._branches[-1]
            if_true, if_false = _absent_steps(expressions[0])
            self._absent |= if_true
            self._branches[-1] = (around, absent | if_false)

    def read(self, expression: Expression, absent: frozenset[str], *, guarded: bool = False) -> None:
        """Collect the paths of an expression."""
        match expression.kind:
            case "name" | "chain":
                self._chain(expression, absent, guarded=guarded)
            case "filters":
                self._filters(expression, absent, guarded=guarded)
            case "test":
                self._tested(expression, absent, guarded=guarded)
            case "if":
                self._conditional(expression, absent, guarded=guarded)
            case "and" | "or" | "not":
                self._test(expression)
                self._operands(expression, absent)
            case "group":
                self.read(expression.parts[0], absent, guarded=guarded)
            case kind:
                if kind == "compare":
                    self._membership(expression)
                for part in expression.inner():
                    self.read(part, absent)

    def _chain(self, expression: Expression, absent: frozenset[str], *, guarded: bool) -> None:
        path = path_of(expression)
        if path:
            self.paths.append((path, guarded, absent))
        elif expression.parts[0].kind != "name":
            self.read(expression.parts[0], absent, guarded=guarded)
        for step in expression.parts[1:]:
            for argument in step.arguments:
                self.read(argument, absent)

    def _tested(self, expression: Expression, absent: frozenset[str], *, guarded: bool) -> None:
        base, *arguments = expression.parts
        is_guard = expression.value in {"defined", "undefined"}
        self.read(base, absent, guarded=guarded or is_guard)
        if is_guard and (path := path_of(base)):
            self.tested.add(path)
        for argument in arguments:
            self.read(argument, absent)

    def _conditional(self, expression: Expression, absent: frozenset[str], *, guarded: bool) -> None:
        value, condition, *otherwise = expression.parts
        self._test(condition)
        if_true, if_false = _absent_steps(condition)
        self.read(condition, absent)
        self.read(value, absent | if_true, guarded=guarded)
        for other in otherwise:
            self.read(other, absent | if_false, guarded=guarded)

    def _operands(self, expression: Expression, absent: frozenset[str]) -> None:
        for part in expression.parts:
            self.read(part, absent)
            if_true, if_false = _absent_steps(part)
            absent |= if_true if expression.kind == "and" else if_false

    def _filters(self, expression: Expression, absent: frozenset[str], *, guarded: bool) -> None:
        base, *steps = expression.parts
        defaults = [index for index, step in enumerate(steps) if step.name in {"default", "d"}]
        self.read(base, absent, guarded=guarded or (bool(defaults) and defaults[0] == 0))
        path = path_of(base)
        for index, step in enumerate(steps):
            is_first = index in defaults
            for argument in step.arguments:
                self.read(
                    argument,
                    absent | {path[0]} if is_first and path else absent,
                    guarded=is_first and (guarded or any(later > index for later in defaults)),
                )

    def _test(self, condition: Expression) -> None:
        """Note the steps that a condition asks for by their names."""
        if condition.kind == "name":
            self.tested.add((str(condition.value),))
        elif condition.kind in {"and", "or", "not", "group"}:
            for part in condition.parts:
                self._test(part)

    def _membership(self, expression: Expression) -> None:
        """`'x' in group.outputs` asks for `group.outputs.x`."""
        left, right = expression.parts[0], expression.parts[-1]
        if (
            expression.operators[0][0] in {"in", "not in"}
            and left.kind == "const"
            and (path := path_of(right))
        ):
            self.tested.add((*path, str(left.value)))


def _absent_steps(condition: Expression) -> tuple[frozenset[str], frozenset[str]]:
    """The steps that have no output if a condition is true, and if it is false."""
    nothing = frozenset[str]()
    match condition.kind:
        case "group":
            return _absent_steps(condition.parts[0])
        case "not":
            if_true, if_false = _absent_steps(condition.parts[0])
            return if_false, if_true
        case "name":
            return nothing, frozenset({str(condition.value)})
        case "test" if condition.value in {"defined", "undefined"} and (path := path_of(condition.parts[0])):
            root = frozenset({path[0]})
            return (root, nothing) if _negated(condition) else (nothing, root)
        case "and" | "or":
            pairs = [_absent_steps(part) for part in condition.parts]
            index = 0 if condition.kind == "and" else 1
            known = nothing.union(*(pair[index] for pair in pairs))
            return (known, nothing) if condition.kind == "and" else (nothing, known)
        case _:
            return nothing, nothing


def tags(tokens: list[Token]) -> Iterator[list[Token]]:
    """Each tag, with its opening token and an end."""
    tag: list[Token] = []
    for token in tokens:
        if token[0] in {"out", "block"}:
            tag = [token]
        elif token[0] in {"/out", "/block"}:
            yield [*tag, ("end", None, token[2], token[3], token[3])]
        else:
            tag.append(token)


def assigned_names(tag: list[Token]) -> set[str]:
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
