"""Secrets out, sizes bounded: what every text passes before a report may hold it.

Three nets, each on substrings: values known to be secret (registered, or found in the environment
under the name of a secret), values under the name of a secret, and the shapes of tokens, keys and addresses; see
`failwell.errors.masking`. Patterns have no nested repetition and every text is cut to a
window first, so the cost is linear and bounded whatever comes in.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from threading import RLock
from time import monotonic
from typing import Any, cast

from failwell.errors.causes import type_name
from failwell.errors.foreign_objects import safe_call, safe_getattr
from failwell.errors.headers import allowed_headers
from failwell.errors.lazy_regex import lazy_regex
from failwell.errors.masking.known_values import SHORTEST, KnownSecrets
from failwell.errors.masking.secret_names import secrets_in
from failwell.errors.report import ENVIRONMENT_VARIABLE as POLICY_VARIABLE
from failwell.errors.report import TracebackPolicy, named_policy
from failwell.errors.safe_str import is_mapping, is_printable, items_of, sequence_of, stored

MARK = "[redacted]"
_UNREADABLE = object()
TEXT_CAP = 2_000
"""Characters of any one text in a report."""
_MARGIN = 2_048
"""Read beyond the cap, so that a secret on the edge is still recognised as one."""
_SUSPECT = lazy_regex(r"[ :=,>%]|[A-Za-z0-9_.-]{13}")
"""What a text with the shape of a secret has: a long word, or something that separates a name from a value."""

_TIME = r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT|\d{4}-\d\d-\d\dT[\d:.]{5,15}+Z?"
"""A time as headers have it."""
_WORDS = lazy_regex(rf"(?:(?:[A-Za-z0-9][A-Za-z0-9_.-]{{0,119}}+|{_TIME})(?:\n|$))++")
"""Words, or times, one a line."""
_HEX = "[0-9a-f]"
_IDS = lazy_regex(
    rf"(?:(?:req_[0-9A-Za-z]{{1,64}}+|{_TIME}|{_HEX}{{8,40}}+(?:-[A-Z]{{3}})?|\d[\d.hms]{{0,20}}+"
    rf"|{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}})(?:\n|$))++"
)
"""Ids as services give them to their replies, times or durations, one a line. No token has such a shape."""
_SHORTEST_TOKEN = 12
_ROOM = 40_000
"""What one value may take in a report: its characters, and a little for each thing in it."""
_COST = 20
_MOST_MEMBERS = 100
_ESCAPED = 3
"""How many times longer an escape makes the longest form of a value, which is the hexadecimal one."""

_FRESH_FOR = 0.05
"""Seconds until the whole environment is compared again; to read all of it takes longer than a description."""
_LONGEST_CLEAN = 200
_MOST_CLEAN = 2048
_MOST_STACKS = 256
_MOST_GROUPS = 512


class _State:
    """What is known at one moment. It is replaced as a whole, so threads need no lock and a fork cannot break one."""

    def __init__(self, registered: tuple[str, ...], environment: dict[str, str]) -> None:
        self.registered = len(registered)
        self.environment = environment
        held = {name: found for name, value in environment.items() if (found := secrets_in(name, value))}
        self.holders = tuple((name, environment[name]) for name in held)
        """Environment variables that are compared each time: those that hold secrets, and the policy."""
        policy = environment.get(POLICY_VARIABLE)
        self.policy = named_policy(policy)
        """How much of a foreign text is recorded where the caller does not say it."""
        if policy is not None:
            self.holders += ((POLICY_VARIABLE, policy),)
        self.known = KnownSecrets([*registered, *(secret for found in held.values() for secret in found)])
        self.window = max(_MARGIN, _ESCAPED * self.known.longest)
        """How far beyond its cap a text is read: the margin, or the longest value that is known, escaped."""
        self.clean: set[str] = set()
        """Short texts that were looked through and held nothing: names, codes and sentences come again and again."""
        self.groups: set[tuple[object, ...]] = set()
        """Names that were looked through together and held nothing: those of a service come together each time."""
        self.stacks: dict[Any, str] = {}
        """Stacks as text, masked."""


_registered: dict[str, None] = {}
_state = _State((), {})
_checked_at = float("-inf")
_learning = RLock()


def _free_lock() -> None:
    """In a process that was forked, the thread that held the lock does not exist."""
    global _learning
    _learning = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_lock)


def register_secret(value: str) -> None:
    """Mask `value` from now on, wherever it turns up and in whatever encoding.

    Use it for keys that live neither in the environment nor in a known shape, and for prompts
    or documents that must not be quoted back.

    Raises:
        ValueError: the value is so short that masking it would mask ordinary words.
    """
    if len(value) < SHORTEST:
        raise ValueError(f"a secret of fewer than {SHORTEST} characters cannot be masked reliably")
    _registered[str.__str__(value)] = None


def redact_text(text: str, limit: int = TEXT_CAP) -> str:
    """`text` with its secrets masked, valid as UTF-8, and at most `limit` characters long."""
    refresh()
    return masked(text, limit)


def masked(text: str, limit: int = TEXT_CAP) -> str:
    """`redact_text`, for a caller that has called `refresh`."""
    if type(text) is not str or len(text) > _LONGEST_CLEAN:
        return _bounded(text, limit, _mask)
    clean = _state.clean
    if text in clean and len(text) <= limit:
        return text
    result = _bounded(text, limit, _mask)
    if result == text:
        if len(clean) >= _MOST_CLEAN:
            clean.clear()
        clean.add(text)
    return result


def are_clean(texts: Iterable[str]) -> bool:
    """Whether `masked` leaves every one of several texts as it is and all are short, after a `refresh`.

    Ids and counts of a reply are new each time. In words without blanks and separators nothing is secret for what stands around it, so
    they are looked through together; if something may be secret there, each is looked through alone.
    """
    clean = _state.clean
    # A number or a word of a few letters is too short to be a secret or to hold one.
    new = [text for text in texts if (len(text) >= SHORTEST or not text.isalnum()) and text not in clean]
    return not new or _are_plain_words(new) or all(masked(text, _LONGEST_CLEAN) == text for text in new)


def _are_plain_words(texts: list[str]) -> bool:
    """Whether texts are words and times, and none of them can be secret. `False` means that a closer look is needed."""
    joined = "\n".join(texts)
    if joined.count("\n") >= len(texts):
        return False
    if _IDS.fullmatch(joined) is not None:
        return not _state.known.stands_in(joined)
    if _WORDS.fullmatch(joined) is None or _state.known.stands_in(joined):
        return False
    long = [word for word in texts if len(word) >= _SHORTEST_TOKEN and " " not in word]
    if not long:
        return True
    # A name is looked through alone, and once: most programs never need the shapes of tokens.
    return not any(map(str.isalpha, long)) and not _token_check()(long)


@cache
def _token_check() -> Callable[[list[str]], bool]:
    from failwell.errors.masking.tokens import may_hold_a_token

    return may_hold_a_token


def clean_groups() -> set[tuple[object, ...]]:
    """Groups of names that `masked` leaves as they are, after a `refresh`. It is emptied when the known secrets change."""
    groups = _state.groups
    if len(groups) >= _MOST_GROUPS:
        groups.clear()
    return groups


def masked_stacks() -> dict[Any, str]:
    """A cache of masked stacks, after a `refresh`. It is emptied when the known secrets change."""
    stacks = _state.stacks
    if len(stacks) >= _MOST_STACKS:
        stacks.clear()
    return stacks


def redact_words(text: str, limit: int, take_out: Callable[[str], str]) -> str:
    """`redact_text` on what `take_out` leaves; it receives as much of the text as can matter.

    Values that are known to be secret are masked before, because half of one is not recognised any more.
    """
    refresh()
    return _bounded(text, limit, lambda part: _mask(take_out(masked_known(part))))


def environment_policy() -> TracebackPolicy:
    """The policy that the environment asks for, after a `refresh`."""
    return _state.policy


def mask_known(text: str, limit: int = TEXT_CAP) -> str:
    """`text` with the values that are known to be secret masked, valid and cut; shapes are left alone."""
    refresh()
    return _bounded(text, limit, masked_known)


def refresh() -> None:
    """Learn the secrets anew if one was registered or the environment has changed.

    A variable that came or went, and a new value of one that holds a secret or the policy, are seen at once.
    """
    state, environ = _state, os.environ
    if (
        state.registered != len(_registered)
        or monotonic() - _checked_at > _FRESH_FOR
        or len(environ) != len(state.environment)
    ):
        _learn()
        return
    for name, value in state.holders:
        if environ.get(name) != value:
            _learn()
            return


def _learn() -> None:
    global _state, _checked_at
    # One thread at a time: otherwise one that read the secrets earlier could put its state in place of a newer one.
    with _learning:
        environment = _environment()
        registered = tuple(_registered)
        if len(registered) != _state.registered or environment != _state.environment:
            _state = _State(registered, environment)
        _checked_at = monotonic()


def _environment() -> dict[str, str]:
    """The variables as they are now. Another thread may take one away between its name and its value."""
    environ = os.environ
    values = ((name, environ.get(name)) for name in environ)
    return {name: value for name, value in values if value is not None}


def _bounded(text: str, limit: int, mask: Callable[[str], str]) -> str:
    if type(text) is not str:
        # A subclass may say of itself what it likes: its length, and what is in it.
        text = str.__str__(text)
    length, window = len(text), _state.window
    is_part = length > limit + window
    if is_part:
        text = text[: limit + window]
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode("utf-8")
    text = mask(text)
    if is_part:
        # What stands at the end of the window may be the first half of a secret, which nothing recognises.
        return _cut(text[: max(0, len(text) - window)], limit, length)
    return text if len(text) <= limit else _cut(text, limit, max(length, len(text)))


def cut(text: str, limit: int = TEXT_CAP) -> str:
    """`text` for a report, or as much of it as fits in `limit` together with a mark that says what is missing."""
    return text if len(text) <= limit else _cut(text, limit, len(text))


def redact_value(value: object) -> Any:
    """`value` as JSON-safe data, bounded in depth and width, with its secrets masked.

    Objects that JSON does not know become the name of their type: their repr is not ours to tell.
    """
    refresh()
    return masked_value(value)


def masked_value(value: object) -> Any:
    """`redact_value`, for a caller that has called `refresh`."""
    return _value(value, 0, [_ROOM])


def masked_headers(headers: object) -> dict[str, str]:
    """The allow-listed part of a reply's headers, lower-cased and masked, after a `refresh`."""
    return {name: masked(value, 200) for name, value in allowed_headers(headers).items()}


def masked_known(text: str) -> str:
    """`text` with the values masked that are known to be secret, uncut, after a `refresh`."""
    return _state.known.mask(text, MARK)


def _mask(text: str) -> str:
    text = masked_known(text)
    if _SUSPECT.search(text) is None:
        return text
    # Compiling the nets costs more than describing a thousand failures; most programs never need them.
    from failwell.errors.masking.shapes import mask_shapes

    return mask_shapes(text, MARK)


def _cut(text: str, limit: int, length: int) -> str:
    room = max(0, limit - len(str(length)) - len("… [ more characters cut]"))
    return f"{text[:room]}… [{length - room} more characters cut]"[:limit]


def _value(value: object, depth: int, room: list[int]) -> Any:
    if value is None or value is True or value is False:
        return value
    kind = type(value)
    room[0] -= _COST
    if kind is str:
        text = masked(cast("str", value))
        room[0] -= len(text)
        return text
    if kind is int:
        return value if -(2**63) <= cast("int", value) < 2**64 else masked(hex(cast("int", value))[:100])
    if kind is float:
        number = cast("float", value)
        return number if number - number == 0 else str(number)
    if depth >= 6 or room[0] <= 0:
        return "… [cut]"
    # A foreign object may raise anything when it is read.
    result = safe_call(_compound, _UNREADABLE, value, depth, room)
    return f"<{type_name(value)}>" if result is _UNREADABLE else result


def _compound(value: object, depth: int, room: list[int]) -> Any:
    if is_mapping(value):
        return _mapping(cast("Mapping[Any, Any]", value), depth, room)
    if isinstance(value, list | tuple | set | frozenset):
        return _items(cast("Iterable[Any]", value), depth, room)
    return _scalar(value, room)


def _mapping(value: Mapping[Any, Any], depth: int, room: list[int]) -> dict[str, Any]:
    from failwell.errors.masking.members import is_secret_member, name_in

    members: dict[str, Any] = {}
    # Counted, because the same key may come again and again from a foreign mapping.
    for count, (key, inner) in enumerate(items_of(value)):
        if room[0] <= 0 or count >= _MOST_MEMBERS:
            members["…"] = "[more keys cut]"
            break
        name = _key(key)
        room[0] -= len(name)
        members[name] = (
            MARK if is_secret_member(name_in(value, name), inner) else _value(inner, depth + 1, room)
        )
    return members


def _key(key: object) -> str:
    if issubclass(type(key), str):
        return masked(cast("str", key), 200)
    if type(key) is bytes:
        return masked(key[:200].decode("ascii", "backslashreplace"), 200)
    return str(key) if type(key) is int and abs(key) < 2**64 else f"<{type_name(key)}>"


def _items(value: Iterable[Any], depth: int, room: list[int]) -> list[Any]:
    from failwell.errors.masking.members import is_secret_member, is_secret_pair

    if is_secret_pair(value):
        first, _, *more = sequence_of(value)
        return [_value(first, depth + 1, room), MARK, *more]
    items: list[Any] = []
    fields = safe_getattr(type(value), "_fields") if isinstance(value, tuple) else None
    names = cast("tuple[object, ...]", fields) if type(fields) is tuple else ()
    flag = ""
    for inner in sequence_of(value):
        if room[0] <= 0 or len(items) >= _MOST_MEMBERS:
            items.append("… [more items cut]")
            break
        # `["--password", "…"]`: the name of a command line's option stands before its value.
        items.append(MARK if flag and is_secret_member(flag, inner) else _value(inner, depth + 1, room))
        flag = inner.lstrip("-") if type(inner) is str and inner.startswith("-") else ""
        if len(items) < len(names) and type(names[len(items)]) is str:
            # A named tuple: the name of the next value.
            flag = cast("str", names[len(items)])
    return items


def _scalar(value: object, room: list[int]) -> Any:
    from datetime import date, datetime
    from enum import Enum
    from pathlib import PurePath

    if isinstance(value, Enum):
        return _value(stored(value, "_value_"), 5, room)
    if isinstance(value, datetime):
        return datetime.isoformat(value)
    if isinstance(value, date):
        return date.isoformat(value)
    if isinstance(value, str):
        return masked(str.__str__(value))
    if isinstance(value, PurePath):
        return masked(str(value)) if is_printable(value) else f"<{type_name(value)}>"
    if isinstance(value, bytes):
        return f"<{bytes.__len__(value)} bytes>"
    if isinstance(value, bytearray):
        return f"<{bytearray.__len__(value)} bytes>"
    if isinstance(value, int):
        return _value(int.__index__(value), 5, room)
    if isinstance(value, float):
        return _value(float.__float__(value), 5, room)
    return f"<{type_name(value)}>"
