"""Checks a template's source before the engine compiles it, and rewrites what is not safe.

Refused are chains and nestings that would overflow the engine's stack, which ends the process. Changed
are three things, all without moving a line: a value that is given a name goes through `_kept`, so that
nothing doubles until memory is gone; methods that can grow a text are called as filters that have a
bound; and a filter written in Python is told undefined from null.
"""

from itertools import pairwise
from typing import NamedTuple

from failwell.workflow.template.filters import METHODS
from failwell.workflow.template.template_errors import Sort, TemplateMistake
from failwell.workflow.template.tokens import Token, expression_tokens, template_tokens

MOST_OPERATORS = 300
MOST_TOKENS = 2_000
MOST_PRODUCTS = 8
"""Of one tag, because each may repeat a text until it is a hundred million characters long."""
MOST_BRANCHES = 300
DEEPEST = 20
"""Blocks inside one another."""

_OPERATORS = frozenset({"+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">="})
_WORDS = frozenset({"and", "or", "not", "in", "if", "else", "is"})
_REPEATS = frozenset({"for", "macro", "call"})
_PARTS = frozenset({"include", "import", "from", "extends"})
_BRACKETS = frozenset({"(", "[", "{"})
_CLOSES = frozenset({")", "]", "}"})
_CLOSED = frozenset({"if", "for", "macro", "call", "filter", "with", "block", "autoescape"})


Edit = tuple[int, str, int]
"""Where, what to put there, and how many characters it takes the place of."""


class Source(NamedTuple):
    """A template that the engine may be given."""

    text: str
    parts: tuple[str, ...]
    """The names that its `include`, `import` and `extends` may mean."""
    has_parts: bool
    largest: int
    """Characters of the longest text that a loop or a macro may write again and again."""


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
            edits += _kept(word, tag, tokens[end])
            if word in _PARTS:
                has_parts = True
                parts += [str(token[1]) for token in tag if token[0] == "str"]
        if branches > MOST_BRANCHES or depth > DEEPEST:
            raise TemplateMistake(Sort.DEPTH, line)
        index = end + 1
    return Source(_edited(text, edits), tuple(parts), has_parts, largest)


def guarded_expression(text: str, python_filters: frozenset[str]) -> tuple[str, frozenset[str]]:
    """A condition, safe to compile, and the names in it that a dot or a bracket follows."""
    tokens = expression_tokens(text)
    if len(tokens) < 2:
        raise TemplateMistake(Sort.SYNTAX, 1)
    _bounded(tokens, 1)
    dotted = frozenset(
        str(token[1])
        for token, after in pairwise(tokens)
        if token[0] == "name" and after[:2] in {("op", "."), ("op", "[")}
    )
    return _edited(text, _mark_undefined(tokens, python_filters) + _own_methods(tokens)), dotted


def _bounded(tag: list[Token], line: int) -> None:
    operators = sum(
        1 for kind, value, *_ in tag
        if (kind == "op" and value in _OPERATORS) or (kind == "name" and value in _WORDS)
    )  # fmt: skip
    if operators > MOST_OPERATORS or len(tag) > MOST_TOKENS:
        raise TemplateMistake(Sort.DEPTH, line)
    if sum(1 for token in tag if token[:2] == ("op", "*")) > MOST_PRODUCTS:
        raise TemplateMistake(Sort.MEMORY, line)


def _opens(word: str, tag: list[Token]) -> bool:
    return word in _CLOSED or (word == "set" and all(token[:2] != ("op", "=") for token in tag))


def _mark_undefined(tag: list[Token], python_filters: frozenset[str]) -> list[Edit]:
    """Python cannot tell undefined from null, so the engine's own `default` marks it beforehand.

    The template's `default` is another one, which replaces null as well.
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
    """`text.join(x)` as `(text|_method_join(x))`."""
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
    """Where the phrase begins that ends at `at`: a name or a literal, with what is looked up and called on it."""
    while True:
        if tag[index][0] == "op" and tag[index][1] in _CLOSES:
            index = _match(tag, index, -1)
            before = tag[index - 1] if index else None
            if before is None or tag[index][1] == "{":
                return index
            if (
                (before[0] == "name" and before[1] not in _WORDS)
                or before[1] in _CLOSES
                or before[0] == "str"
            ):
                index -= 1
                continue
            return index
        if index > 1 and tag[index - 1][:2] == ("op", "."):
            index -= 2
            continue
        return index


def _match(tag: list[Token], index: int, step: int) -> int:
    """The bracket that belongs to the one at `at`. The tokens are balanced."""
    depth = 0
    while True:
        if tag[index][0] == "op":
            depth += (tag[index][1] in _BRACKETS) - (tag[index][1] in _CLOSES)
        if depth == 0:
            return index
        index += step


def _kept(word: str, tag: list[Token], end: Token) -> list[Edit]:
    if word == "set":
        index = next((n for n, token in enumerate(tag) if token[:2] == ("op", "=")), None)
        if index is None:
            return [(end[3], "|_kept ", 0)]
        if tag[1][1] == "_value":
            return []  # a condition's own: as text, a function would pass for a value
        return _around(tag[index], tag[index + 1 :], end[3])
    if word in {"macro", "call"} or (
        word == "for" and any(token[:2] == ("name", "recursive") for token in tag)
    ):
        # What is handed to a macro, or back to a loop, is named there: it is looked at as the body begins.
        return [(end[4], "".join(_LOOKED_AT.replace("NAME", name) for name in _parameters(word, tag)), 0)]
    if word == "with":
        return _kept_with(tag, end)
    return []


_LOOKED_AT = "{% if NAME is string or (NAME is iterable and NAME is not mapping) %}{% set NAME = NAME|_kept %}{% endif %}"
_GROWTH = frozenset({"~", "+", "*", "%", "|", "(", "[", "{"})
_THINGS = frozenset({"namespace", "cycler", "joiner", "caller"})


def _parameters(word: str, tag: list[Token]) -> list[str]:
    names: list[str] = []
    for before, token in pairwise(tag):
        if token[:2] == ("name", "in") or token[:2] == ("op", ")"):
            break
        if token[0] == "name" and (word == "for" or before[1] in {"(", ","}):
            names.append(str(token[1]))
    return names


def _around(equals: Token, value: list[Token], end: int) -> list[Edit]:
    """Send a value through `_kept`, unless it cannot grow, or is a thing that only templates have."""
    if (
        not value
        or value[0][1] in _THINGS
        or all(token[1] not in _GROWTH for token in value if token[0] == "op")
    ):
        return []
    return [(equals[4], "(", 0), (end, ")|default(_missing)|_kept ", 0)]


def _kept_with(tag: list[Token], end: Token) -> list[Edit]:
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
    for where, what, replaced in sorted(edits, key=lambda edit: edit[0]):
        pieces += (text[index:where], what)
        index = where + replaced
    return "".join((*pieces, text[index:]))
