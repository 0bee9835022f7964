"""What secrets look like: the shapes of well-known tokens, names of secrets, URLs and headers.

Loaded when the first text comes along that one of these nets could catch something in. Repetition is
possessive and never nested, so the cost of each net is linear in the text.
"""

import re

from failwell.report.redact import MARK

_NAMES_OF_KEYS = (
    r"(?:x[-_])?(?:goog[-_])?api[-_ ]?key|apikey|(?:shared[-_ ]?)?access[-_ ]?key(?:[-_]?id)?"
    r"|secret[-_]?access[-_]?key"
    r"|(?:account|auth|client|encryption|master|private|secret|service|signing|storage|subscription)[-_ ]?key"
    r"|(?:access|auth|refresh|id|session|security|bearer|csrf|xsrf)[-_]?token|token|client[-_]?secret|secret"
    r"|pass(?:word|wd|phrase|code)|pwd|authorization|proxy[-_]authorization|auth|(?:set[-_])?cookies?"
    r"|session[-_]?(?:id|key)|sig|signature|credentials?|jwt|dsn"
    r"|x[-_]amz[-_](?:signature|security[-_]token|credential)"
)
_SECRET_KEY = re.compile(rf"(?:.*[-_. ])?(?:{_NAMES_OF_KEYS})", re.IGNORECASE)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ESCAPED = r"(?<=\\[abfnrtv])"
"""Right after an escape such as `\\n` in a printed text: there a word begins, although a letter stands before it."""
# Repetitions below are possessive and have no upper bound: a bound would let the rest of a long secret
# through, and the text was cut to a window before.
_PEM = re.compile(r"-----BEGIN[ A-Z0-9]{0,40}PRIVATE KEY-----[^-]*+(?:-----END[ A-Z0-9]{0,40}KEY-----)?")
_USERINFO = re.compile(
    # A password may hold an @, and, written by hand, a slash; then what looks like a port is none. A user
    # without a password is taken for a token if it is long and has a digit.
    r"(?<=://)(?:[^\s/@:?#\"'<>]*+:(?:[^\s/?#\"'<>]{1,512}|(?!\d{1,5}[/?#])[^\s@\"'<>]{1,512})"
    r"|(?=[A-Za-z_-]*+[0-9])[A-Za-z0-9_-]{16,}+)(?=@)"
)
_TOKEN = re.compile(
    rf"(?:(?<![A-Za-z0-9_-])|{_ESCAPED})(?:"
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
    rf"(?:(?<![A-Za-z])|{_ESCAPED})"
    r"(?i:bearer|(?:basic|digest)(?=[ \t]{1,4}\S*(?-i:[0-9=+/]|[a-z][A-Z])))[ \t]{1,4}"
    r"(?P<value>[A-Za-z0-9._~+/=-]{8,}+)"
)
_PAIR = re.compile(
    rf"(?:(?<![A-Za-z0-9])|(?<=[a-z0-9])(?=[A-Z])|{_ESCAPED})(?i:{_NAMES_OF_KEYS})"
    # A raw header is a pair of bytes: (b'x-api-key', b'...'). Quotes in quotes are escaped, once per layer.
    r"(?:(?:\\*+[\"']){0,2}[ \t]{0,4}(?:=>|[:=])|\\*+[\"'],(?=[ \t]{0,4}b\\*+[\"']))[ \t]{0,4}(?P<value>"
    r"[bB]?\\++[\"'][^\"'\r\n]++[\"']?"
    r"|[bB]?\"(?:[^\"\\\r\n]|\\.)++\"?|[bB]?'(?:[^'\\\r\n]|\\.)++'?"
    r"|[^\s\"'&,;)}\]<>]{3,}+)"
)
_QUERY = re.compile(
    r"(?<=[?&])(?i:key|k|code|sig|x-amz-[a-z-]{1,40}|[a-z_.-]{0,20}(?:token|auth|password|secret|key))="
    r"(?P<value>[^\s&#\"']++)"
)
_HEADER = re.compile(
    rf"(?i:(?:(?<![a-z0-9-])|{_ESCAPED})"
    r"(?:proxy-)?(?:authorization|set-cookie|cookie)(?:\\*+[\"'])?[ \t]{0,4}:[ \t]{0,4}(?:b(?=[\"']))?)"
)
_LINE_END = re.compile(r"[\r\n]|\\[rn]")
_STEMS = ("key", "token", "secret", "pass", "pwd", "auth", "cookie", "sig", "cred", "session", "jwt", "dsn")
_LONG_WORD = re.compile(r"[A-Za-z0-9_.-]{13}")


def names_a_secret(key: str) -> bool:
    """Whether a value under this key must be taken for a secret."""
    return len(key) <= 100 and _SECRET_KEY.fullmatch(_HUMP.sub("_", key)) is not None


def mask_shapes(text: str) -> str:
    """`text` with everything masked that looks like a secret or stands under the name of a secret."""
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
    # A scheme before its name: `Authorization: Basic dTpw` as a plain pair would end behind `Basic`.
    if "bearer" in low or "basic" in low or "digest" in low:
        text = _SCHEME.sub(_mask_value, text)
    if ("=" in text or ":" in text or "," in text) and any(stem in low for stem in _STEMS):
        if "cookie" in low or "authorization" in low:
            text = _mask_headers(text)
        text = _PAIR.sub(_mask_value, text)
    return text


def _mask_value(match: re.Match[str]) -> str:
    whole, value = match.group(0), match.group("value")
    if MARK[:-1] in value:
        return whole
    return whole[: len(whole) - len(value)] + MARK


def _mask_headers(text: str) -> str:
    pieces: list[str] = []
    at = 0
    while (head := _HEADER.search(text, at)) is not None:
        start = head.end()
        quote = text[start : start + 1]
        if quote in ("'", '"'):
            start += 1
        else:
            # The whole line may stand in quotes, as in `curl -H 'Cookie: a="b"'`, and hold some itself.
            quote = text[head.start() - 1 : head.start()] if head.start() else ""
        close = text.find(quote, start) if quote in ("'", '"') else -1
        end = close if close >= 0 else len(text)
        line = _LINE_END.search(text, start, end)
        pieces += [text[at:start], MARK]
        at = end if line is None else line.start()
    return "".join([*pieces, text[at:]])
