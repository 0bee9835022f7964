"""Checks the source of a template before the engine compiles it, and rewrites what is not safe.

Chains and nestings that would overflow the stack of the engine, and so end the process, are refused. The size of a
value that is assigned to a name is checked by `_kept`, so that it cannot double until memory is exhausted. What is
rewritten inside expressions is in `rewriting`.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from failwell.workflows.template.syntax.block_tags import parse_block
from failwell.workflows.template.syntax.expressions import parse_expression
from failwell.workflows.template.syntax.rewriting import Edit, Rewriter, edited
from failwell.workflows.template.syntax.tokenizer import Token, expression_tokens, template_tokens
from failwell.workflows.template.syntax.tree import Expression
from failwell.workflows.template.template_errors import MistakeType, TemplateMistake

MAX_OPERATORS = 300
MAX_TOKENS = 2_000
MAX_PRODUCTS = 8
"""Of one tag, because each may repeat a text up to a hundred million characters."""
MAX_BRANCHES = 300
MAX_DEPTH = 20
"""Levels of nested blocks."""

_OPERATORS = frozenset({"+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">="})
_WORDS = frozenset({"and", "or", "not", "in", "if", "else", "is"})
_REPEATS = frozenset({"for", "macro", "call"})
_PARTS = frozenset({"include", "import", "from", "extends"})
_CLOSED = frozenset({"if", "for", "macro", "call", "filter", "with", "block", "autoescape"})


class Source(NamedTuple):
    """A template that is safe to compile."""

    text: str
    parts: tuple[str, ...]
    """The names in its `include`, `import` and `extends`."""
    has_parts: bool
    largest: int
    """Characters of the longest text that a loop or a macro may repeat."""


OBJECTS = frozenset({"loop", "self", "caller", "super"})
"""Names of objects that the engine provides."""


def guarded(
    text: str, python_filters: frozenset[str], *, exact: bool = False, is_part: bool = False
) -> Source:
    """`text`, safe to compile. Raises `TemplateMistake`.

    With `exact`, arithmetic is done in Python. `is_part` is for a text that another one includes.
    """
    tokens = template_tokens(text)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    objects = OBJECTS.union(*(imported_names(tag) for tag in _block_tags(tokens)))
    rewriter = Rewriter(python_filters, objects, exact=exact, has_places=not is_part)
    edits: list[Edit] = []
    parts: list[str] = []
    open_tags: list[tuple[str, int]] = []
    repeating = largest = branches = depth = 0
    has_parts = False
    index = 0
    while index < len(tokens):
        kind, value, line, *_ = tokens[index]
        if kind == "text" and repeating:
            largest = max(largest, len(value))
        if kind not in {"out", "block"}:
            index += 1
            continue
        end = next(n for n in range(index, len(tokens)) if tokens[n][0] == "/" + kind)
        tag = tokens[index + 1 : end]
        _bounded(tag, line)
        for expression in tag_expressions(kind, tag, line):
            rewriter.add(expression)
        if kind == "block" and tag:
            word = str(tag[0][1])
            _pair(word, tag, line, open_tags)
            depth = len(open_tags)
            branches += word == "elif"
            repeating += (word in _REPEATS) - (word[3:] in _REPEATS and word.startswith("end"))
            edits += _check_sizes(word, tag, tokens[end])
            if word in _PARTS:
                has_parts = True
                parts += [str(token[1]) for token in tag if token[0] == "str"]
        if branches > MAX_BRANCHES or depth > MAX_DEPTH:
            raise TemplateMistake(MistakeType.DEPTH, line)
        index = end + 1
    if open_tags:
        word, line = open_tags[-1]
        raise TemplateMistake(MistakeType.SYNTAX, line, detail=f"`{word}` is never closed by `end{word}`")
    return Source(edited(text, rewriter.edits + edits), tuple(parts), has_parts, largest)


def _pair(word: str, tag: list[Token], line: int, open_tags: list[tuple[str, int]]) -> None:
    """Match the tags that open a block with those that close it."""
    if _opens(word, tag):
        open_tags.append((word, line))
    elif word.startswith("end"):
        if not open_tags or open_tags[-1][0] != word[3:]:
            raise TemplateMistake(MistakeType.SYNTAX, line, detail=f"`{word}` closes nothing")
        open_tags.pop()


def tag_expressions(kind: str, tag: list[Token], line: int) -> list[Expression]:
    """The expressions of a tag without its delimiters. Raises `TemplateMistake`."""
    if not tag:
        raise TemplateMistake(MistakeType.SYNTAX, line)
    return [parse_expression(tag)] if kind == "out" else parse_block(tag)


def _block_tags(tokens: list[Token]) -> Iterator[list[Token]]:
    start = 0
    for index, token in enumerate(tokens):
        if token[0] == "block":
            start = index + 1
        elif token[0] == "/block":
            yield tokens[start:index]


def imported_names(tag: list[Token]) -> frozenset[str]:
    """The names that an `import` or `from` tag adds, and those of objects that a `set` tag creates."""
    if not tag or tag[0][0] != "name":
        return frozenset()
    word = tag[0][1]
    if word in {"import", "from"}:
        return frozenset(str(token[1]) for token in tag[1:] if token[0] == "name")
    if word == "set" and len(tag) > 3 and tag[2][:2] == ("op", "=") and tag[3][1] in _TEMPLATE_OBJECTS:
        return frozenset({str(tag[1][1])})
    return frozenset()


def guarded_expression(
    text: str, python_filters: frozenset[str], *, exact: bool = False
) -> tuple[str, frozenset[str]]:
    """A condition that is safe to compile, and its names that are followed by a dot or a bracket."""
    tokens = expression_tokens(text)
    if len(tokens) < 2:
        raise TemplateMistake(MistakeType.SYNTAX, 1)
    _bounded(tokens, 1)
    dotted = frozenset(
        str(token[1])
        for token, following in pairwise(tokens)
        if token[0] == "name" and following[:2] in {("op", "."), ("op", "[")}
    )
    rewriter = Rewriter(python_filters, OBJECTS, exact=exact, has_places=True)
    rewriter.add(parse_expression(tokens[:-1]))
    return edited(text, rewriter.edits), dotted


def _bounded(tag: list[Token], line: int) -> None:
    operators = sum(
        1 for kind, value, *_ in tag
        if (kind == "op" and value in _OPERATORS) or (kind == "name" and value in _WORDS)
    )  # fmt: skip
    if operators > MAX_OPERATORS or len(tag) > MAX_TOKENS:
        raise TemplateMistake(MistakeType.DEPTH, line)
    if sum(1 for token in tag if token[:2] == ("op", "*")) > MAX_PRODUCTS:
        raise TemplateMistake(MistakeType.MEMORY, line)


def _opens(word: str, tag: list[Token]) -> bool:
    return word in _CLOSED or (word == "set" and all(token[:2] != ("op", "=") for token in tag))


def _check_sizes(word: str, tag: list[Token], end: Token) -> list[Edit]:
    if word == "set":
        index = next((n for n, token in enumerate(tag) if token[:2] == ("op", "=")), None)
        if index is None:
            return [(end[3], "|_kept ", 0)]
        if tag[1][1] == "_value":
            return []  # the variable of a condition: as text, a function would pass for a value
        return _around(tag[index], tag[index + 1 :], end[3])
    if word in {"macro", "call"} or (
        word == "for" and any(token[:2] == ("name", "recursive") for token in tag)
    ):
        # Arguments of a macro or a recursive loop are assigned to names, so they are checked when the body starts.
        return [
            (end[4], "".join(_CHECK_ARGUMENT.replace("NAME", name) for name in _parameters(word, tag)), 0)
        ]
    if word == "with":
        return _check_with(tag, end)
    return []


_CHECK_ARGUMENT = "{% if NAME is string or (NAME is iterable and NAME is not mapping) %}{% set NAME = NAME|_kept %}{% endif %}"
_GROWTH = frozenset({"~", "+", "*", "%", "|", "(", "[", "{"})
_TEMPLATE_OBJECTS = frozenset({"namespace", "cycler", "joiner", "caller"})


def _parameters(word: str, tag: list[Token]) -> list[str]:
    names: list[str] = []
    for previous, token in pairwise(tag):
        if token[:2] == ("name", "in") or token[:2] == ("op", ")"):
            break
        if token[0] == "name" and (word == "for" or previous[1] in {"(", ","}):
            names.append(str(token[1]))
    return names


def _around(equals: Token, value: list[Token], end: int) -> list[Edit]:
    """Check the size of a value with `_kept`, unless it cannot grow, or is an object that only templates have."""
    if (
        not value
        or value[0][1] in _TEMPLATE_OBJECTS
        or all(token[1] not in _GROWTH for token in value if token[0] == "op")
    ):
        return []
    return [(equals[4], "(", 0), (end, ")|default(_missing)|_kept ", 0)]


def _check_with(tag: list[Token], end: Token) -> list[Edit]:
    edits: list[Edit] = []
    depth = 0
    equals: Token | None = None
    value: list[Token] = []
    for token in [*tag, ("op", ",", end[2], end[3], end[3])]:
        if token[0] == "op":
            depth += (token[1] in {"(", "[", "{"}) - (token[1] in {")", "]", "}"})
            if depth == 0 and token[1] == "=":
                equals, value = token, []
                continue
            if depth == 0 and token[1] == "," and equals is not None:
                edits += _around(equals, value, token[3])
        value.append(token)
    return edits
