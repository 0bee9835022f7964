"""What an exception carries beside its message, taken out of the message.

SDKs keep the prompt, the request and the reply on the exception, and print parts of them into its
text. Whatever is found in both places is data, and is masked.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from json import dumps
from typing import Any, cast

from failwell.adapters.headers import SAFE_HEADERS
from failwell.adapters.safe_getattr import safe_getattr
from failwell.report.redact import MARK

_ON_EXCEPTIONS = (
    "body", "response", "request", "messages", "prompt", "input", "inputs", "create_kwargs", "completion",
    "last_completion", "output", "stdout", "stderr", "cmd", "doc", "object", "litellm_debug_info", "details",
    "data", "payload", "content", "failed_generation", "raw_response", "failed_attempts", "headers",
    "response_headers", "litellm_response_headers", "request_info", "server_message", "api_message",
)  # fmt: skip
"""Attributes in which SDKs keep prompts and replies."""
_ON_OBJECTS = (
    "_content", "_text", "content", "text", "body", "headers", "_headers", "messages", "prompt", "error",
    "message", "completion", "exception", "choices", "candidates",
)  # fmt: skip
"""Where a reply, a request or an attempt keeps them. Only what is stored is read: a property of a
reply may go to the network."""
_SHORTEST = 8
_SHORTEST_LINE = 16
_HEAD = 24
"""Characters by which the beginning of a longer text is recognised."""
_MOST = 2_000


class _TooMuch(Exception):
    """There is more data than can be looked for."""


def without_data(error: BaseException, text: str) -> str:
    """`text` without what `error` carries; empty if that is more than can be looked for."""
    room = [_MOST]
    try:
        for name in _ON_EXCEPTIONS:
            for piece in _pieces(safe_getattr(error, name), room, 0):
                text = _without(text, piece[: len(text)])
    except _TooMuch:
        return ""
    return text


def _pieces(value: object, room: list[int], depth: int) -> Iterator[str]:
    if value is None:
        return
    room[0] -= 1
    if room[0] < 0:
        raise _TooMuch
    if isinstance(value, str):
        yield from _lines(str.__str__(value))
    elif isinstance(value, bytes | bytearray):
        yield from _lines(value[: 16 * _MOST].decode("utf-8", "replace"))
    elif depth > 5 or isinstance(value, int | float):
        return
    else:
        for inner in islice(_inside(value), _MOST):
            yield from _pieces(inner, room, depth + 1)


def _inside(value: object) -> Iterator[object]:
    if isinstance(value, Mapping):
        held = cast("Mapping[object, object]", value).items()
        yield from (inner for name, inner in held if str(name).lower() not in SAFE_HEADERS)
    elif isinstance(value, list | tuple):
        yield from cast("list[object]", value)
    else:
        stored: Mapping[str, Any] = getattr(value, "__dict__", {})
        yield from (stored[name] for name in _ON_OBJECTS if name in stored)


def _lines(text: str) -> Iterator[str]:
    piece = text[: 16 * _MOST].strip()
    if len(piece) >= _SHORTEST:
        yield piece
        yield from (line for part in piece.splitlines() if len(line := part.strip()) >= _SHORTEST_LINE)


def _without(text: str, piece: str) -> str:
    for form in {
        piece: None,
        repr(piece)[1:-1]: None,
        dumps(piece)[1:-1]: None,
        dumps(piece, ensure_ascii=False)[1:-1]: None,
    }:
        if form in text:
            text = text.replace(form, MARK)
        elif len(form) > _HEAD and (at := text.find(form[:_HEAD])) >= 0:
            # Somebody printed the beginning only.
            text = f"{text[:at]}{MARK}{text[at + _in_common(text[at:], form) :]}"
    return text


def _in_common(one: str, other: str) -> int:
    """How many characters two texts have in common from their beginning."""
    ends = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(ends) if a != b), min(len(one), len(other)))
