"""The original exception's own words, as far as a policy lets them be recorded.

Everything here is redacted and bounded before it is returned, and nothing here is reached under
the strict policy: no foreign `__str__` or `__repr__` is even called then.
"""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from failwell.fault.links import Link, links, traceback_of
from failwell.report.redact import MARK, TEXT_CAP, redact_text

TRACEBACK_CAP = 12_000
NOTE_CAP = 300
_MOST_NOTES = 4
_FRAMES_SHOWN = 40
_JOINS = {
    "cause": "The above exception was the direct cause of the following exception:",
    "context": "During handling of the above exception, another exception occurred:",
}

_CARRIES_DATA = (
    "body", "response", "request", "messages", "prompt", "input", "inputs", "create_kwargs", "completion",
    "last_completion", "output", "stdout", "stderr", "cmd", "doc", "object", "litellm_debug_info", "details",
    "data", "payload", "content", "failed_generation", "raw_response",
)  # fmt: skip
"""Attributes in which SDKs keep prompts and replies; what they hold is masked in the message."""
_SHORTEST_DATA = 8
_MOST_DATA = 64


def message_of(error: BaseException, limit: int = TEXT_CAP) -> str:
    """`str(error)`, masked; empty when it has none or will not say."""
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001  (a foreign `__str__` may raise anything at all)
        return ""
    return redact_text(_without_data(error, text[: limit * 3]), limit).strip()


def repr_of(error: BaseException, limit: int = TEXT_CAP) -> str:
    """`repr(error)`, masked; the type's name when it has none or will not say."""
    name = type(error).__name__
    if _is_large(error):
        return f"{name}(… [arguments too large])"
    try:
        text = repr(error)
    except BaseException:  # noqa: BLE001  (a foreign `__repr__` may raise anything at all)
        return f"{name}(… [repr failed])"
    return redact_text(_without_data(error, text[: limit * 3]), limit) or name


def notes_of(error: BaseException) -> tuple[str, ...]:
    """The first notes that were added to `error`, masked and cut."""
    notes = _attribute(error, "__notes__")
    if not isinstance(notes, list):
        return ()
    kept = [note for note in cast("list[Any]", notes)[:_MOST_NOTES] if isinstance(note, str)]
    return tuple(redact_text(note, NOTE_CAP) for note in kept)


def traceback_text(error: BaseException) -> str:
    """The traceback with its causes, as Python prints it, masked and cut."""
    below, was_cut = links(error)
    spine = [link for link in below if link.via != "member"]
    parts: list[str] = ["… [more causes cut]\n"] if was_cut else []
    for link in reversed(spine):
        parts.append(_one(link.error))
        parts.append(f"\n{_JOINS[link.via]}\n\n")
    parts.append(_one(error))
    parts.extend(_member(link) for link in below if link.via == "member")
    return redact_text("".join(parts), TRACEBACK_CAP)


def _one(error: BaseException) -> str:
    from traceback import extract_tb, format_list

    try:
        frames = format_list(extract_tb(traceback_of(error), limit=-_FRAMES_SHOWN))
    except Exception:  # noqa: BLE001  (source lines come from files that may be gone or broken)
        frames = []
    head = "Traceback (most recent call last):\n" if frames else ""
    notes = "".join(f"{note}\n" for note in notes_of(error))
    return f"{head}{''.join(frames)}{_qualified(error)}: {message_of(error)}\n{notes}"


def _member(link: Link) -> str:
    return f"{'  ' * link.level}| {_qualified(link.error)}: {message_of(link.error, 300)}\n"


def _qualified(error: BaseException) -> str:
    cls = type(error)
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def _is_large(error: BaseException) -> bool:
    return sum(len(arg) for arg in error.args if isinstance(arg, str | bytes | bytearray)) > 4 * TEXT_CAP


def _attribute(error: object, name: str) -> Any:
    try:
        return getattr(error, name, None)
    except BaseException:  # noqa: BLE001  (a property of a foreign object may raise anything at all)
        return None


def _without_data(error: BaseException, text: str) -> str:
    room = [_MOST_DATA]
    for name in _CARRIES_DATA:
        value = _attribute(error, name)
        if value is not None:
            for piece in _pieces(value, room, 0):
                if piece in text:
                    text = text.replace(piece, MARK)
    return text


def _pieces(value: object, room: list[int], depth: int) -> Iterable[str]:
    room[0] -= 1
    if room[0] < 0 or depth > 5:
        return
    if isinstance(value, str):
        piece = value.strip()[: 2 * TEXT_CAP]
        if len(piece) >= _SHORTEST_DATA:
            yield piece
            yield from (
                part for line in piece.splitlines() if len(part := line.strip()) >= 2 * _SHORTEST_DATA
            )
    elif isinstance(value, bytes):
        yield from _pieces(value[: 2 * TEXT_CAP].decode("utf-8", "replace"), room, depth + 1)
    elif isinstance(value, Mapping):
        for inner in list(cast("Mapping[Any, Any]", value).values())[:_MOST_DATA]:
            yield from _pieces(inner, room, depth + 1)
    elif isinstance(value, list | tuple):
        for inner in cast("list[Any]", value)[:_MOST_DATA]:
            yield from _pieces(inner, room, depth + 1)
