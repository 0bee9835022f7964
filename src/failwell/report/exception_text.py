"""The original exception's own words and its stack, as far as a policy lets them be recorded.

Everything here is redacted and bounded before it is returned. Under the strict policy only `stack_text` is
reached: it reads names of types, files and functions, and calls no foreign `__str__` or `__repr__`.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby, islice
from json import dumps
from os.path import exists, getsize, isfile
from types import CodeType
from typing import Any, cast

from failwell.adapters.headers import SAFE_HEADERS
from failwell.adapters.printed import arguments_of, items_of, printed, sequence_of, weighs
from failwell.adapters.safe_getattr import safe_call, safe_getattr
from failwell.fault.base import is_fault
from failwell.fault.links import (
    DEEPEST,
    MOST_LINKS,
    below,
    links,
    members,
    remote_of,
    stands_alone,
    traceback_of,
    type_name,
)
from failwell.report.identity import is_own_file
from failwell.report.redact import MARK, TEXT_CAP, cut, masked, masked_known, redact_text, redact_words

TRACEBACK_CAP = 12_000
NOTE_CAP = 300
_MOST_NOTES = 4
_FRAMES_SHOWN = 40
_FRAMES_IN_ALL = 96
_FEWEST_FRAMES = 4
_MOST_FRAMES = 2_000
WITHHELD = "[withheld]"
"""Stands in a traceback where the text of a foreign exception would be."""
_HEAD_LINE = "Traceback (most recent call last):\n"
_PLACE = re.compile(r' {2}File "([^"\n]*)", line (\d+), in ([^\n]*)')
_JOINS = {
    "cause": "The above exception was the direct cause of the following exception:",
    "context": "During handling of the above exception, another exception occurred:",
}
_PRINTED = 4 * TEXT_CAP
"""A repr that is longer is not produced at all."""
_LARGEST_SOURCE = 4 * 1_048_576
_LONGEST_NAME = 300


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


def traceback_text(error: BaseException) -> str:
    """The traceback with its causes and members, as Python prints it, masked and cut."""
    remote = remote_of(error)
    head = "" if remote is None else f"{_plain(remote, TRACEBACK_CAP // 3)}\n\n"
    return redact_text(head + _chain(error, _spoken), TRACEBACK_CAP)


def stack_text(error: BaseException) -> str | None:
    """The traceback with types, files, lines and functions, and without any text; `None` if nothing was raised.

    Call `refresh` first. A fault of ours keeps its message, because that was written to be read.
    """
    if stands_alone(error) and traceback_of(error) is None:
        return None
    text = safe_call(_chain, "", error, _silent)
    return cut(text, TRACEBACK_CAP) if "  File " in text else None


def place_in(traceback: str) -> str | None:
    """Where a traceback of ours passed through the application last, as `file:line in function`."""
    own = traceback.partition("\n  | ")[0].rpartition("\n\n")[2]
    places = [(found[1], f"{found[1]}:{found[2]} in {found[3]}") for found in _PLACE.finditer(own)]
    ours = [place for file, place in places if is_own_file(file)]
    return next(reversed(ours or [place for _, place in places]), None)


_Block = Callable[[BaseException, int], str]


def _chain(error: BaseException, block: _Block) -> str:
    """The blocks of an exception, its causes above it and the members of a group below it, in Python's order."""
    if stands_alone(error):
        return block(error, _FRAMES_SHOWN)
    # The more exceptions there are, the fewer frames each of them can show.
    share = _FRAMES_IN_ALL // (len(links(error)[0]) + 1)
    return "".join(_blocks(error, block, max(_FEWEST_FRAMES, min(_FRAMES_SHOWN, share)), {id(error)}, 1))


def _blocks(error: BaseException, block: _Block, most: int, seen: set[int], level: int) -> Iterator[str]:
    under = below(error)
    if under is not None and _is_new(under[0], seen, level):
        yield from _blocks(under[0], block, most, seen, level + 1)
        yield f"\n{_JOINS[under[1]]}\n\n"
    elif under is not None:
        yield "… [more causes cut]\n"
    yield block(error, most)
    for member in members(error):
        if _is_new(member, seen, level):
            text = "".join(_blocks(member, block, most, seen, level + 1))
            yield "".join(f"  | {line}" for line in text.splitlines(keepends=True))


def _is_new(error: BaseException, seen: set[int], level: int) -> bool:
    if id(error) in seen or level > DEEPEST or len(seen) > MOST_LINKS:
        return False
    seen.add(id(error))
    return True


def _spoken(error: BaseException, most: int) -> str:
    # Source lines come from files and loaders that may be gone or broken.
    frames = "".join(safe_call(_frames, None, error, most) or ())
    notes = "".join(f"{note}\n" for note in safe_call(_first_notes, (), error, _short))
    return f"{_HEAD_LINE if frames else ''}{frames}{_qualified(error)}: {_plain(error)}\n{notes}"


def _silent(error: BaseException, most: int) -> str:
    places = _places(error, most)
    head = _HEAD_LINE if places else ""
    own = one_sentence(error) if is_fault(error) else WITHHELD
    return f"{head}{''.join(places)}{masked(_qualified(error))}{f': {own}' if own else ''}\n"


def one_sentence(fault: BaseException) -> str:
    """What a fault of ours says, masked, on one line."""
    # An author's `summary` may raise anything.
    return " ".join(masked(safe_call(str, "", fault), _LONGEST_NAME).split())


def _places(error: BaseException, most: int) -> list[str]:
    """The frames of a traceback as Python prints them, without source lines; the outermost ones give way."""
    trace = traceback_of(error)
    frames: deque[tuple[CodeType, int]] = deque(maxlen=most)
    count = 0
    while trace is not None and count < _MOST_FRAMES:
        frames.append((trace.tb_frame.f_code, trace.tb_lineno))
        trace = trace.tb_next
        count += 1
    lines: list[str] = [f"  … [{count - most} frames cut]\n"] if count > most else []
    for (code, line), same in groupby(frames):
        times = sum(1 for _ in same)
        place = f'  File "{code.co_filename[:_LONGEST_NAME]}", line {line}, in {code.co_name[:_LONGEST_NAME]}'
        lines.append(masked(place).replace("\n", " ") + "\n")
        if times > 1:
            lines.append(f"  [Previous line repeated {times - 1} more times]\n")
    return lines


def _frames(error: BaseException, most: int) -> list[str]:
    from traceback import FrameSummary, StackSummary, walk_tb

    stack = StackSummary.extract(walk_tb(traceback_of(error)), limit=-most, lookup_lines=False)
    shown = [
        FrameSummary(
            frame.filename[:_LONGEST_NAME],
            frame.lineno,
            frame.name[:_LONGEST_NAME],
            lookup_line=False,
            line=_short(frame.line or "", _LONGEST_NAME) if _is_readable(frame.filename) else "",
        )
        for frame in stack
    ]
    return StackSummary.from_list(shown).format()


def _is_readable(name: str) -> bool:
    # A name that leads to a pipe, or to no end of zeros, would be read for ever.
    return not exists(name) or (isfile(name) and getsize(name) <= _LARGEST_SOURCE)


def _qualified(error: BaseException) -> str:
    # A metaclass may answer with anything, or raise.
    return safe_call(_full_name, None, type(error)) or type_name(error)


def _full_name(cls: type) -> str:
    name = cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
    return str.__str__(name)[:_LONGEST_NAME]


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
