"""Checks the source of a template before the engine compiles it, and rewrites what is not safe.

Chains and nestings that would overflow the stack of the engine, and so end the process, are refused. Three things
are rewritten without moving a line: the size of a value that is assigned to a name is checked by `_kept`, so that
it cannot double until memory is exhausted; methods that can grow a text become filters with a limit; and undefined
values are marked before a filter in Python, which could not distinguish them from null.
"""

from itertools import pairwise
from typing import NamedTuple

from failwell.workflow.template.functions.filters import METHODS
from failwell.workflow.template.syntax.tokenizer import Token, expression_tokens, template_tokens
from failwell.workflow.template.template_errors import MistakeType, TemplateMistake

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
_BRACKETS = frozenset({"(", "[", "{"})
_CLOSES = frozenset({")", "]", "}"})
_CLOSED = frozenset({"if", "for", "macro", "call", "filter", "with", "block", "autoescape"})


Edit = tuple[int, str, int]
"""Offset, new text, and the number of characters that it replaces."""


class Source(NamedTuple):
    """A template that is safe to compile."""

    text: str
    parts: tuple[str, ...]
    """The names in its `include`, `import` and `extends`."""
    has_parts: bool
    largest: int
    """Characters of the longest text that a loop or a macro may repeat."""


def guarded(text: str, python_filters: frozenset[str]) -> Source:
    """`text`, safe to compile. Raises `TemplateMistake`."""
    tokens = template_tokens(text)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    edits: list[Edit] = []
    parts: list[str] = []
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
        edits += _mark_undefined(tag, python_filters)
        edits += _own_methods(tag)
        if kind == "block" and tag:
            word = str(tag[0][1])
            depth += _opens(word, tag) - word.startswith("end")
            branches += word == "elif"
            repeating += (word in _REPEATS) - (word[3:] in _REPEATS and word.startswith("end"))
            edits += _check_sizes(word, tag, tokens[end])
            if word in _PARTS:
                has_parts = True
                parts += [str(token[1]) for token in tag if token[0] == "str"]
        if branches > MAX_BRANCHES or depth > MAX_DEPTH:
            raise TemplateMistake(MistakeType.DEPTH, line)
        index = end + 1
    return Source(_edited(text, edits), tuple(parts), has_parts, largest)


def guarded_expression(text: str, python_filters: frozenset[str]) -> tuple[str, frozenset[str]]:
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
    return _edited(text, _mark_undefined(tokens, python_filters) + _own_methods(tokens)), dotted


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


def _mark_undefined(tag: list[Token], python_filters: frozenset[str]) -> list[Edit]:
    """Mark undefined values with the engine's own `default`, because Python cannot distinguish them from null.

    The `default` of templates is another filter, which replaces null as well.
    """
    edits: list[Edit] = []
    for bar, name in pairwise(tag):
        if bar[:2] == ("op", "|"):
            if name[1] in {"default", "d"}:
                edits.append((name[3], "_", 0))
            elif name[1] in python_filters:
                edits.append((bar[3], "|default(_missing)", 0))
    return edits


def _own_methods(tag: list[Token]) -> list[Edit]:
    """Rewrite `text.join(x)` as `(text|_method_join(x))`."""
    edits: list[Edit] = []
    for index in range(1, len(tag) - 2):
        if (
            tag[index][:2] == ("op", ".")
            and tag[index + 1][1] in METHODS
            and tag[index + 2][:2] == ("op", "(")
        ):
            dot, name = tag[index][3], tag[index + 1]
            edits += [
                (tag[_start(tag, index - 1)][3], "(", 0),
                (dot, f"|default(_missing)|_method_{name[1]}", name[4] - dot),
                (tag[_match(tag, index + 2, 1)][4], ")", 0),
            ]
    return edits


def _start(tag: list[Token], index: int) -> int:
    """The start of the expression that ends at `index`: a name or a literal, with its attributes and calls."""
    while True:
        if tag[index][0] == "op" and tag[index][1] in _CLOSES:
            index = _match(tag, index, -1)
            previous = tag[index - 1] if index else None
            if previous is None or tag[index][1] == "{":
                return index
            if (
                (previous[0] == "name" and previous[1] not in _WORDS)
                or previous[1] in _CLOSES
                or previous[0] == "str"
            ):
                index -= 1
                continue
            return index
        if index > 1 and tag[index - 1][:2] == ("op", "."):
            index -= 2
            continue
        return index


def _match(tag: list[Token], index: int, step: int) -> int:
    """The bracket that matches the one at `index`. The tokens are balanced."""
    depth = 0
    while True:
        if tag[index][0] == "op":
            depth += (tag[index][1] in _BRACKETS) - (tag[index][1] in _CLOSES)
        if depth == 0:
            return index
        index += step


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


def _edited(text: str, edits: list[Edit]) -> str:
    pieces: list[str] = []
    index = 0
    for offset, replacement, length in sorted(edits, key=lambda edit: edit[0]):
        pieces += (text[index:offset], replacement)
        index = offset + length
    return "".join((*pieces, text[index:]))
