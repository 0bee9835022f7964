"""Looks at a source before the engine does, and changes it where the engine alone is not safe.

Refused are chains and nestings that would overflow the engine's stack, which ends the process. Changed
are two things, both without moving a line: a value that is given a name goes through `_kept`, so that
nothing doubles until memory is gone; and a filter written in Python is told undefined from null.
"""

from typing import NamedTuple

from failwell.workflow.engine.mistakes import Mistake, Sort
from failwell.workflow.engine.tokens import Token, expression_tokens, template_tokens

MOST_OPERATORS = 300
MOST_TOKENS = 2_000
MOST_BRANCHES = 300
DEEPEST = 20
"""Blocks inside one another."""

_OPERATORS = frozenset({"+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">="})
_WORDS = frozenset({"and", "or", "not", "in", "if", "else", "is"})
_REPEATS = frozenset({"for", "macro", "call"})
_PARTS = frozenset({"include", "import", "from", "extends"})
_CLOSED = frozenset({"if", "for", "macro", "call", "filter", "with", "block", "autoescape"})


class Source(NamedTuple):
    """A template that the engine may be given."""

    text: str
    parts: tuple[str, ...]
    """The names that its `include`, `import` and `extends` may mean."""
    has_parts: bool
    largest: int
    """Characters of the longest text that a loop or a macro may write again and again."""


def guarded(text: str, python_filters: frozenset[str]) -> Source:
    """`text`, safe to compile. Raises `Mistake`."""
    tokens = template_tokens(text)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    edits: list[tuple[int, str]] = []
    parts: list[str] = []
    repeating = largest = branches = depth = 0
    has_parts = False
    at = 0
    while at < len(tokens):
        kind, value, line, *_ = tokens[at]
        if kind == "text" and repeating:
            largest = max(largest, len(value))
        if kind not in {"out", "block"}:
            at += 1
            continue
        end = next(n for n in range(at, len(tokens)) if tokens[n][0] == "/" + kind)
        tag = tokens[at + 1 : end]
        _bounded(tag, line)
        edits += _told_undefined(tag, python_filters)
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
            raise Mistake(Sort.DEPTH, line)
        at = end + 1
    return Source(_edited(text, edits), tuple(parts), has_parts, largest)


def guarded_expression(text: str, python_filters: frozenset[str]) -> tuple[str, frozenset[str]]:
    """A condition, safe to compile, and the names in it that a dot or a bracket follows."""
    tokens = expression_tokens(text)
    if len(tokens) < 2:
        raise Mistake(Sort.SYNTAX, 1)
    _bounded(tokens, 1)
    dotted = frozenset(
        str(token[1])
        for token, after in zip(tokens, tokens[1:], strict=False)
        if token[0] == "name" and after[:2] in {("op", "."), ("op", "[")}
    )
    return _edited(text, _told_undefined(tokens, python_filters)), dotted


def _bounded(tag: list[Token], line: int) -> None:
    operators = sum(
        1 for kind, value, *_ in tag
        if (kind == "op" and value in _OPERATORS) or (kind == "name" and value in _WORDS)
    )  # fmt: skip
    if operators > MOST_OPERATORS or len(tag) > MOST_TOKENS:
        raise Mistake(Sort.DEPTH, line)


def _opens(word: str, tag: list[Token]) -> bool:
    return word in _CLOSED or (word == "set" and all(token[:2] != ("op", "=") for token in tag))


def _told_undefined(tag: list[Token], python_filters: frozenset[str]) -> list[tuple[int, str]]:
    """Python cannot tell undefined from null, so the engine's own `default` marks it beforehand.

    The template's `default` is another one, which replaces null as well.
    """
    edits: list[tuple[int, str]] = []
    for bar, name in zip(tag, tag[1:], strict=False):
        if bar[:2] == ("op", "|"):
            if name[1] in {"default", "d"}:
                edits.append((name[3], "_"))
            elif name[1] in python_filters:
                edits.append((bar[3], "|default(_missing)"))
    return edits


def _kept(word: str, tag: list[Token], end: Token) -> list[tuple[int, str]]:
    if word == "set":
        at = next((n for n, token in enumerate(tag) if token[:2] == ("op", "=")), None)
        if at is None:
            return [(end[3], "|_kept ")]
        return _around(tag[at], tag[at + 1 :], end[3])
    if word == "macro":
        # What is handed to a macro is named there, so it is looked at as soon as the body begins.
        names = [
            str(token[1])
            for before, token, after in zip(tag[1:], tag[2:], [*tag[3:], end], strict=False)
            if token[0] == "name" and before[1] in {"(", ","} and after[1] in {",", "=", ")"}
        ]
        return [(end[4], "".join(_LOOKED_AT.replace("NAME", name) for name in names))]
    if word == "with":
        return _kept_with(tag, end)
    return []


_LOOKED_AT = "{% if NAME is string or NAME is sequence %}{% set NAME = NAME|_kept %}{% endif %}"
_GROWTH = frozenset({"~", "+", "*", "%", "|", "(", "[", "{"})
_THINGS = frozenset({"namespace", "cycler", "joiner", "caller"})


def _around(equals: Token, value: list[Token], end: int) -> list[tuple[int, str]]:
    """Send a value through `_kept`, unless it cannot grow, or is a thing that only templates have."""
    if (
        not value
        or value[0][1] in _THINGS
        or all(token[1] not in _GROWTH for token in value if token[0] == "op")
    ):
        return []
    return [(equals[4], "("), (end, ")|default(_missing)|_kept ")]


def _kept_with(tag: list[Token], end: Token) -> list[tuple[int, str]]:
    edits: list[tuple[int, str]] = []
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


def _edited(text: str, edits: list[tuple[int, str]]) -> str:
    pieces: list[str] = []
    at = 0
    for where, what in sorted(edits, key=lambda edit: edit[0]):
        pieces += (text[at:where], what)
        at = where
    return "".join((*pieces, text[at:]))
