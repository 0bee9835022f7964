"""Values under the name of a secret, wherever a text has them: pairs, JSON, headers, queries, markup, prose.

The stems of such names are searched for first. Around each, the whole name is read and judged, then what separates
it from its value, then the value. So a new notation is a matter of one pattern.
"""

import re
from collections.abc import Iterator

from failwell.report.masking.names import STEMS, NameClass, class_of
from failwell.report.masking.randomness import is_mixed, is_random
from failwell.report.masking.spans import Span
from failwell.report.masking.values import is_secret

_STEM = re.compile("|".join(re.escape(stem.rstrip("=:'\"%3")) for stem in STEMS))
_NAME_AFTER = re.compile(r"[A-Za-z0-9_-]*+(?:\.(?=[A-Za-z])[A-Za-z0-9_-]++)*+")
_WORD_BEFORE = re.compile(r"[A-Za-z]+[ ]\Z")
_LONGEST_NAME = 100
_QUOTE = r"(?:\\*+[\"'`]|&quot;|&\#3[49];|%22)"
_SEPARATOR = re.compile(
    rf"(?P<close>{_QUOTE}?\]?)(?:"
    r"[ \t]{0,4}(?:=>|:=|={1,3}|%3[Dd]|\\+u003[dD]|&\#61;)(?:\s{0,20}(?=[\"'])|[ \t]{0,4})(?P<equals>)"
    r"|[ \t]{0,4}(?:[:：]|%3[Aa]|\\+u003[aA])[ \t]{0,4}(?P<colon>)"
    r"|(?<=[\"']),[ \t]{0,4}(?=[bB]?\\*+[\"'])(?P<comma>)"
    r"|[\s,]{1,40}\\*+[\"']?value\\*+[\"']?[ \t]{0,4}[:=][ \t]{0,4}(?P<attribute>)"
    r"|(?<![\"'])[^<>\n]{0,60}>(?P<markup>)"
    r"|(?:[ \t]+for[ \t]+[^\s:]{1,60}(?=:))?(?P<verb>(?:[ \t]+(?:is|was|to|set|lautet|est|es|used)\b)*)[ \t:]+(?P<prose>)"
    r")"
)
_OPEN = re.compile(
    # What may stand before a value: the kind of a string, a type, an encoding.
    r"(?:[bBfFrRuU]{1,2}(?=\\*+[\"'])|string\([0-9]+\)[ ]|[A-Za-z]*Secret[A-Za-z]*\(|base64:|0x(?=[0-9a-f]{32}))?"
    rf"(?P<quote>{_QUOTE})?"
)
_BARE = re.compile(r"[^\s\"'&,;)}\]<>|`]++")
_BARE_IN_QUERY = re.compile(r"[^\s\"'&;)}\]<>|`\#]++")
_LISTED = re.compile(r"[^\s\"'&;)}\]<>|`]++")
_ITEM = re.compile(r"[^,]++")
_STRING = re.compile(r"\\*+[\"'](?P<value>[^\"'\\]++)\\*+[\"']")
_UP_TO = {
    '"': re.compile(r"(?:[^\"\\\r\n]|\\.)*+"),
    "'": re.compile(r"(?:[^'\\\r\n]|\\.)*+"),
    "`": re.compile(r"(?:[^`\\\r\n]|\\.)*+"),
}
_MARKUP = re.compile(r"[^<]++(?=</)")
_GOES_ON = re.compile(r"[ \t]+\w")
_LINE_END = re.compile(r"[\r\n]|\\+[rn]")
_LONGEST = 4_096
"""Characters of a value that are looked through."""
_LONGEST_BARE = 512
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9-]*[ \t]+(?=\S)")
_KNOWN_SCHEME = re.compile(
    r"(?i:bearer|basic|digest|token|key|api-?key|api-token|geniekey|ssws|jwt)[ \t]+(?=\S)"
)
_APP_PASSWORD = re.compile(r"(?:[a-z]{4} ){3}[a-z]{4}(?![A-Za-z])")
"""Google's: four groups of four letters."""
_COOKIES = frozenset({"cookie", "set-cookie"})
_HEADERS = _COOKIES | {"authorization", "proxy-authorization"}
_IN_QUERY = {"key": NameClass.SECRET}
_ORDINARY = frozenset({"code", "key", "login", "sign"})
"""Names that ordinary sentences have before a colon."""


def named_spans(text: str, low: str) -> Iterator[Span]:
    """Where the values of named secrets stand in `text`; `low` is the text in lower case."""
    done = 0
    for stem in _STEM.finditer(low):
        if stem.start() < done:
            continue
        start, end = _name(text, stem)
        name = text[start:end]
        under = class_of(name) if name.isascii() else NameClass.PASSWORD
        done = max(done, end)
        if under is NameClass.NONE:
            continue
        for span in _values(text, start, end, under):
            yield span
            done = max(done, span[1])


def _name(text: str, stem: re.Match[str]) -> Span:
    """The whole name around a stem."""
    start, end = stem.span()
    if not stem.group().isascii():
        return start, end
    floor = max(0, start - _LONGEST_NAME)
    while (
        start > floor
        and text[start - 1].isascii()
        and (text[start - 1].isalnum() or text[start - 1] in "_-.")
    ):
        start -= 1
    # The letters of an escape before the name do not belong to it.
    if start < stem.start() and text[start - 1 : start] == "\\" and text[start] in "abfnrtv":
        start += 1
    elif start + 2 <= stem.start() and text[start - 1 : start] == "%":
        start += 2
    after = _NAME_AFTER.match(text, end)
    end = after.end() if after else end
    if text[start:end].lower() == "key" and (word := _WORD_BEFORE.search(text, max(0, start - 16), start)):
        # `API Key: …` is a name, too.
        start = start if class_of(text[word.start() : end]) is NameClass.PLAUSIBLE else word.start()
    return start, end


def _values(text: str, start: int, end: int, under: NameClass) -> Iterator[Span]:
    separator = _SEPARATOR.match(text, end)
    if separator is None:
        return
    kind, at = separator.lastgroup, separator.end()
    name = text[start:end].lower()
    if kind == "prose":
        yield from _in_prose(text, name, separator, under)
    elif kind == "markup":
        value = _MARKUP.match(text, at, at + _LONGEST) if text[start - 1 : start] in ("<", ":") else None
        if value and is_secret(value.group(), under, is_quoted=True):
            yield value.span()
    elif kind == "colon" and name in _HEADERS:
        yield from _header(text, name, start, at)
    elif kind == "comma":
        # Names stand side by side in lists, too; only raw headers are pairs of bytes.
        is_raw = text[at : at + 1] in ("b", "B")
        yield from _value(text, at, under if is_raw else NameClass.PLAUSIBLE)
    elif kind != "colon" or separator["close"] or name not in _ORDINARY:
        is_query = start > 0 and text[start - 1] in "?&"
        if is_query:
            under = _IN_QUERY.get(name) or (NameClass.PASSWORD if under is NameClass.SECRET else under)
        yield from _value(text, at, under, is_colon=kind == "colon", is_query=is_query)


def _value(
    text: str, at: int, under: NameClass, *, is_colon: bool = False, is_query: bool = False
) -> Iterator[Span]:
    opening = text[at : at + 1]
    if opening in ("[", "("):
        closing = text.find("]" if opening == "[" else ")", at, at + _LONGEST)
        for item in _STRING.finditer(text, at, closing if closing > 0 else at + _LONGEST):
            if is_secret(_credential(item["value"]), under, is_quoted=True):
                yield item.span("value")
        return
    head = _OPEN.match(text, at)
    if head is not None:
        at = head.end()
        if quote := head["quote"]:
            end = _closing(text, at, quote)
            if is_secret(_credential(text[at:end]), under, is_quoted=True):
                yield at, end
            return
    pattern = _BARE_IN_QUERY if is_query else _LISTED if under is NameClass.PLAUSIBLE else _BARE
    bare = pattern.match(text, at, at + _LONGEST_BARE)
    if bare is None or (is_colon and bare.group().startswith("//")):
        return
    for start, end in _bare(text, bare, under, is_colon=is_colon):
        # All of a secret that is longer than what was looked through.
        rest = pattern.match(text, end) if end == at + _LONGEST_BARE else None
        yield start, rest.end() if rest else end


def _bare(text: str, bare: re.Match[str], under: NameClass, *, is_colon: bool) -> Iterator[Span]:
    """A value without quotes; it ends with the word."""
    at, value = bare.start(), bare.group()
    goes_on = bool(_GOES_ON.match(text, bare.end()))
    if goes_on and value.lower() in ("bearer", "basic", "token"):
        rest = _BARE.match(text, bare.end() + 1)
        if rest and is_secret(rest.group(), NameClass.SECRET, is_quoted=False):
            yield rest.span()
    elif goes_on and under is NameClass.PASSWORD and (groups := _APP_PASSWORD.match(text, at)):
        yield groups.span()
    else:
        for item in _ITEM.finditer(value):
            if is_secret(item.group(), under, is_quoted=False, goes_on=goes_on and is_colon):
                yield at + item.start(), at + item.end()


def _closing(text: str, at: int, quote: str) -> int:
    """Where a quoted value ends: at the same quote, or with the line."""
    if quote in _UP_TO:
        inside = _UP_TO[quote].match(text, at)
        return inside.end() if inside else at
    closing = text.find(quote, at, at + _LONGEST)
    if closing >= 0:
        return closing
    line = _LINE_END.search(text, at, at + _LONGEST)
    return line.start() if line else len(text)


def _credential(value: str) -> str:
    """The credential of an `Authorization` value; the scheme before it is no secret."""
    scheme = _KNOWN_SCHEME.match(value)
    return value[scheme.end() :] if scheme else value


def _header(text: str, name: str, start: int, at: int) -> Iterator[Span]:
    """All of the value of a header that carries nothing but a secret."""
    if text[at : at + 1] in ("[", "("):
        yield from _value(text, at, NameClass.SECRET)
        return
    head = _OPEN.match(text, at)
    quote = head["quote"] if head else None
    if head and quote:
        at = head.end()
        end = _closing(text, at, quote)
    else:
        # The whole line may stand in quotes, as in `curl -H 'Cookie: a="b"'`, and hold some itself.
        before = text[start - 1 : start]
        limit = min(len(text), at + _LONGEST)
        end = text.find(before, at, limit) if before in ("'", '"') else -1
        line = _LINE_END.search(text, at, limit if end < 0 else end)
        end = line.start() if line else limit if end < 0 else end
    if _is_credential(text[at:end], name in _COOKIES, is_quoted=bool(quote)):
        yield at, end


def _is_credential(value: str, is_cookie: bool, *, is_quoted: bool) -> bool:
    if is_cookie:
        return "=" in value or is_random(value)
    scheme = _SCHEME.match(value)
    rest = value[scheme.end() :] if scheme else value
    if scheme and "=" in rest and not rest.startswith(("$", "<", "{")):
        # Parameters: a digest, a signature.
        return True
    if " " not in rest.strip():
        return is_secret(rest, NameClass.SECRET, is_quoted=is_quoted)
    # A scheme that nobody knows, and what belongs to it; or a sentence about the header.
    return any(map(is_mixed, rest.split())) and is_secret(value, NameClass.PASSWORD, is_quoted=True)


def _in_prose(text: str, name: str, separator: re.Match[str], under: NameClass) -> Iterator[Span]:
    """`the password is X`, `--token X`, `my API key X`: the value must look like one by itself."""
    if under is NameClass.PLAUSIBLE and name not in ("key", "keys"):
        return
    at = separator.end()
    head = _OPEN.match(text, at)
    at = head.end() if head else at
    bare = _BARE.match(text, at)
    value = bare.group().rstrip(".,:;?") if bare else ""
    is_stated = bool(separator["verb"]) or ":" in separator.group()
    if under is NameClass.PASSWORD and (is_stated or any(map(str.isdigit, value))):
        looks_secret = len(value) >= 6 and is_mixed(value)
    else:
        looks_secret = len(value) >= 16 and is_random(value)
    if looks_secret and not _is_other(value) and is_secret(value, NameClass.PASSWORD, is_quoted=False):
        yield at, at + len(value)


def _is_other(value: str) -> bool:
    """Whether a word in prose is a path, an address or a flag."""
    return value.startswith(("-", "http")) or (
        "/" in value and not value.endswith("=") and not is_random(value)
    )
