"""Splits a template into text and tags, and tags into tokens.

Tokens are `(kind, value, line, start, end)`: kinds are `name`, `int`, `float`, `str`, `op`, and between tags `text`,
`out` and `block` with their ends `/out` and `/block`; the last one is `end`.
"""

import re
from functools import lru_cache
from typing import Any

from failwell.workflows.template.template_errors import MistakeType, TemplateMistake

Token = tuple[str, Any, int, int, int]

LONGEST = 1_000_000
"""Characters of a template."""
_LONGEST_RECENT = 20_000
LONGEST_EXPRESSION = 100_000
"""Characters of one condition."""

_START = re.compile(r"\{\{|\{%|\{#")
_RAW = re.compile(r"\{%([-+]?)\s*raw\s*([-+]?)%\}")
_RAW_END = re.compile(r"\{%([-+]?)\s*endraw\s*([-+]?)%\}")
_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<float>(?<!\.)(?:\d+_)*\d+(?:(?:\.(?:\d+_)*\d+)?[eE][+\-]?(?:\d+_)*\d+|\.(?:\d+_)*\d+))
  | (?P<int>0[bB](?:_?[01])+|0[oO](?:_?[0-7])+|0[xX](?:_?[\da-fA-F])+|\d+(?:_\d+)*)
  | (?P<name>[^\W\d](?:\w|[^\x00-\x7f\s])*)
  | (?P<str>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
  | (?P<op>//|\*\*|==|!=|>=|<=|[-+/*%~\[\](){}<>=.:|,;])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_TRIMS = frozenset({"-", "+"})
_CLOSES = {"(": ")", "[": "]", "{": "}"}


def template_tokens(text: str) -> list[Token]:
    """The tokens of a whole template. The list is shared and must not be changed."""
    if len(text) > LONGEST:
        raise TemplateMistake(MistakeType.LENGTH)
    return _recent_tokens(text) if len(text) <= _LONGEST_RECENT else _tokens(text)


@lru_cache(maxsize=32)
def _recent_tokens(text: str) -> list[Token]:
    # A check reads a text several times in a row: its syntax, what it calls, what it refers to.
    return _tokens(text)


def _tokens(text: str) -> list[Token]:
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    tokens: list[Token] = []
    offset, line = 0, 1
    while True:
        start = _START.search(text, offset)
        chunk = text[offset:] if start is None else text[offset : start.start()]
        lines = chunk.count("\n")
        if start is None:
            _add_text(tokens, chunk, line, offset)
            tokens.append(("end", None, line + lines, len(text), len(text)))
            return tokens
        _add_text(tokens, chunk, line, offset)
        line += lines
        offset, line = _tag(text, start, line, tokens)


def expression_tokens(text: str) -> list[Token]:
    """The tokens of a condition without braces."""
    if len(text) > LONGEST_EXPRESSION:
        raise TemplateMistake(MistakeType.LENGTH)
    tokens: list[Token] = []
    _, _, line = _inside(text, 0, 1, None, tokens)
    tokens.append(("end", None, line, len(text), len(text)))
    return tokens


def _add_text(tokens: list[Token], chunk: str, line: int, offset: int) -> None:
    if chunk:
        tokens.append(("text", chunk, line, offset, offset + len(chunk)))


def _tag(text: str, start: re.Match[str], line: int, tokens: list[Token]) -> tuple[int, int]:
    sign, offset = start.group(), start.end()
    if sign == "{#":
        end = text.find("#}", offset)
        if end < 0:
            detail = "`{#` opens a comment that `#}` never closes; write `{{ '{#' }}` for the characters"
            raise TemplateMistake(MistakeType.SYNTAX, line, detail=detail)
        return end + 2, line + text.count("\n", offset, end)
    if sign == "{%" and (raw := _RAW.match(text, start.start())) is not None:
        end = _RAW_END.search(text, raw.end())
        if end is None:
            raise TemplateMistake(MistakeType.SYNTAX, line, detail="`raw` is never closed by `endraw`")
        _add_text(tokens, text[raw.end() : end.start()], line, raw.end())
        return end.end(), line + text.count("\n", raw.start(), end.end())
    kind, close = ("out", "}}") if sign == "{{" else ("block", "%}")
    if text[offset : offset + 1] in _TRIMS:
        offset += 1
    tokens.append((kind, None, line, start.start(), offset))
    inner_end, offset, line = _inside(text, offset, line, close, tokens)
    tokens.append(("/" + kind, None, line, inner_end, offset))
    return offset, line


def _inside(
    text: str, offset: int, line: int, close: str | None, tokens: list[Token]
) -> tuple[int, int, int]:
    """Read tokens up to `close`, or to the end of the text if there is none.

    Returns the end of the inner part, the end of the tag, and the line.
    """
    brackets: list[str] = []
    while True:
        if close is not None and not brackets:
            if text.startswith(close, offset):
                return offset, offset + 2, line
            if text[offset : offset + 1] in _TRIMS and text.startswith(close, offset + 1):
                return offset, offset + 3, line
        if offset >= len(text):
            if close is None and not brackets:
                return offset, offset, line
            raise TemplateMistake(
                MistakeType.SYNTAX, line, detail=f"`{brackets[-1] if brackets else close}` is missing"
            )
        match = _TOKEN.match(text, offset)
        if match is None:
            detail = (
                "a quote is never closed" if text[offset] in "'\"" else f"`{text[offset]}` is not expected"
            )
            raise TemplateMistake(MistakeType.SYNTAX, line, detail=detail)
        kind, piece = str(match.lastgroup), match.group()
        offset = match.end()
        if kind != "space":
            if kind == "op":
                _balance(piece, brackets, line)
            tokens.append((kind, _value(kind, piece, line), line, match.start(), offset))
        line += piece.count("\n")


def _balance(piece: str, brackets: list[str], line: int) -> None:
    if piece in _CLOSES:
        brackets.append(_CLOSES[piece])
    elif piece in {")", "]", "}"} and (not brackets or brackets.pop() != piece):
        raise TemplateMistake(MistakeType.SYNTAX, line, detail=f"`{piece}` is not expected")


def _value(kind: str, piece: str, line: int) -> Any:
    try:
        if kind == "int":
            return int(piece.replace("_", ""), 0) if not piece.isdigit() else int(piece)
        if kind == "float":
            return float(piece.replace("_", ""))
        if kind == "str":
            # Enough for names of parts and keys. The engine parses the text itself.
            return _ESCAPED.sub(r"\1", piece[1:-1])
    except ValueError:
        raise TemplateMistake(MistakeType.SYNTAX, line) from None
    return piece
