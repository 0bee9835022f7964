"""Cuts a template into text and tags, and tags into tokens.

Tokens are `(kind, value, line)`: kinds are `name`, `int`, `float`, `str`, `op`, and between tags `text`,
`out` and `block` with their ends `/out` and `/block`; the last one is `end`.
"""

import re
from typing import Any

from failwell.workflow.language.mistakes import Mistake, Sort

Token = tuple[str, Any, int]

LONGEST = 1_000_000
"""Characters of a template with its text."""
LONGEST_EXPRESSION = 100_000
"""Characters of one condition."""

_START = re.compile(r"\{\{|\{%|\{#")
_RAW = re.compile(r"\{%([-+]?)\s*raw\s*([-+]?)%\}")
_RAW_END = re.compile(r"\{%([-+]?)\s*endraw\s*([-+]?)%\}")
_SPACE = re.compile(r"\s+")
_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<float>(?<!\.)(?:\d+_)*\d+(?:(?:\.(?:\d+_)*\d+)?[eE][+\-]?(?:\d+_)*\d+|\.(?:\d+_)*\d+))
  | (?P<int>0[bB](?:_?[01])+|0[oO](?:_?[0-7])+|0[xX](?:_?[\da-fA-F])+|\d+(?:_\d+)*)
  | (?P<name>[^\W\d]\w*)
  | (?P<str>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
  | (?P<op>//|\*\*|==|!=|>=|<=|[-+/*%~\[\](){}<>=.:|,;])
    """,
    re.VERBOSE | re.DOTALL,
)
_CLOSES = {"(": ")", "[": "]", "{": "}"}


def template_tokens(text: str) -> list[Token]:
    """The tokens of a whole template."""
    if len(text) > LONGEST:
        raise Mistake(Sort.LENGTH)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    tokens: list[Token] = []
    at, line, strip = 0, 1, False
    while True:
        start = _START.search(text, at)
        chunk = text[at:] if start is None else text[at : start.start()]
        lines = chunk.count("\n")
        if start is None:
            _add_text(tokens, chunk, line, strip=strip, trim=False)
            tokens.append(("end", None, line + lines))
            return tokens
        after = start.end()
        _add_text(tokens, chunk, line, strip=strip, trim=text[after : after + 1] == "-")
        line += lines
        at, line, strip = _tag(text, start, line, tokens)


def expression_tokens(text: str) -> list[Token]:
    """The tokens of a condition that stands by itself."""
    if len(text) > LONGEST_EXPRESSION:
        raise Mistake(Sort.LENGTH)
    tokens: list[Token] = []
    _, line = _inside(text, 0, 1, None, tokens)
    tokens.append(("end", None, line))
    return tokens


def _add_text(tokens: list[Token], chunk: str, line: int, *, strip: bool, trim: bool) -> None:
    if strip:
        chunk = chunk.lstrip()
    if trim:
        chunk = chunk.rstrip()
    if chunk:
        tokens.append(("text", chunk, line))


def _tag(text: str, start: re.Match[str], line: int, tokens: list[Token]) -> tuple[int, int, bool]:
    sign, at = start.group(), start.end()
    if sign == "{#":
        end = text.find("#}", at)
        if end < 0:
            raise Mistake(Sort.SYNTAX, line)
        line += text.count("\n", at, end)
        return end + 2, line, text[end - 1] == "-" and end > at
    if sign == "{%" and (raw := _RAW.match(text, start.start())) is not None:
        return _raw(text, raw, line, tokens)
    kind, close = ("out", "}}") if sign == "{{" else ("block", "%}")
    tokens.append((kind, None, line))
    if text[at : at + 1] in {"-", "+"} and text[at : at + 1]:
        at += 1
    at, line = _inside(text, at, line, close, tokens)
    tokens.append(("/" + kind, None, line))
    return at, line, text[at - 3] == "-"


def _raw(text: str, raw: re.Match[str], line: int, tokens: list[Token]) -> tuple[int, int, bool]:
    end = _RAW_END.search(text, raw.end())
    if end is None:
        raise Mistake(Sort.SYNTAX, line)
    inner = text[raw.end() : end.start()]
    _add_text(tokens, inner, line, strip=raw.group(2) == "-", trim=end.group(1) == "-")
    return end.end(), line + text.count("\n", raw.start(), end.end()), end.group(2) == "-"


def _inside(text: str, at: int, line: int, close: str | None, tokens: list[Token]) -> tuple[int, int]:
    """Read tokens up to `close`, or to the end of the text where there is none to wait for."""
    open_ones: list[str] = []
    while True:
        if close is not None and not open_ones:
            here = at + 1 if text[at : at + 1] in {"-", "+"} and text[at : at + 1] else at
            if text.startswith(close, at) or text.startswith(close, here):
                return (at if text.startswith(close, at) else here) + len(close), line
        if at >= len(text):
            if close is None and not open_ones:
                return at, line
            raise Mistake(Sort.SYNTAX, line)
        found = _TOKEN.match(text, at)
        if found is None:
            raise Mistake(Sort.SYNTAX, line)
        kind, piece = str(found.lastgroup), found.group()
        at = found.end()
        if kind == "space":
            line += piece.count("\n")
            continue
        if kind == "op":
            _balance(piece, open_ones, line)
        tokens.append((kind, _value(kind, piece, line), line))
        if kind == "str":
            line += piece.count("\n")


def _balance(piece: str, open_ones: list[str], line: int) -> None:
    if piece in _CLOSES:
        open_ones.append(_CLOSES[piece])
    elif piece in {")", "]", "}"} and (not open_ones or open_ones.pop() != piece):
        raise Mistake(Sort.SYNTAX, line)


def _value(kind: str, piece: str, line: int) -> Any:
    try:
        if kind == "int":
            return int(piece.replace("_", ""), 0) if not piece.isdigit() else int(piece)
        if kind == "float":
            return float(piece.replace("_", ""))
        if kind == "str":
            inner = piece[1:-1]
            if "\\" not in inner:
                return inner
            return inner.encode("ascii", "backslashreplace").decode("unicode-escape")
    except ValueError:
        raise Mistake(Sort.SYNTAX, line) from None
    return piece
