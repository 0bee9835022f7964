"""The original exception's own words, as far as a policy lets them be recorded.

Everything here is redacted and bounded before it is returned. The strict policy never reaches it: no foreign
`__str__` or `__repr__` is called then.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from json import dumps
from os.path import exists, getsize, isfile
from typing import Any, cast

from failwell.adapters.headers import SAFE_HEADERS
from failwell.adapters.printed import arguments_of, items_of, printed, sequence_of, weighs
from failwell.adapters.safe_getattr import safe_call, safe_getattr
from failwell.fault.base import is_fault
from failwell.fault.links import Link, full_name, remote_of, traceback_of, type_name
from failwell.report.redact import MARK, TEXT_CAP, masked_known, redact_text, redact_words
from failwell.report.stack import HEAD_LINE, LONGEST_NAME, TRACEBACK_CAP, chain_text

NOTE_CAP = 300
_MOST_NOTES = 4
_PRINTED = 4 * TEXT_CAP
"""A repr that is longer is not produced at all."""
_LARGEST_SOURCE = 4 * 1_048_576


def message_of(error: BaseException, limit: int = TEXT_CAP) -> str:
    """`str(error)`, masked; empty when it has none, would be endless or will not say."""
    return safe_call(_message, "", error, limit)


def _message(error: BaseException, limit: int, cut: Callable[[str, int], str] | None = None) -> str:
    text = printed(error)
    if cut is not None and len(text) <= limit:
        return cut(without_data(error, masked_known(text)), limit).strip()
    return redact_words(text, limit, lambda part: without_data(error, part)).strip()


def repr_of(error: BaseException, limit: int = TEXT_CAP) -> str:
    """`repr(error)`, masked; the type's name when it has none or will not say."""
    return safe_call(_repr, f"{type_name(error)}(… [repr failed])", error, limit)


def _repr(error: BaseException, limit: int) -> str:
    name = type_name(error)
    if weighs((arguments_of(error), vars(error) if is_fault(error) else None), _PRINTED):
        return f"{name}(… [arguments too large])"
    return redact_words(repr(error), limit, lambda text: without_data(error, text)) or name


def notes_of(error: BaseException) -> tuple[str, ...]:
    """The first notes that were added to `error`, masked and cut."""
    # Anybody may assign `__notes__`, and to anything.
    return safe_call(_first_notes, (), error, redact_text)


def _first_notes(error: BaseException, cut: Callable[[str, int], str]) -> tuple[str, ...]:
    notes: object = getattr(error, "__notes__", None)
    first = islice(cast("list[Any]", notes), _MOST_NOTES) if isinstance(notes, list) else ()
    return tuple(cut(note, NOTE_CAP) for note in first if isinstance(note, str))


def _short(text: str, limit: int) -> str:
    """A piece of a traceback, which is masked as a whole; only a piece that must be cut is masked alone first."""
    # Half a secret, which a cut would leave, is not recognised any more.
    return text if type(text) is str and len(text) <= limit else redact_text(text, limit)


def _plain(error: BaseException, limit: int = TEXT_CAP) -> str:
    """The exception's message for a traceback, without the data it carries."""
    return safe_call(_message, "", error, limit, _short)


def traceback_text(error: BaseException, causes: Sequence[Link], was_cut: bool) -> str:
    """The traceback with its causes and members, as Python prints it, masked and cut."""
    remote = remote_of(error)
    head = "" if remote is None else f"{_plain(remote, TRACEBACK_CAP // 3)}\n\n"
    return redact_text(head + chain_text(error, causes, was_cut, _spoken), TRACEBACK_CAP)


def _spoken(error: BaseException, most: int) -> str:
    # Source lines come from files and loaders that may be gone or broken.
    frames = "".join(safe_call(_frames, None, error, most) or ())
    notes = "".join(f"{note}\n" for note in safe_call(_first_notes, (), error, _short))
    return f"{HEAD_LINE if frames else ''}{frames}{full_name(error)}: {_plain(error)}\n{notes}"


def _frames(error: BaseException, most: int) -> list[str]:
    from traceback import FrameSummary, StackSummary, walk_tb

    stack = StackSummary.extract(walk_tb(traceback_of(error)), limit=-most, lookup_lines=False)
    shown = [
        FrameSummary(
            frame.filename[:LONGEST_NAME],
            frame.lineno,
            frame.name[:LONGEST_NAME],
            lookup_line=False,
            line=_short(frame.line or "", LONGEST_NAME) if _is_readable(frame.filename) else "",
        )
        for frame in stack
    ]
    return StackSummary.from_list(shown).format()


def _is_readable(name: str) -> bool:
    # A name that leads to a pipe, or to no end of zeros, would be read for ever.
    return not exists(name) or (isfile(name) and getsize(name) <= _LARGEST_SOURCE)


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
_WORD_REST = re.compile(r"[^\s\"'<>,;]*+")


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
        # Counted before they are chosen: a mapping that never ends may consist of safe headers alone.
        for name, inner in islice(items_of(cast("Mapping[object, object]", value)), _MOST):
            if not (type(name) is str and name.lower() in SAFE_HEADERS):
                yield inner
    elif isinstance(value, list | tuple):
        yield from sequence_of(cast("object", value))
    else:
        stored: Mapping[str, Any] = getattr(value, "__dict__", {})
        yield from (stored[name] for name in _ON_OBJECTS if name in stored)


def _lines(text: str) -> Iterator[str]:
    piece = text[: 16 * _MOST].strip()
    if len(piece) >= _SHORTEST:
        yield piece
        yield from (line for part in piece.splitlines() if len(line := part.strip()) >= _SHORTEST_LINE)


def _without(text: str, piece: str) -> str:
    forms = (piece, repr(piece)[1:-1], dumps(piece)[1:-1], dumps(piece, ensure_ascii=False)[1:-1])
    # Known secrets are masked in the text already, so they are in what is looked for.
    for form in dict.fromkeys(map(masked_known, forms)):
        if form in text:
            text = text.replace(form, MARK)
        elif len(form) > _HEAD and (at := text.find(form[:_HEAD])) >= 0:
            # Somebody printed the beginning only. The word in which the texts part goes too: it may be half a secret.
            end = at + _in_common(text[at:], form)
            rest = _WORD_REST.match(text, end)
            text = f"{text[:at]}{MARK}{text[rest.end() if rest else end :]}"
    return text


def _in_common(text: str, other: str) -> int:
    """How many characters two texts have in common from their beginning."""
    ends = zip(text, other, strict=False)
    return next((at for at, (a, b) in enumerate(ends) if a != b), min(len(text), len(other)))
