"""Secrets out, sizes bounded: what every text passes before a report may hold it.

Four nets, each on substrings: values known to be secret (registered, or found in the environment
under the name of a secret), values under the key of a secret, the shapes of well-known tokens, and the
user part and query of URLs. Patterns have no nested repetition and every text is cut to a
window first, so the cost is linear and bounded whatever comes in.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from time import monotonic
from typing import Any, cast

from failwell.adapters.headers import allowed_headers
from failwell.adapters.safe_getattr import safe_call
from failwell.fault.links import type_name

MARK = "[redacted]"
_UNREADABLE = object()
TEXT_CAP = 2_000
"""Characters of any one text in a report."""
_MARGIN = 2_048
"""Read beyond the cap, so that a secret on the edge is still recognised as one."""
_SHORTEST_KNOWN = 6
_SHORTEST_FROM_ENVIRONMENT = 8

_LONG_WORD = re.compile(r"[A-Za-z0-9_.-]{13}")
_SECRET_WORDS = frozenset(
    {
        "KEY", "APIKEY", "ACCESSKEY", "SECRETKEY", "PRIVATEKEY", "SIGNINGKEY", "TOKEN", "SECRET", "PASSWORD",
        "PASSWD", "PASSPHRASE", "PASS", "CREDENTIAL", "CREDENTIALS", "COOKIE", "DSN", "SIGNATURE",
        "AUTHORIZATION", "AUTH",
    }
)  # fmt: skip
"""Last words of environment variables that hold secrets."""

_ROOM = 40_000
"""What one value may take in a report: its characters, and a little for each thing in it."""
_COST = 20

_registered: set[str] = set()
_known: tuple[str, ...] = ()
_window = _MARGIN
"""How far beyond its cap a text is read: the margin, or the longest value that is known."""
_environment: dict[str, str] = {}
_holders: tuple[tuple[str, str], ...] = ()
"""Environment variables that hold secrets, with their values."""
_checked_at = float("-inf")
_FRESH_FOR = 0.05
"""Seconds until the whole environment is compared again; to read all of it takes longer than a description."""
_LONGEST_CLEAN = 240
_MOST_CLEAN = 2048
_clean: set[str] = set()
"""Short texts that were looked through and held nothing: names, codes and sentences come again and again."""


def register_secret(value: str) -> None:
    """Mask `value` from now on, wherever it turns up and in whatever encoding.

    Use it for keys that live neither in the environment nor in a known shape, and for prompts
    or documents that must not be quoted back.

    Raises:
        ValueError: the value is so short that masking it would mask ordinary words.
    """
    if len(value) < _SHORTEST_KNOWN:
        raise ValueError(f"a secret of fewer than {_SHORTEST_KNOWN} characters cannot be masked reliably")
    _registered.add(value)
    _learn()


def redact_text(text: str, limit: int = TEXT_CAP) -> str:
    """`text` with its secrets masked, valid as UTF-8, and at most `limit` characters long."""
    refresh()
    return masked(text, limit)


def masked(text: str, limit: int = TEXT_CAP) -> str:
    """`redact_text`, for a caller that has called `refresh`."""
    if type(text) is not str or len(text) > _LONGEST_CLEAN:
        return _bounded(text, limit, _mask)
    if text in _clean and len(text) <= limit:
        return text
    known = _known
    result = _bounded(text, limit, _mask)
    # What was learnt meanwhile in another thread was not looked for.
    if result == text and known is _known:
        if len(_clean) >= _MOST_CLEAN:
            _clean.clear()
        _clean.add(text)
    return result


def redact_words(text: str, limit: int, take_out: Callable[[str], str]) -> str:
    """`redact_text` on what `take_out` leaves; it receives as much of the text as can matter."""
    refresh()
    return _bounded(text, limit, lambda part: _mask(take_out(part)))


def mask_known(text: str, limit: int = TEXT_CAP) -> str:
    """`text` with the values that are known to be secret masked, valid and cut; shapes are left alone."""
    refresh()
    return _bounded(text, limit, _mask_known)


def refresh() -> None:
    """Learn the secrets in the environment anew if it has changed.

    A variable that came or went, and a new value of one that holds a secret, are seen at once.
    """
    environ = os.environ
    if monotonic() - _checked_at > _FRESH_FOR or len(environ) != len(_environment):
        _compare()
        return
    for name, value in _holders:
        if environ.get(name) != value:
            _learn()
            return


def _compare() -> None:
    global _checked_at
    if dict(os.environ) != _environment:
        _learn()
    _checked_at = monotonic()


def _bounded(text: str, limit: int, mask: Callable[[str], str]) -> str:
    if type(text) is not str:
        # A subclass may say of itself what it likes: its length, and what is in it.
        text = str.__str__(text)
    length = len(text)
    is_part = length > limit + _window
    if is_part:
        text = text[: limit + _window]
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode("utf-8")
    text = mask(text)
    if is_part:
        # What stands at the end of the window may be the first half of a secret, which nothing recognises.
        return _cut(text[: max(0, len(text) - _window)], limit, length)
    return text if len(text) <= limit else _cut(text, limit, max(length, len(text)))


def cut(text: str, limit: int = TEXT_CAP) -> str:
    """`text`, or as much of it as fits in `limit` together with a mark that says what is missing."""
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


def _mask_known(text: str) -> str:
    for secret in _known:
        if secret in text:
            text = text.replace(secret, MARK)
    return text


def _mask(text: str) -> str:
    text = _mask_known(text)
    if not (_LONG_WORD.search(text) or ":" in text or "=" in text or "," in text or " " in text):
        return text
    # Compiling the nets costs more than describing a thousand failures; most programs never need them.
    from failwell.report.secret_shapes import mask_shapes

    return mask_shapes(text)


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
    if isinstance(value, Mapping):
        return _mapping(cast("Mapping[Any, Any]", value), depth, room)
    if isinstance(value, list | tuple | set | frozenset):
        return _items(cast("Iterable[Any]", value), depth, room)
    return _scalar(value, room)


def _mapping(value: Mapping[Any, Any], depth: int, room: list[int]) -> dict[str, Any]:
    from failwell.report.secret_shapes import names_a_secret

    members: dict[str, Any] = {}
    for key, inner in value.items():
        if room[0] <= 0 or len(members) >= 100:
            members["…"] = "[more keys cut]"
            break
        name = _key(key)
        room[0] -= len(name)
        members[name] = MARK if inner is not None and names_a_secret(name) else _value(inner, depth + 1, room)
    return members


def _key(key: object) -> str:
    if issubclass(type(key), str):
        return masked(cast("str", key), 200)
    return str(key) if type(key) is int and abs(key) < 2**64 else f"<{type_name(key)}>"


def _items(value: Iterable[Any], depth: int, room: list[int]) -> list[Any]:
    items: list[Any] = []
    for inner in value:
        if room[0] <= 0 or len(items) >= 100:
            items.append("… [more items cut]")
            break
        items.append(_value(inner, depth + 1, room))
    return items


def _scalar(value: object, room: list[int]) -> Any:
    from datetime import date, datetime
    from enum import Enum
    from pathlib import PurePath

    if isinstance(value, Enum):
        return _value(value.value, 5, room)
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, str):
        return masked(str.__str__(value))
    if isinstance(value, PurePath):
        return masked(str(value))
    if isinstance(value, bytes | bytearray):
        return f"<{len(value)} bytes>"
    if isinstance(value, int):
        return _value(int.__index__(value), 5, room)
    if isinstance(value, float):
        return _value(float.__float__(value), 5, room)
    return f"<{type_name(value)}>"


def _learn() -> None:
    global _known, _environment, _holders, _window
    _environment = dict(os.environ)
    values = set(_registered)
    holders: list[tuple[str, str]] = []
    for name, value in _environment.items():
        secrets = list(_secrets_in(name, value))
        if secrets:
            values.update(secrets)
            holders.append((name, value))
    _holders = tuple(holders)
    forms = {form for value in values for form in _forms(value) if len(form) >= _SHORTEST_KNOWN}
    _known = tuple(sorted(forms, key=len, reverse=True))
    _clean.clear()
    _window = max(_MARGIN, len(_known[0]) if _known else 0)


def _secrets_in(name: str, value: str) -> Iterable[str]:
    """What of an environment variable is secret: the password of a URL, or all of it by its name."""
    if "://" in value and (login := re.search(r"://[^/@\s:]*:([^/@\s]+)@", value)):
        yield login.group(1)
    if (
        len(value) >= _SHORTEST_FROM_ENVIRONMENT
        and _names_a_secret_variable(name)
        and not _is_path(name, value)
    ):
        yield value


def _is_path(name: str, value: str) -> bool:
    # Some variables say where a key lies. Those that hold the secret itself may begin with a slash too: one
    # in sixty-four base64 texts does.
    says_secret = any(word in name.upper() for word in ("SECRET", "TOKEN", "PASS", "API"))
    return value.startswith(("/", "~", "./")) and not says_secret


def _names_a_secret_variable(name: str) -> bool:
    words = name.upper().split("_")
    if len(words) > 1 and words[-1].isdecimal():
        words.pop()
    return words[-1] in _SECRET_WORDS


def _forms(value: str) -> Iterable[str]:
    from json import dumps
    from urllib.parse import quote, quote_plus

    yield value
    yield quote(value, safe="")
    yield quote_plus(value)
    yield dumps(value)[1:-1]
    yield dumps(value, ensure_ascii=False)[1:-1]
    yield repr(value)[1:-1]
