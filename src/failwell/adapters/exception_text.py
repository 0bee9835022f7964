"""The original exception's own words, as far as a policy lets them be recorded.

Everything here is redacted and bounded before it is returned. Where a class prints itself by code of an unknown
author, that code is not called: recorded is what it would have printed from, the arguments and the plain attributes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from json import dumps
from os.path import exists, getsize, isfile
from typing import Any, cast

from failwell.adapters.stack import HEAD_LINE, LONGEST_NAME, TRACEBACK_CAP, chain_text
from failwell.errors.causes import Link, full_name, instance_dict, remote_of, traceback_of, type_name
from failwell.errors.fault import is_fault
from failwell.errors.foreign_objects import safe_call, safe_getattr
from failwell.errors.headers import SAFE_HEADERS
from failwell.errors.lazy_regex import lazy_regex
from failwell.errors.masking.members import is_secret_member
from failwell.errors.redact import MARK, TEXT_CAP, masked_known, redact_text, redact_words
from failwell.errors.safe_str import (
    arguments_of,
    arguments_text,
    has_unknown_printer,
    is_mapping,
    is_printable,
    items_of,
    plain,
    printed,
    sequence_of,
    weighs,
)

NOTE_CAP = 300
_MOST_NOTES = 4
_PRINTED = 4 * TEXT_CAP
"""A repr that is longer is not produced at all."""
_LARGEST_SOURCE = 4 * 1_048_576
_MOST_ATTRIBUTES = 20
_MESSAGES = ("message", "msg")
"""Attributes in which an author keeps the sentence itself: their names say nothing."""
_SCALARS = (str, int, float, bool)


def message_of(error: BaseException, limit: int = TEXT_CAP) -> str:
    """What `error` says, masked; empty when it says nothing."""
    return safe_call(_message, "", error, limit)


def _message(error: BaseException, limit: int, cut: Callable[[str, int], str] | None = None) -> str:
    text = _words(error)
    if cut is not None and len(text) <= limit:
        return cut(without_data(error, masked_known(text)), limit).strip()
    return redact_words(text, limit, lambda part: without_data(error, part)).strip()


def _words(error: BaseException) -> str:
    """`str(error)` if no unknown code runs; else the arguments, and the plain attributes of what prints itself."""
    text = printed(error)
    if text is not None:
        return text
    if not has_unknown_printer(error):
        return arguments_text(error)
    arguments, attributes = arguments_of(error)[:_MOST_ATTRIBUTES], _attributes(error)
    said = [value for value in arguments if not any(_is_same(value, held) for held in attributes.values())]
    sentence = ", ".join(_shown(value) for value in said)
    named = [
        f"{name}={MARK if is_secret_member(name, value) else _shown(value)}"
        for name, value in attributes.items()
    ]
    return "; ".join([sentence, *named] if sentence else named)


def _attributes(error: BaseException) -> dict[str, Any]:
    """The plain attributes of an exception, without those in which SDKs keep prompts and replies."""
    arguments = arguments_of(error)[:_MOST_ATTRIBUTES]
    public = (
        (name, value)
        for name, value in instance_dict(error).items()
        if type(name) is str
        and not name.startswith("_")
        and name not in _ON_EXCEPTIONS
        # The sentence is among the arguments already.
        and not (name in _MESSAGES and any(_is_same(value, said) for said in arguments))
        and is_printable(value, _PRINTED)
    )
    return dict(islice(public, _MOST_ATTRIBUTES))


def _is_same(value: object, other: object) -> bool:
    kind = type(value)
    return value is other or (
        kind is type(other) and any(kind is each for each in _SCALARS) and value == other
    )


def _shown(value: object) -> str:
    shown = plain(value)
    return shown if type(shown) is str else repr(shown)


def repr_of(error: BaseException, limit: int = TEXT_CAP) -> str:
    """`repr(error)`, or the type and the arguments if that would run unknown code; masked."""
    return safe_call(_repr, f"{type_name(error)}(… [repr failed])", error, limit)


def _repr(error: BaseException, limit: int) -> str:
    name, arguments = type_name(error), arguments_of(error)
    fields = error.state() if is_fault(error) else {}
    if weighs((arguments, fields), _PRINTED):
        return f"{name}(… [arguments too large])"
    text = printed(error, "__repr__")
    if text is None:
        values = [
            *map(repr, map(plain, arguments)),
            *(f"{key}={plain(value)!r}" for key, value in fields.items()),
        ]
        text = f"{name}({', '.join(values)})"
    return redact_words(text, limit, lambda part: without_data(error, part)) or name


def notes_of(error: BaseException) -> tuple[str, ...]:
    """The first notes that were added to `error`, masked and cut."""
    # Anybody may assign `__notes__`, and to anything.
    return safe_call(_first_notes, (), error, redact_text)


def _first_notes(error: BaseException, cut: Callable[[str, int], str]) -> tuple[str, ...]:
    notes: object = getattr(error, "__notes__", None)
    first = islice(sequence_of(notes), _MOST_NOTES)
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
_WORD_REST = lazy_regex(r"[^\s\"'<>,;]*+")


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
        yield from _lines(_first_bytes(value).decode("utf-8", "replace"))
    elif depth > 5 or isinstance(value, int | float):
        return
    else:
        for inner in islice(_inside(value), _MOST):
            yield from _pieces(inner, room, depth + 1)


def _first_bytes(value: bytes | bytearray) -> bytes | bytearray:
    first = slice(16 * _MOST)
    return (
        bytes.__getitem__(value, first) if isinstance(value, bytes) else bytearray.__getitem__(value, first)
    )


def _inside(value: object) -> Iterator[object]:
    if is_mapping(value):
        # Counted before they are chosen: a mapping that never ends may consist of safe headers alone.
        for name, inner in islice(items_of(cast("Mapping[object, object]", value)), _MOST):
            if not (type(name) is str and name.lower() in SAFE_HEADERS):
                yield inner
    elif isinstance(value, list | tuple):
        yield from sequence_of(cast("object", value))
    else:
        stored = safe_call(object.__getattribute__, None, value, "__dict__")
        if type(stored) is dict:
            attributes = cast("dict[str, Any]", stored)
            yield from (attributes[name] for name in _ON_OBJECTS if name in attributes)


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
