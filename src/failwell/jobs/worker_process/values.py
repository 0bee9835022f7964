"""Encodes results for the host: JSON as it is, bytes as files. Anything else is refused, with its place."""

import json
import math
import os
from collections.abc import Iterable
from typing import Any, cast

from ...processes.wire import TooLarge, encoded
from .failure_report import Unsendable
from .types.conversion import plain_form

_SHOWN_PLACE = 80
_LONGEST_KEY = 40


def frame_of(frame: dict[str, Any], folder: str | None) -> bytes:
    """A frame with a result, as bytes.

    Raises:
        Unsendable: the result cannot be written as JSON; the message names the place.
    """
    try:
        piece = encoded(frame)
    except TooLarge as error:
        raise Unsendable(
            f"the result is {error}; return it as bytes, or save it and return the path"
        ) from None
    except (TypeError, ValueError, RecursionError, UnicodeEncodeError):
        piece = None
    if piece is not None and not is_too_deep(frame.get("value"), piece.count(b"[") + piece.count(b"{")):
        return piece
    sent = _sendable(frame.get("value"), "result", folder, 0)
    try:
        return encoded({**frame, "value": sent})
    except (TypeError, ValueError, RecursionError) as error:
        raise Unsendable(f"the result cannot be sent: {error}") from None


def _sendable(value: Any, place: str, folder: str | None, depth: int) -> Any:
    if depth > DEEPEST:
        raise Unsendable(
            f"{place[:_SHOWN_PLACE]}… is nested more than {DEEPEST} levels deep, or contains itself;"
            " return it with fewer levels, or as text"
        )
    value = plain_form(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return _saved(bytes(cast("bytes", value)), place, folder)
    if isinstance(value, dict):
        table = cast("dict[Any, Any]", value)
        for key in table:
            if not isinstance(key, str | int | float | bool | None):
                raise Unsendable(f"{place} has a key of type {_named(key)}; keys must be text")
        return {
            key: _sendable(item, f"{place}[{_key(key)}]", folder, depth + 1) for key, item in table.items()
        }
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [_sendable(item, f"{place}[{index}]", folder, depth + 1) for index, item in enumerate(items)]
    if isinstance(value, float) and not math.isfinite(value):
        raise Unsendable(f"{place} is {value}, which is not a number in JSON; return None or text instead")
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError):
        if isinstance(value, str):
            raise Unsendable(
                f"{place} is text with a lone surrogate; encode it again with errors='replace'"
            ) from None
        raise Unsendable(
            f"{place} is of type {_named(value)}, which JSON does not have; return plain values or bytes"
        ) from None
    return value


def _key(key: object) -> str:
    """A key for a message. One that does not look like the name of a field is data, such as an address."""
    return repr(key) if isinstance(key, str) and key.isidentifier() and len(key) <= _LONGEST_KEY else "…"


def _named(value: object) -> str:
    cls = type(value)
    return cls.__name__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__name__}"


def _saved(content: bytes, place: str, folder: str | None) -> dict[str, Any]:
    if folder is None:
        raise Unsendable(f"{place} is bytes, and this worker was given no folder for files")
    path = os.path.join(folder, f"{os.urandom(12).hex()}.bin")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    return {"$file": {"path": path, "size": len(content)}}


DEEPEST = 200
"""Reading a value uses a few frames of the interpreter's stack for each level."""
_HOLDERS = (dict, list, tuple)


def is_too_deep(value: Any, brackets: int) -> bool:
    """Whether a value has too many levels for a frame of a worker; `brackets` is the number of opening brackets in its JSON."""
    if brackets <= DEEPEST:
        return False
    level: list[Any] = [[value]]
    for _ in range(DEEPEST + 1):
        # Level by level, and only containers: this costs a fraction of writing the JSON.
        level = [item for container in level for item in _within(container) if isinstance(item, _HOLDERS)]
        if not level:
            return False
    return True


def _within(container: Any) -> Iterable[Any]:
    return cast("dict[Any, Any]", container).values() if isinstance(container, dict) else container
