"""The original exception's own words, as far as a policy lets them be recorded.

Everything here is redacted and bounded before it is returned, and nothing here is reached under
the strict policy: no foreign `__str__` or `__repr__` is even called then.
"""

from dataclasses import fields, is_dataclass
from itertools import islice
from os.path import exists, getsize, isfile
from typing import Any, cast

from failwell.adapters.safe_getattr import safe_call, safe_getattr
from failwell.fault.base import is_fault
from failwell.fault.links import Link, links, remote_of, traceback_of, type_name
from failwell.report.carried import without_data
from failwell.report.redact import TEXT_CAP, redact_text, redact_words

TRACEBACK_CAP = 12_000
NOTE_CAP = 300
_MOST_NOTES = 4
_FRAMES_SHOWN = 40
_JOINS = {
    "cause": "The above exception was the direct cause of the following exception:",
    "context": "During handling of the above exception, another exception occurred:",
}
_PRINTED = 4 * TEXT_CAP
"""A repr that is longer is not even made."""
_ENDLESS = 200_000
_LARGEST_SOURCE = 4 * 1_048_576
_LONGEST_NAME = 300

_args: Any = BaseException.__dict__["args"].__get__


def message_of(error: BaseException, limit: int = TEXT_CAP) -> str:
    """`str(error)`, masked; empty when it has none, would be endless or will not say."""
    return safe_call(_message, "", error, limit)


def _message(error: BaseException, limit: int) -> str:
    if _prints_its_arguments(error) and _weighs((_args(error), safe_getattr(error, "filename")), _ENDLESS):
        return ""
    return redact_words(str(error), limit, lambda text: without_data(error, text)).strip()


def repr_of(error: BaseException, limit: int = TEXT_CAP) -> str:
    """`repr(error)`, masked; the type's name when it has none or will not say."""
    return safe_call(_repr, f"{type_name(error)}(… [repr failed])", error, limit)


def _repr(error: BaseException, limit: int) -> str:
    name = type_name(error)
    if _weighs((_args(error), vars(error) if is_fault(error) else None), _PRINTED):
        return f"{name}(… [arguments too large])"
    return redact_words(repr(error), limit, lambda text: without_data(error, text)) or name


def notes_of(error: BaseException) -> tuple[str, ...]:
    """The first notes that were added to `error`, masked and cut."""
    # Anybody may assign `__notes__`, and to anything.
    return safe_call(_notes, (), error)


def _notes(error: BaseException) -> tuple[str, ...]:
    notes: object = getattr(error, "__notes__", None)
    first = islice(cast("list[Any]", notes), _MOST_NOTES) if isinstance(notes, list) else ()
    return tuple(redact_text(note, NOTE_CAP) for note in first if isinstance(note, str))


def traceback_text(error: BaseException) -> str:
    """The traceback with its causes, as Python prints it, masked and cut."""
    below, was_cut = links(error)
    spine = [link for link in below if link.via != "member"]
    parts: list[str] = ["… [more causes cut]\n"] if was_cut else []
    remote = remote_of(error)
    if remote is not None:
        parts.append(f"{message_of(remote, TRACEBACK_CAP // 3)}\n\n")
    for link in reversed(spine):
        parts.append(_one(link.error))
        parts.append(f"\n{_JOINS[link.via]}\n\n")
    parts.append(_one(error))
    parts.extend(_member(link) for link in below if link.via == "member")
    return redact_text("".join(parts), TRACEBACK_CAP)


def _one(error: BaseException) -> str:
    # Source lines come from files and loaders that may be gone or broken.
    frames = "".join(safe_call(_frames, None, error) or ())
    head = "Traceback (most recent call last):\n" if frames else ""
    notes = "".join(f"{note}\n" for note in notes_of(error))
    return f"{head}{frames}{_qualified(error)}: {message_of(error)}\n{notes}"


def _frames(error: BaseException) -> list[str]:
    from traceback import FrameSummary, StackSummary, walk_tb

    found = StackSummary.extract(walk_tb(traceback_of(error)), limit=-_FRAMES_SHOWN, lookup_lines=False)
    shown = [
        FrameSummary(
            frame.filename[:_LONGEST_NAME],
            frame.lineno,
            frame.name[:_LONGEST_NAME],
            lookup_line=False,
            line=redact_text(frame.line or "", _LONGEST_NAME) if _is_readable(frame.filename) else "",
        )
        for frame in found
    ]
    return StackSummary.from_list(shown).format()


def _is_readable(name: str) -> bool:
    # A name that leads to a pipe, or to no end of zeros, would be read for ever.
    return not exists(name) or (isfile(name) and getsize(name) <= _LARGEST_SOURCE)


def _member(link: Link) -> str:
    return f"{'  ' * link.level}| {_qualified(link.error)}: {message_of(link.error, 300)}\n"


def _qualified(error: BaseException) -> str:
    # A metaclass may answer with anything, or raise.
    return safe_call(_full_name, None, type(error)) or type_name(error)


def _full_name(cls: type) -> str:
    name = cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
    return str.__str__(name)[:_LONGEST_NAME]


def _prints_its_arguments(error: BaseException) -> bool:
    printer = type(error).__str__
    held = _args(error)
    if printer is BaseException.__str__ and len(held) == 1 and type(held[0]) is str:
        return False
    # Written in C, as those of all built-in exceptions are: it makes the whole text before it can be cut.
    return type(printer) is type(BaseException.__str__)


def _weighs(value: object, limit: int) -> bool:
    """Whether printing `value` takes more than `limit` characters: a small object can hold itself often."""
    room = limit
    waiting: list[object] = [value]
    while waiting and room >= 0:
        one = waiting.pop()
        room -= 16
        if isinstance(one, str | bytes | bytearray):
            room -= len(one)
        elif isinstance(one, dict):
            held = cast("dict[object, object]", one)
            room -= 2 * len(held)
            if room >= 0:
                waiting += [*held.keys(), *held.values()]
        elif isinstance(one, list | tuple | set | frozenset):
            held_too = cast("list[object]", one)
            room -= 2 * len(held_too)
            if room >= 0:
                waiting += held_too
        elif isinstance(one, BaseException):
            waiting.append(_args(one))
        elif is_dataclass(one):
            waiting += [getattr(one, field.name) for field in fields(one)]
    return room < 0
