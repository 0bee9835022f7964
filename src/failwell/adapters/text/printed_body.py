"""The body and the headers of a reply that a client printed into its message.

Bodies are printed as JSON, as Python prints a dict or bytes, or as the page that a proxy sent.
"""

import json
import re
from ast import literal_eval
from typing import Any, cast

from failwell.adapters.facts import STRUCTURES, parse_body
from failwell.errors.headers import lower_headers
from failwell.errors.lazy_regex import lazy_regex

_LARGEST = 64_000
_LARGEST_LITERAL = 16_000
_MOST_TRIES = 6
_DEEPEST = 40
_MARKS = lazy_regex(
    r"(?:HTTP response body|Raw response content|[Rr]esponse [Bb]ody|[Rr]esponse content|\bbody|\bBody|\bContent|\b[Rr]esponse)\s{0,2}[:=]\s{0,4}(?=[b{\[\"'<])"
)
_OPENING = lazy_regex(r"[{\[](?=\s{0,40}(?:u?[\"']|[{\[]))|\bb['\"](?=[{\[<])")
_PAGE = lazy_regex(r"<!doctype html|<html\b", re.IGNORECASE)
_HEADERS = lazy_regex(
    r"\b[Hh]eaders(?:['\"])?\s{0,2}[:=]\s{0,4}(?:HTTPHeaderDict\(|Headers\(|CIMultiDictProxy\()?(?=\{)"
)
_HEADER_LINE = lazy_regex(
    r"^[ \t<]{0,6}(retry-after(?:-ms)?|x-ratelimit-[\w-]{1,40}|ratelimit-[\w-]{1,20}|content-type|x-request-id|request-id|x-should-retry"
    r"|x-amzn-errortype)[ \t]{0,3}:[ \t]{0,3}(\S[^\r\n]{0,300})$",
    re.IGNORECASE | re.MULTILINE,
)
_decoder = json.JSONDecoder()


def body_in(text: str) -> Any:
    """The body that `text` holds: an object or a list, a page as text, or `None`."""
    if "{" not in text and "[" not in text and "<" not in text:
        return None
    text = text[:_LARGEST]
    for start in _starts(text):
        value = _value_at(text, start)
        if isinstance(value, STRUCTURES) and value:
            return value
    page = _PAGE.search(text)
    return None if page is None else text[page.start() :]


def headers_in(text: str) -> dict[str, str]:
    """The headers that `text` holds, as a printed mapping or line by line; only those that are useful line by line."""
    text = text[:_LARGEST]
    if "eaders" in text and (mark := _HEADERS.search(text)) is not None:
        value = _value_at(text, mark.end())
        if isinstance(value, dict):
            return lower_headers(cast("dict[str, str]", value))
    return {name.lower(): value.strip() for name, value in _HEADER_LINE.findall(text)}


def _starts(text: str) -> list[int]:
    """Where a body may begin: behind a mark of one first, then at each bracket that opens something."""
    headers = _HEADERS.search(text) if "eaders" in text else None
    skip = -1 if headers is None else headers.end()
    starts = [mark.end() for _, mark in zip(range(_MOST_TRIES), _MARKS.finditer(text), strict=False)]
    for _, opening in zip(range(_MOST_TRIES), _OPENING.finditer(text), strict=False):
        starts.append(opening.start())
    return [start for start in dict.fromkeys(starts) if start != skip]


def _value_at(text: str, start: int) -> Any:
    """The value that a printed error shows at `start`, as JSON or as Python prints it."""
    if text[start : start + 1] in ("{", "["):
        try:
            return _decoder.raw_decode(text, start)[0]
        except (ValueError, RecursionError):
            pass
    end = _end_of_literal(text, start)
    if end is None:
        return None
    try:
        value = literal_eval(text[start:end])
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None
    return parse_body(value) if isinstance(value, str | bytes) else value


def _end_of_literal(text: str, start: int) -> int | None:
    """Where the Python literal that begins at `start` ends; `None` if it is not closed, too long or too deep."""
    depth = 0
    quote = ""
    at = start
    limit = min(len(text), start + _LARGEST_LITERAL)
    while at < limit:
        char = text[at]
        if quote:
            if char == "\\":
                at += 1
            elif char == quote:
                quote = ""
                if depth == 0:
                    return at + 1
        elif char in "'\"":
            quote = char
        elif char in "{[(":
            depth += 1
            if depth > _DEEPEST:
                return None
        elif char in "}])":
            depth -= 1
            if depth <= 0:
                return at + 1
        at += 1
    return None
