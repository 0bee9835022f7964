"""Values under the name of a secret, wherever a text has them: pairs, JSON, headers, queries, markup, prose.

The stems of such names are searched for first. Around each, the whole name is read and judged, then what separates
it from its value, then the value. So a new notation is a matter of one pattern.
"""

import re
from collections.abc import Iterator

from failwell.errors.lazy_regex import lazy_regex
from failwell.errors.masking.randomness import is_identifier, is_mixed, is_random
from failwell.errors.masking.secret_names import STEMS, NameClass, class_of, is_secret
from failwell.errors.masking.shapes import Span

_STEM = lazy_regex("|".join(re.escape(stem.rstrip("=:'\"%3")) for stem in STEMS))
_NAME_AFTER = lazy_regex(r"[A-Za-z0-9_-]*+(?:\.(?=[A-Za-z])[A-Za-z0-9_-]++)*+")
_WORD_BEFORE = lazy_regex(r"[A-Za-z]+[ ]\Z")
_LONGEST_NAME = 100
_QUOTE = r"(?:\"\"\"|'''|\\*+[\"'`]|&quot;|&\#3[49];|%22)"
_NEWLINE = r"(?:\r?\n|\\+r\\+n|\\+n)"
_SEPARATOR = lazy_regex(
    rf"(?P<close>{_QUOTE}?\]?)(?:"
    # A source line: `api_key: str = "…"`.
    r"(?:[ \t]{0,4}:[ \t]{0,4}&?|[ \t](?=string\b))[A-Za-z_][\w.]{0,40}(?:\[[^\]\n]{0,60}\])?(?:[ ]?\|[ ]?[\w.]{1,40}){0,3}[ \t]{0,4}=[ \t]{0,4}"
    r"(?=[bBfFrRuU]{0,2}[\"'])(?P<annotation>)"
    # A field of a model that did not fit, on the same line or with the error on the next.
    rf"|(?::[ \t]{{0,4}}|{_NEWLINE}[ ]{{2}}[^\n]{{0,300}}?\b)input_value=(?P<input>)"
    # A column of a table, after a constraint of PostgreSQL.
    r"|(?:::[a-z]{1,20})?(?:,[^()\n]{0,100})?\){1,3}=\((?P<column>)"
    # A part of a form: headers, an empty line, the value.
    r"|(?<=[\"'])(?:;[^\r\n\\]{0,80})?(?:(?:\r?\n|\\r\\n)[A-Za-z-]{1,40}:[^\r\n\\]{0,80}){0,3}(?:\r?\n|\\r\\n){2}(?P<part>)"
    # A value on a line of its own.
    r"|[ \t]{0,4}:[ \t]{0,4}(?:[|>][+-]?)?"
    rf"{_NEWLINE}[ \t]{{1,20}}(?P<block>)|"
    r"[ \t]{0,4}(?:=>|:=|={1,3}|%3[Dd]|\\+u003[dD]|&\#61;)(?:\s{0,20}(?=[\"'])|[ \t]{0,4})(?P<equals>)"
    r"|[ \t]{0,4}(?:[:：]|%3[Aa]|\\+u003[aA])[ \t]{0,4}(?:(?:got|received)[ \t]+)?(?P<colon>)"
    rf"|(?:{_NEWLINE})?[\s,]{{1,40}}"
    r"\\*+[\"']?value\\*+[\"']?[ \t]{0,4}[:=][ \t]{0,4}(?P<attribute>)"
    r"|(?<=[\"']),[ \t]{0,4}(?=[bB]?\\*+[\"'])(?P<comma>)"
    r"|[ \t]{0,40}(?:\||->|→)[ \t]{0,4}(?P<cell>)"
    r"|(?<![\"'])[^<>\n]{0,60}>(?P<markup>)"
    r"|(?:[ \t]+for[ \t]+[^\s:]{1,60}(?=:))?(?P<verb>(?:[ \t]+[a-z]{2,20}){0,5}[ \t]+"
    # The last word speaks of the secret; `auth failed for run: …` quotes something else.
    r"(?:provided|supplied|given|received|used|sent|specified|entered|invalid|incorrect|wrong|expired|rejected|refused|revoked)(?=:[ \t])"
    r"|(?:[ \t]+(?:is|was|to|set|lautet|est|es|used)\b)*)[ \t:]+(?P<prose>)"
    r")"
)
_OPEN = lazy_regex(
    # What may stand before a value: the kind of a string, a type, an encoding.
    r"(?:[bBfFrRuU]{1,2}(?=\\*+[\"'])|string\([0-9]+\)[ ]|[A-Za-z]*(?:Secret|Token)[A-Za-z]*\((?:value=)?"
    r"|(?:Some|Just|Ok|Optional(?:\.of)?|String::from|str|bytes)\((?=[\"'])|![a-z!]{1,20}[ ]|base64:|0x(?=[0-9a-f]{32}))?"
    rf"(?P<quote>{_QUOTE})?"
)
_BARE = lazy_regex(r"[^\s\"'&,;)}\]<>|`]++")
_BARE_IN_QUERY = lazy_regex(r"[^\s\"'&;)}\]<>|`\#]++")
_LISTED = lazy_regex(r"[^\s\"'&;)}\]<>|`]++")
_ITEM = lazy_regex(r"[^,]++")
_CLOSING = {"[": "]", "(": ")", "{": "}"}
_MEMBER = lazy_regex(r"[:=]>?[ \t]{0,4}\\*+[\"'](?P<value>[^\"'\\]++)")
_LINE = lazy_regex(r"[\"']?(?P<value>[^\s:\"'\\]{6,512})[\"']?[ \t]*+(?=[\r\n]|\\+[rn]|\Z)")
_COLUMNS = lazy_regex(r"[^()\n]{1,4096}(?=\))")
_COLUMN = lazy_regex(r"[^,\s][^,]*+")
_STRING = lazy_regex(r"\\*+[\"'](?P<value>[^\"'\\]++)\\*+[\"']")
_UP_TO = {
    '"': lazy_regex(r"(?:[^\"\\\r\n]|\\.)*+"),
    "'": lazy_regex(r"(?:[^'\\\r\n]|\\.)*+"),
    "`": lazy_regex(r"(?:[^`\\\r\n]|\\.)*+"),
}
_MARKUP = lazy_regex(r"[^<]++(?=</)")
_GOES_ON = lazy_regex(r"[ \t]+\w")
_LINE_END = lazy_regex(r"[\r\n]|\\+[rn]")
_LONGEST = 4_096
"""Characters of a value that are looked through."""
_LONGEST_BARE = 512
_OBJECT = lazy_regex(r"[a-z0-9]+(?:-[a-z0-9]+)+")
_RESOURCE = lazy_regex(r"arn:[a-z-]+:[^\s\"']*\Z")
"""What stands before a name that is part of the name of a resource."""
_SCHEME = lazy_regex(r"[A-Za-z][A-Za-z0-9-]*[ \t]+(?=\S)")
_KNOWN_SCHEME = lazy_regex(
    r"(?i:bearer|basic|digest|token|key|api-?key|api-token|geniekey|ssws|jwt)[ \t]+(?=\S)"
)
_APP_PASSWORD = lazy_regex(r"(?:[a-z]{4} ){3}[a-z]{4}(?![A-Za-z])")
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
    if separator is None or (
        text[start - 1 : start] == ":" and _RESOURCE.search(text, max(0, start - 200), start)
    ):
        return
    kind, at = separator.lastgroup, separator.end()
    name = text[start:end].lower()
    if kind == "prose":
        yield from _in_prose(text, start, separator, under)
    elif kind in ("block", "column", "part"):
        yield from _elsewhere(text, start, separator, under)
    elif kind == "markup":
        value = _MARKUP.match(text, at, at + _LONGEST) if text[start - 1 : start] in ("<", ":") else None
        if value and is_secret(value.group(), under, is_quoted=True):
            yield value.span()
    elif kind == "colon" and name in _HEADERS:
        yield from _header(text, name, start, at)
    elif kind == "cell":
        yield from _value(text, at, NameClass.PLAUSIBLE)
    elif kind == "comma":
        # Names stand side by side in lists, too; only raw headers are pairs of bytes.
        is_raw = text[at : at + 1] in ("b", "B")
        yield from _value(text, at, under if is_raw else NameClass.PLAUSIBLE)
    elif (
        kind == "colon"
        and name == "token"
        and (word := _BARE.match(text, at))
        and is_identifier(word.group())
    ):
        # What a parser calls a token.
        return
    elif kind != "colon" or separator["close"] or name not in _ORDINARY:
        is_query = start > 0 and text[start - 1] in "?&"
        if is_query:
            under = _IN_QUERY.get(name) or (NameClass.PASSWORD if under is NameClass.SECRET else under)
        yield from _value(text, at, under, is_colon=kind == "colon", is_query=is_query)


def _value(
    text: str, at: int, under: NameClass, *, is_colon: bool = False, is_query: bool = False
) -> Iterator[Span]:
    if text[at : at + 1] in _CLOSING:
        yield from _collection(text, at, under)
    if text[at : at + 1] in ("[", "("):
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


def _collection(text: str, at: int, under: NameClass) -> Iterator[Span]:
    """The strings of a list, or the values of a table; a table also holds names and descriptions."""
    is_table = text[at] == "{"
    limit = at + (_LONGEST_BARE if is_table else _LONGEST)
    closing = text.find(_CLOSING[text[at]], at, limit)
    for item in (_MEMBER if is_table else _STRING).finditer(text, at, closing if closing > 0 else limit):
        value = _credential(item["value"])
        if (not is_table or is_random(value)) and is_secret(value, under, is_quoted=True):
            yield item.span("value")


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


def _elsewhere(text: str, start: int, separator: re.Match[str], under: NameClass) -> Iterator[Span]:
    """A value that stands apart from its name: on a later line, or in a list of its own."""
    kind, at = separator.lastgroup, separator.end()
    if kind == "column":
        values = _COLUMNS.match(text, at)
        for item in _COLUMN.finditer(values.group()) if values else ():
            if is_secret(item.group(), under, is_quoted=False):
                yield at + item.start(), at + item.end()
    elif kind == "block":
        line = _LINE.match(text, at)
        if (
            line
            and is_mixed(line["value"])
            and not is_identifier(line["value"])
            and is_secret(line["value"], under, is_quoted=False)
        ):
            yield line.span("value")
    elif text[max(0, start - 6) : start].lstrip("\\;").startswith(("name=", " name=")):
        end = _LINE_END.search(text, at, at + _LONGEST)
        yield at, end.start() if end else min(len(text), at + _LONGEST)


def _in_prose(text: str, start: int, separator: re.Match[str], under: NameClass) -> Iterator[Span]:
    """`the password is X`, `--token X`, `my API key X`: the value must look like one by itself."""
    name = text[start : separator.start()].lower()
    if under is NameClass.PLAUSIBLE and name not in ("key", "keys"):
        return
    at = separator.end()
    at += text[at : at + 1] in ("[", "(")
    head = _OPEN.match(text, at)
    at = head.end() if head else at
    bare = _BARE.match(text, at)
    value = bare.group().rstrip(".,:;?") if bare else ""
    is_stated = bool(separator["verb"]) or ":" in separator.group()
    is_option = text[max(0, start - 1) : start + 1] in ("--", "-") or name.startswith("-")
    if name.lstrip("-") == "secret" and not is_stated and _OBJECT.fullmatch(value):
        # The name of a secret in Kubernetes.
        looks_secret = False
    elif is_option and under is not NameClass.PLAUSIBLE:
        looks_secret = is_mixed(value)
    elif under is NameClass.PASSWORD and (is_stated or any(map(str.isdigit, value))):
        looks_secret = len(value) >= 6 and is_mixed(value)
    else:
        shortest = 16 if under is NameClass.PLAUSIBLE else 8
        looks_secret = len(value) >= shortest and is_random(value) and not is_identifier(value)
    if looks_secret and not _is_other(value) and is_secret(value, NameClass.PASSWORD, is_quoted=False):
        yield at, at + len(value)


def _is_other(value: str) -> bool:
    """Whether a word in prose is a path, an address or a flag."""
    return value.startswith(("-", "http")) or (
        "/" in value and not value.endswith("=") and not is_random(value)
    )
