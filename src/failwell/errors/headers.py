"""Reply headers: read through any library's mapping, and cut down to those that may be recorded.

The other headers of a reply, its cookies among them, are not even decoded.
"""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, cast

from failwell.errors.foreign_code import is_readable
from failwell.errors.foreign_objects import safe_call
from failwell.errors.safe_str import items_of

SAFE_HEADERS = frozenset(
    {
        "retry-after", "retry-after-ms", "x-should-retry", "ratelimit", "ratelimit-policy", "ratelimit-limit",
        "ratelimit-remaining", "ratelimit-reset", "x-request-id", "request-id", "x-amzn-requestid",
        "x-amzn-errortype", "x-amz-retry-after", "x-error-code", "x-fal-error-type", "x-fal-request-id",
        "apim-request-id", "x-ms-request-id", "x-goog-request-id", "cf-ray", "content-type", "content-length",
        "date", "server", "grpc-status", "grpc-retry-pushback-ms", "traceparent",
    }
)  # fmt: skip
"""Reply headers that may be recorded. All others are dropped."""
_SAFE_PREFIXES = (
    "x-ratelimit-",
    "anthropic-ratelimit-",
    "x-ms-ratelimit-",
    "ratelimitbysize-",
    "x-ratelimitbysize-",
)
_READ = frozenset({"x-ms-retry-after-ms", "x-amzn-trace-id"})
"""Headers that a rule reads and no report keeps."""
_MOST = 40
_MOST_LINES = 200
_MOST_LISTED = 1_000
_LONGEST = 200
_LONGEST_READ = 2_000
_MOST_VALUES = 8
_MOST_NAMES = 1024

_names: dict[bytes | str, str] = {}
"""A header's name as it was sent → in lower case, or empty if no rule reads it."""
_safe = set(SAFE_HEADERS)
"""Names that may be recorded: those of the list, and those seen so far that begin with a safe prefix."""


def lower_headers(headers: object) -> dict[str, str]:
    """Those of any library's headers that a rule reads or a report keeps, with lower-case names."""
    if headers is None:
        return {}
    # A foreign mapping may raise anything at all.
    return safe_call(_lines, None, headers) or safe_call(_items, None, headers) or {}


def is_safe_header(name: str) -> bool:
    """Whether a header of this (lower-case) name may be recorded."""
    return name in SAFE_HEADERS or name.startswith(_SAFE_PREFIXES)


def is_read_header(name: str) -> bool:
    """Whether a rule or a report uses a header of this (lower-case) name."""
    return is_safe_header(name) or name in _READ or "ratelimit" in name or "rate-limit" in name


def allow_listed(headers: Mapping[str, str]) -> Mapping[str, str]:
    """The allow-listed ones among lower-cased headers; the same object where they all are."""
    if len(headers) <= _MOST and _safe.issuperset(headers):
        values = headers.values()
        # All of them together are seldom longer than one may be, and that is quicker to see.
        if len("".join(values)) <= _LONGEST or max(map(len, values)) <= _LONGEST:
            return headers
    allowed = {
        name: value if len(value) <= _LONGEST else value[:_LONGEST]
        for name, value in headers.items()
        if name in _safe or name.startswith(_SAFE_PREFIXES)
    }
    return allowed if len(allowed) <= _MOST else dict(islice(allowed.items(), _MOST))


def is_allow_listed(headers: Mapping[str, str]) -> bool:
    """Whether all of these headers are known to be allow-listed, and not too many."""
    return headers.__class__ is dict and len(headers) <= _MOST and _safe.issuperset(headers)


def allowed_headers(headers: object) -> dict[str, str]:
    """The allow-listed part of any mapping of headers, with lower-case names and uncut values."""
    allowed: dict[str, str] = {}
    for name, value in islice(_pairs(headers), _MOST_LISTED):
        key = name if type(name) is str and name in _safe else _text(name).lower()
        if key in _safe or key.startswith(_SAFE_PREFIXES):
            allowed[key] = _text(value)
            if len(allowed) >= _MOST:
                break
    return allowed


def _pairs(headers: object) -> Iterable[tuple[object, object]]:
    if isinstance(headers, Mapping):
        return items_of(cast("Mapping[object, object]", headers))
    items = cast("Any", getattr(headers, "items", None)) if is_readable(headers) else None
    return [] if items is None else items()


def _lines(headers: object) -> dict[str, str] | None:
    """The headers from the raw lines of httpx. Its mapping decodes and joins all of them, which takes longer than classifying."""
    if type(headers) is dict:
        # It has none, and to find that out by asking costs as much as to read it.
        return None
    try:
        lines: Any = vars(headers)["_list"]
        if len(lines) > _MOST_LINES:
            lines = lines[:_MOST_LINES]
        headers_read: dict[str, str] = {}
        known = _names
        for _, raw, value in lines:
            try:
                name = known[raw]
            except KeyError:
                name = _learn(raw, raw.decode())
            if name:
                text = value.decode()
                if len(text) > _LONGEST_READ:
                    text = text[:_LONGEST_READ]
                headers_read[name] = f"{headers_read[name]}, {text}" if name in headers_read else text
    except (AttributeError, KeyError, TypeError, ValueError):
        # It is another library's mapping, or not in UTF-8.
        return None
    return headers_read


def _items(headers: object) -> dict[str, str]:
    headers_read: dict[str, str] = {}
    for raw, value in islice(_pairs(headers), _MOST_LINES):
        name = _names.get(raw) if type(raw) is str else None
        if name is None:
            name = _learn(raw, _text(raw))
        if name:
            text = value if type(value) is str else _text(value)
            if len(text) > _LONGEST_READ:
                text = text[:_LONGEST_READ]
            # Most libraries list a header that was sent twice as two items.
            headers_read[name] = f"{headers_read[name]}, {text}" if name in headers_read else text
    return headers_read


def _text(raw: object) -> str:
    """A name or a value as text; some libraries keep the bytes that were sent, or a list of values."""
    if type(raw) is str:
        return raw
    if type(raw) is bytes:
        return raw.decode("latin-1")
    if type(raw) is list or type(raw) is tuple:
        return ", ".join(_text(value) for value in cast("list[object]", raw)[:_MOST_VALUES])
    if issubclass(type(raw), str):
        return str.__str__(cast("str", raw))
    # A number; anything else is no header, and its text is its own affair.
    return str(raw) if type(raw) is int or type(raw) is float else ""


def _learn(raw: object, text: str) -> str:
    low = text.lower()
    name = low if is_read_header(low) else ""
    if (type(raw) is str or type(raw) is bytes) and len(raw) <= _LONGEST:
        if len(_names) >= _MOST_NAMES:
            # Names made up for each reply must not make this grow for ever.
            _names.clear()
            _safe.intersection_update(SAFE_HEADERS)
        _names[raw] = name
        if is_safe_header(low):
            _safe.add(low)
    return name
