"""Redacts keys and tokens by their shape. The shapes are data: `tokens.toml`, each with its vendor and its source.

A shape is tried only where a long word begins with its prefix, or where its mark occurs, so the number of
shapes costs next to nothing. Patterns are compiled when they are needed first.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from failwell.errors.masking.randomness import is_random
from failwell.errors.masking.shapes import Span, replaced

_WORD = re.compile(r"[A-Za-z0-9_-]{12,}+")
_START = r"(?:(?<![A-Za-z0-9_.-])|(?<=\\[abfnrtv])|(?<=%[0-9A-Fa-f]{2}))"
_REST = r"[A-Za-z0-9_-]*+"
_PART = re.compile(r"[A-Za-z0-9_-]{16,}+")
_UNBROKEN = re.compile(r"(?<![A-Za-z0-9])(?=[A-Za-z]*[0-9])[A-Za-z0-9]{16}")
_ESCAPED = re.compile(r"(?:[abfnrtv]|u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2})")
_IN_WORDS = re.compile(r"[A-Za-z0-9_.-]++")
_WORD_CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
_COLOUR = re.compile(r"[0-9;]{1,8}m")


class _Shape(NamedTuple):
    prefix: str
    body: str
    is_common: bool


class _Shapes(NamedTuple):
    by_start: dict[str, tuple[_Shape, ...]]
    """Shapes by the first two characters of their prefix; under one character or none, the shorter prefixes."""
    marked: tuple[tuple[str, str], ...]
    """Marks, and the patterns that are searched for where they occur."""
    word_marks: tuple[str, ...]
    """The marks that may stand in a word of letters, digits, `_` and `-`."""
    dotted_marks: tuple[str, ...]
    """The marks that may stand in such a word with dots, and in none without."""
    word_starts: dict[str, tuple[str, ...]]
    """The prefixes with which a token may begin in such a word, by the first two characters of the word."""


def token_data() -> list[dict[str, Any]]:
    """The shapes as they stand in the data file."""
    import tomllib
    from pathlib import Path

    return tomllib.loads(Path(__file__).with_name("tokens.toml").read_text(encoding="utf-8"))["token"]


@cache
def _shapes() -> _Shapes:
    by_start: dict[str, list[_Shape]] = {}
    marked: list[tuple[str, str]] = []
    for entry in token_data():
        if "mark" in entry:
            pattern = entry["pattern"]
            marked.append((entry["mark"], pattern if pattern.startswith("(?<=") else _START + pattern))
        for prefix in entry.get("prefix", ()):
            shape = _Shape(prefix, entry["body"], entry.get("common", False))
            by_start.setdefault(prefix[:2], []).append(shape)
    marks = [mark for mark, _ in marked if _IN_WORDS.fullmatch(mark)]
    # The longest prefix first: it says most about the token.
    return _Shapes(
        {start: tuple(sorted(group, key=_length, reverse=True)) for start, group in by_start.items()},
        tuple(marked),
        tuple(mark for mark in marks if "." not in mark),
        tuple(mark for mark in marks if "." in mark),
        _word_starts(by_start),
    )


def _word_starts(by_start: dict[str, list[_Shape]]) -> dict[str, tuple[str, ...]]:
    starts = {
        start: tuple(shape.prefix for shape in group)
        for start, group in by_start.items()
        # No word has the colon that these need.
        if not all(":" in shape.body.replace("(?:", "") for shape in group)
    }
    for prefix in [start for start in starts if len(start) == 1]:
        for second in _WORD_CHARACTERS:
            starts[prefix + second] = (*starts.get(prefix + second, ()), prefix)
    return starts


def _length(shape: _Shape) -> int:
    return len(shape.prefix)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def mask_tokens(text: str, mark: str) -> str:
    """`text` with everything masked that has the shape of a vendor's token."""
    shapes = _shapes()
    for sign, pattern in shapes.marked:
        if sign in text:
            text = _compiled(pattern).sub(mark, text)
    spans = list(_spans(text, shapes.by_start))
    return replaced(text, spans, mark) if spans else text


def may_hold_a_token(words: list[str]) -> bool:
    """Whether one of several words of letters, digits, `_`, `.` and `-` may hold a token.

    A quick look by marks and prefixes alone: `True` means that the shapes must be tried.
    """
    shapes = _shapes()
    joined = "\n".join(words)
    pieces = words
    marks = shapes.word_marks
    if "." in joined:
        pieces = joined.replace(".", "\n").split("\n")
        marks += shapes.dotted_marks
    for mark in marks:
        if mark in joined:
            return True
    starts = shapes.word_starts
    for piece in pieces:
        prefixes = starts.get(piece[:2])
        if prefixes is not None and piece.startswith(prefixes):
            return True
    return "" in starts


def _spans(text: str, by_start: dict[str, tuple[_Shape, ...]]) -> Iterator[Span]:
    done = 0
    for word in _WORD.finditer(text):
        start = _beginning(text, word.start())
        if start < done:
            continue
        for key in (text[start : start + 2], text[start], ""):
            end = _end(text, start, by_start.get(key, ()))
            if end:
                yield start, end
                done = end
                break


def _end(text: str, start: int, shapes: tuple[_Shape, ...]) -> int:
    """Where the token ends that begins at `start`; 0 if none does."""
    for shape in shapes:
        if not text.startswith(shape.prefix, start):
            continue
        body = start + len(shape.prefix)
        if whole := _compiled(f"(?:{shape.body}){_REST}").match(text, body):
            return whole.end()
        # A token that was cut is still recognised by its prefix, if what follows is no word.
        if not shape.is_common and (part := _PART.match(text, body)) and _is_cut(part.group()):
            return part.end()
    return 0


def _is_cut(part: str) -> bool:
    return _UNBROKEN.search(part) is not None or is_random(part)


def _beginning(text: str, start: int) -> int:
    """Where the word really begins: the letters of an escape before it do not belong to it."""
    before = text[start - 1 : start]
    if before == "\\" and (escape := _ESCAPED.match(text, start)):
        return escape.end()
    if before == "%":
        return start + 2
    if before == "[" and text[start - 2 : start - 1] == "\x1b" and (colour := _COLOUR.match(text, start)):
        return colour.end()
    return start
