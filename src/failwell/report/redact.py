"""Secrets out, sizes bounded: what every text passes before a report may hold it.

Four nets, each on substrings: values known to be secret (registered, or found in the environment
under a telling name), values under a telling key, the shapes of well-known tokens, and the
user part and query of URLs. Patterns have no nested repetition and every text is cut to a
window first, so the cost is linear and bounded whatever comes in.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, cast

from failwell.fault.links import type_name
from failwell.report.environment import raw

MARK = "[redacted]"
TEXT_CAP = 2_000
"""Characters of any one text in a report."""
_MARGIN = 2_048
"""Read beyond the cap, so that a secret on the edge is still recognised as one."""
_SHORTEST_KNOWN = 6
_SHORTEST_FROM_ENVIRONMENT = 8

_TELLING = (
    r"(?:x[-_])?(?:goog[-_])?api[-_ ]?key|apikey|(?:shared[-_ ]?)?access[-_ ]?key(?:[-_]?id)?"
    r"|secret[-_]?access[-_]?key"
    r"|(?:account|auth|client|encryption|master|private|secret|service|signing|storage|subscription)[-_ ]?key"
    r"|(?:access|auth|refresh|id|session|security|bearer|csrf|xsrf)[-_]?token|token|client[-_]?secret|secret"
    r"|pass(?:word|wd|phrase|code)|pwd|authorization|proxy[-_]authorization|auth|(?:set[-_])?cookies?"
    r"|session[-_]?(?:id|key)|sig|signature|credentials?|jwt|dsn"
    r"|x[-_]amz[-_](?:signature|security[-_]token|credential)"
)
_TELLING_KEY = re.compile(rf"(?:.*[-_. ])?(?:{_TELLING})", re.IGNORECASE)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_TELLING_VARIABLE = re.compile(
    r"(?:.*_)?(?:(?:API_?|ACCESS_?|SECRET_?|PRIVATE_?|SIGNING_?)?KEY|APIKEY|TOKEN|SECRET|PASSWORD|PASSWD"
    r"|PASSPHRASE|PASS|CREDENTIALS?|COOKIE|DSN|SIGNATURE|AUTHORIZATION|AUTH)(?:_\d+)?",
    re.IGNORECASE,
)

# Repetitions below are possessive and have no upper bound: a bound would let the rest of a long secret
# through, and the text was cut to a window before.
_PEM = re.compile(r"-----BEGIN[ A-Z0-9]{0,40}PRIVATE KEY-----[^-]*+(?:-----END[ A-Z0-9]{0,40}KEY-----)?")
_USERINFO = re.compile(r"(?<=://)[^\s/@:?#]*+:[^\s/@]++(?=@)")
_LONG_WORD = re.compile(r"[A-Za-z0-9_.-]{13}")
_TOKEN = re.compile(
    r"(?<![A-Za-z0-9_-])(?:"
    r"(?:sk|rk|r8|gsk|xai|pplx|nvapi|tgp|ghp|gho|ghu|ghs|ghr|glpat|github_pat|shpat|lsv2|whsec|xox[abeoprs])"
    r"[-_][A-Za-z0-9_-]{10,}+"
    # These begin ordinary names too, such as `hf_hub_download`; a token has a digit somewhere.
    r"|(?:pk|hf|npm|pypi|dop|org|proj|acct|fw|jina|voyage|sess)[-_](?=[A-Za-z_-]*+[0-9])[A-Za-z0-9_-]{10,}+"
    r"|(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,20}+"
    r"|AIza[A-Za-z0-9_-]{20,}+"
    r"|ya29\.[A-Za-z0-9_.-]{10,}+"
    r"|SG\.[A-Za-z0-9_-]{10,}+\.[A-Za-z0-9_-]{10,}+"
    r"|eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{4,}+(?:\.[A-Za-z0-9_-]*+)?"
    r"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}:[0-9a-f]{16,}+"
    r")"
)
_SCHEME = re.compile(
    r"(?<![A-Za-z])(?i:bearer|(?:basic|digest)(?=[ \t]{1,4}\S*(?-i:[0-9=+/]|[a-z][A-Z])))[ \t]{1,4}"
    r"(?P<value>[A-Za-z0-9._~+/=-]{8,}+)"
)
_PAIR = re.compile(
    rf"(?:(?<![A-Za-z0-9])|(?<=[a-z0-9])(?=[A-Z]))(?i:{_TELLING})"
    # A raw header is a pair of bytes: (b'x-api-key', b'...').
    r"(?:(?:\\{0,3}[\"']){0,2}[ \t]{0,4}(?:=>|[:=])|[\"'],(?=[ \t]{0,4}b[\"']))[ \t]{0,4}(?P<value>"
    r"\\{1,3}[\"'][^\"'\r\n]++[\"']?"
    r"|[bB]?\"(?:[^\"\\\r\n]|\\.)++\"?|[bB]?'(?:[^'\\\r\n]|\\.)++'?"
    r"|[^\s\"'&,;)}\]<>]{3,}+)"
)
_QUERY = re.compile(
    r"(?<=[?&])(?i:key|k|code|sig|x-amz-[a-z-]{1,40}|[a-z_.-]{0,20}(?:token|auth|password|secret|key))="
    r"(?P<value>[^\s&#\"']++)"
)
_HEADER_LINE = re.compile(
    r"(?im)(?P<head>(?<![a-z0-9-])(?:proxy-)?(?:authorization|set-cookie|cookie)[\"']?[ \t]{0,4}:[ \t]{0,4})"
    r"(?P<rest>[^\r\n]++)"
)
_STEMS = ("key", "token", "secret", "pass", "pwd", "auth", "cookie", "sig", "cred", "session", "jwt", "dsn")

SAFE_HEADERS = frozenset(
    {
        "retry-after", "retry-after-ms", "x-should-retry", "ratelimit", "ratelimit-policy", "ratelimit-limit",
        "ratelimit-remaining", "ratelimit-reset", "x-request-id", "request-id", "x-amzn-requestid",
        "x-amzn-errortype", "x-amz-retry-after", "x-error-code", "x-fal-error-type", "x-fal-request-id",
        "apim-request-id", "x-ms-request-id", "x-goog-request-id", "cf-ray", "content-type", "content-length",
        "date", "server", "grpc-status", "grpc-retry-pushback-ms", "traceparent",
    }
)  # fmt: skip
"""Reply headers that may be kept. Any other is dropped, whatever it is called."""
_SAFE_HEADER_PREFIXES = ("x-ratelimit-", "anthropic-ratelimit-", "x-ms-ratelimit-")
_MOST_HEADERS = 40
_MOST_LISTED = 1_000
_ROOM = 40_000
"""What one value may take in a report: its characters, and a little for each thing in it."""
_COST = 20

_registered: set[str] = set()
_known: tuple[str, ...] = ()
_window = _MARGIN
"""How far beyond its cap a text is read: the margin, or the longest value that is known."""
_environment: dict[Any, Any] | None = None
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


def forget_secrets() -> None:
    """Forget every registered value; those in the environment stay known."""
    _registered.clear()
    _learn()


def redact_text(text: str, limit: int = TEXT_CAP) -> str:
    """`text` with its secrets masked, valid as UTF-8, and at most `limit` characters long."""
    _refresh()
    return _redacted(text, limit)


def _redacted(text: str, limit: int) -> str:
    if type(text) is not str or len(text) > _LONGEST_CLEAN:
        return _bounded(text, limit, _mask)
    if text in _clean and len(text) <= limit:
        return text
    known = _known
    made = _bounded(text, limit, _mask)
    # What was learnt meanwhile in another thread was not looked for.
    if made == text and known is _known:
        if len(_clean) >= _MOST_CLEAN:
            _clean.clear()
        _clean.add(text)
    return made


def mask_known(text: str, limit: int = TEXT_CAP) -> str:
    """`text` with the values that are known to be secret masked, valid and cut; shapes are left alone."""
    _refresh()
    return _bounded(text, limit, _mask_known)


def _refresh() -> None:
    """Learn the secrets in the environment anew if it has changed."""
    if _environment is None or _environment != raw():
        _learn()


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
    return _value(value, 0, [_ROOM])


def safe_headers(headers: object) -> dict[str, str]:
    """The allow-listed part of a reply's headers, lower-cased and masked."""
    pairs = _pairs(headers)
    kept: dict[str, str] = {}
    _refresh()
    for name, value in pairs:
        key = str(name).lower()
        if key in SAFE_HEADERS or key.startswith(_SAFE_HEADER_PREFIXES):
            kept[key] = _redacted(str(value), 200)
        if len(kept) >= _MOST_HEADERS:
            break
    return kept


def is_telling(key: str) -> bool:
    """Whether a value under this key must be taken for a secret."""
    return len(key) <= 100 and _TELLING_KEY.fullmatch(_HUMP.sub("_", key)) is not None


def _mask_known(text: str) -> str:
    for secret in _known:
        if secret in text:
            text = text.replace(secret, MARK)
    return text


def _mask(text: str) -> str:
    text = _mask_known(text)
    # Each net costs its pattern's walk over the text, so each is cast only where a plain search for
    # a letter or a word says that it could catch something.
    if _LONG_WORD.search(text):
        text = _TOKEN.sub(MARK, text)
    if "://" in text and "@" in text:
        text = _USERINFO.sub(MARK, text)
    if "-----BEGIN" in text:
        text = _PEM.sub(MARK, text)
    if ":" in text or "=" in text or " " in text:
        text = _mask_named(text, text.lower())
    return text


def _mask_named(text: str, low: str) -> str:
    # A query first: there a value ends where the next one begins, which a plain pair cannot know.
    if "=" in text and ("?" in text or "&" in text):
        text = _QUERY.sub(_mask_value, text)
    if ("=" in text or ":" in text or "," in text) and any(stem in low for stem in _STEMS):
        if "cookie" in low or "authorization" in low:
            text = _HEADER_LINE.sub(_mask_line, text)
        text = _PAIR.sub(_mask_value, text)
    if "bearer" in low or "basic" in low or "digest" in low:
        text = _SCHEME.sub(_mask_value, text)
    return text


def _mask_value(match: re.Match[str]) -> str:
    whole, value = match.group(0), match.group("value")
    if MARK[:-1] in value:
        return whole
    return whole[: len(whole) - len(value)] + MARK


def _mask_line(match: re.Match[str]) -> str:
    head, rest = match.group("head"), match.group("rest")
    if rest[:1] in "bB" and rest[1:2] in ("'", '"'):
        head, rest = head + rest[0], rest[1:]
    # Inside quotes (a repr, JSON) the header ends with its string, not with the line.
    quote = rest[0] if rest[0] in "\"'" else ""
    closing = (rest.find(quote, 1),) if quote else (rest.find('"'), rest.find("'"))
    end = min((at for at in closing if at > 0), default=len(rest))
    return f"{head}{quote}{MARK}{rest[end:]}"


def _cut(text: str, limit: int, length: int) -> str:
    kept = max(0, limit - len(str(length)) - len("… [ more characters cut]"))
    return f"{text[:kept]}… [{length - kept} more characters cut]"[:limit]


def _value(value: object, depth: int, room: list[int]) -> Any:
    if value is None or value is True or value is False:
        return value
    kind = type(value)
    room[0] -= _COST
    if kind is str:
        text = redact_text(cast("str", value))
        room[0] -= len(text)
        return text
    if kind is int:
        return value if -(2**63) <= cast("int", value) < 2**64 else redact_text(hex(cast("int", value))[:100])
    if kind is float:
        number = cast("float", value)
        return number if number - number == 0 else str(number)
    if depth >= 6 or room[0] <= 0:
        return "… [cut]"
    try:
        return _compound(value, depth, room)
    except BaseException:  # noqa: BLE001  (an object of somebody else's may refuse to be looked at, and how)
        return f"<{type_name(value)}>"


def _compound(value: object, depth: int, room: list[int]) -> Any:
    if isinstance(value, Mapping):
        return _mapping(cast("Mapping[Any, Any]", value), depth, room)
    if isinstance(value, list | tuple | set | frozenset):
        return _items(cast("Iterable[Any]", value), depth, room)
    return _scalar(value, room)


def _mapping(value: Mapping[Any, Any], depth: int, room: list[int]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, inner in value.items():
        if room[0] <= 0 or len(made) >= 100:
            made["…"] = "[more keys cut]"
            break
        name = _key(key)
        room[0] -= len(name)
        made[name] = MARK if is_telling(name) and inner is not None else _value(inner, depth + 1, room)
    return made


def _key(key: object) -> str:
    if issubclass(type(key), str):
        return redact_text(cast("str", key), 200)
    return str(key) if type(key) is int and abs(key) < 2**64 else f"<{type_name(key)}>"


def _items(value: Iterable[Any], depth: int, room: list[int]) -> list[Any]:
    made: list[Any] = []
    for inner in value:
        if room[0] <= 0 or len(made) >= 100:
            made.append("… [more items cut]")
            break
        made.append(_value(inner, depth + 1, room))
    return made


def _scalar(value: object, room: list[int]) -> Any:
    from datetime import date, datetime
    from enum import Enum
    from pathlib import PurePath

    if isinstance(value, Enum):
        return _value(value.value, 5, room)
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, str):
        return redact_text(str.__str__(value))
    if isinstance(value, PurePath):
        return redact_text(str(value))
    if isinstance(value, bytes | bytearray):
        return f"<{len(value)} bytes>"
    if isinstance(value, int):
        return _value(int.__index__(value), 5, room)
    if isinstance(value, float):
        return _value(float.__float__(value), 5, room)
    return f"<{type_name(value)}>"


def _pairs(headers: object) -> Iterable[tuple[object, object]]:
    if isinstance(headers, Mapping):
        return islice(cast("Mapping[object, object]", headers).items(), _MOST_LISTED)
    items = cast("Any", getattr(headers, "items", None))
    return [] if items is None else islice(items(), _MOST_LISTED)


def _learn() -> None:
    global _known, _environment, _window
    _environment = dict(raw())
    values = set(_registered)
    for name, value in os.environ.items():
        if "://" in value and (login := re.search(r"://[^/@\s:]*:([^/@\s]+)@", value)):
            values.add(login.group(1))
        if (
            len(value) >= _SHORTEST_FROM_ENVIRONMENT
            and _TELLING_VARIABLE.fullmatch(name)
            and not value.startswith(("/", "~", "./"))
        ):
            values.add(value)
    forms = {form for value in values for form in _forms(value) if len(form) >= _SHORTEST_KNOWN}
    _known = tuple(sorted(forms, key=len, reverse=True))
    _clean.clear()
    _window = max(_MARGIN, len(_known[0]) if _known else 0)


def _forms(value: str) -> Iterable[str]:
    from json import dumps
    from urllib.parse import quote, quote_plus

    yield value
    yield quote(value, safe="")
    yield quote_plus(value)
    yield dumps(value)[1:-1]
    yield dumps(value, ensure_ascii=False)[1:-1]
    yield repr(value)[1:-1]
