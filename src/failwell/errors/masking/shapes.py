"""What secrets look like: tokens, private keys, addresses with a password, and values under the name of a secret.

Loaded when the first text comes along that could hold something of the kind. Repetition in the patterns is
possessive and never nested, so the cost of each is linear in the text.

Places in a text that are to be masked.
"""

import re
from collections.abc import Iterable, Iterator

from failwell.errors.lazy_regex import lazy_regex
from failwell.errors.masking.randomness import is_identifier, is_mixed, is_random
from failwell.errors.masking.secret_names import STEMS, NameClass, is_secret

Span = tuple[int, int]


def replaced(text: str, spans: Iterable[Span], mark: str) -> str:
    """`text` with `mark` in place of every span; spans that overlap become one."""
    pieces: list[str] = []
    at = 0
    for start, end in merged(spans):
        pieces += (text[at:start], mark)
        at = end
    return "".join([*pieces, text[at:]])


def merged(spans: Iterable[Span]) -> list[Span]:
    """The spans to mask in order, those that overlap joined."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


_PEM = lazy_regex(
    r"-----BEGIN[ A-Z0-9]{0,40}PRIVATE KEY(?: BLOCK)?-----(?![\"'`])(?:[^-]++|-(?!----))*+(?:-----END[ A-Z0-9]{0,60}-----)?"
)
_PUTTY = lazy_regex(r"(?<=Private-Lines: )[0-9]+\s(?P<value>[A-Za-z0-9+/=\s]++)")
_USERINFO = lazy_regex(
    # A password may hold an @, and, written by hand, a slash; then what looks like a port is none. A user
    # without a password is taken for a token if it is long and has a digit.
    r"(?<=://)(?:(?P<user>[^\s/@:?#\"'<>]*+):(?P<value>[^\s/?#\"'<>]{1,512}|(?!\d{1,5}[/?#])[^\s@\"'<>]{1,512})"
    r"|(?=[A-Za-z_-]*+[0-9])[A-Za-z0-9_-]{16,}+)(?=@)"
)
_SCHEMES = ("bearer", "basic", "digest", "token", "apikey", "ssws")
_CREDENTIAL = lazy_regex(r"(?:(?P<colon>:)?[ \t]{1,4}|%20)(?P<value>[A-Za-z0-9._~+/=-]{8,}+)")
_FLAG = lazy_regex(
    r"(?<!\S)(?:(?:-u|--user|--auth)[ =][^\s:\"']{1,80}:|(?:-p|-w)(?P<space>[ ]?))(?P<value>[^\s:\"']{6,}+)"
)
_CALL = lazy_regex(
    r"(?:[Cc]lient|login|authenticate|connect|configure|Auth|Credentials?|OpenAI|Anthropic)\((?P<arguments>[^()\n]{8,400})"
)
_ARGUMENT = lazy_regex(r"(?<![=:])[\"'](?P<value>[^\"'\s]{8,})[\"']")
_IDENTIFIED = lazy_regex(
    r"identified[ ](?:with[ ]\S{1,60}[ ])?(?:by|as)[ ](?:password[ ])?[\"'](?P<value>[^\"'\n]{1,512})",
    re.IGNORECASE,
)
_MEMBER_OF_KEY = lazy_regex(
    r"(?<=[\"'])(?:d|k|p|q|dp|dq|qi)\\*+[\"']\s{0,4}:\s{0,4}\\*+[\"'](?P<value>[A-Za-z0-9_=-]{16,}+)"
)
"""The private members of a JSON web key."""
_COOKIE = lazy_regex(r"<Cookie[ ][^\s=<>]{1,80}=(?P<value>[^\s<>]{1,4096})(?=[ ]for[ ])")
"""The repr of a cookie."""
_RECEIVED = lazy_regex(r"Received=(?P<value>[^\s,]{6,200})(?=,[ ]expected[ ]to[ ]start)")
"""What LiteLLM says about a key of another vendor."""
_ANNOUNCED = (
    ("private-lines: ", _PUTTY),
    ("identified ", _IDENTIFIED),
    ("<cookie ", _COOKIE),
    ("received=", _RECEIVED),
    ("kty", _MEMBER_OF_KEY),
)
"""Patterns of values, each with a text in lower case that stands near them."""
_LOGIN = lazy_regex(
    r"(?:(?<=thin:)|(?<=sqlplus ))[^\s/@:]{1,60}/(?P<oracle>[^\s@\"']{1,200})(?=@)"
    # Mail has no port; only the users that stand for a token need none.
    r"|(?<![\w/@.:%+-])(?!(?:mailto|xmpp|sips?|acct|stun|turn):)(?:[A-Za-z][\w.-]{0,60}:(?P<value>[^\s/@:\"'<>]{8,200})"
    r"(?=@[A-Za-z][\w.-]{0,120}:[0-9]{2,5}(?![0-9A-Za-z]))"
    r"|(?:oauth2|x-access-token|x-token-auth|gitlab-ci-token|__token__|git|token):(?P<token>[^\s/@:\"'<>]{8,200})(?=@[A-Za-z]))"
)
"""A user and a password before a host, in an address without `//`."""
_WORD = lazy_regex(r"[A-Za-z0-9_-]{12,}+")
_PLACEHOLDERS = frozenset({"password", "pass", "passwd", "pwd", "secret", "token"})
_LOWER = {ord(letter): letter.lower() for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


def mask_shapes(text: str, mark: str) -> str:
    """`text` with everything masked that looks like a secret or stands under the name of a secret."""
    # Each net costs its pattern's walk over the text, so each is cast only where a plain search for
    # a letter or a word says that it could catch something.
    if "-----BEGIN" in text:
        text = _PEM.sub(mark, text)
    if "://" in text and "@" in text:
        text = _USERINFO.sub(lambda match: match.group() if _is_placeholder(match) else mark, text)
    if _may_hold_a_token(text):
        # Reading the shapes of all vendors takes longer than describing a thousand failures.
        from failwell.errors.masking.tokens import mask_tokens

        text = mask_tokens(text, mark)
    low = text.lower()
    if len(low) != len(text):
        low = text.translate(_LOWER)
    spans = list(_unnamed(text, low))
    for stem in STEMS:
        if stem in low:
            from failwell.errors.masking.named_in_text import named_spans

            spans += named_spans(text, low)
            break
    return replaced(text, spans, mark) if spans else text


def _may_hold_a_token(text: str) -> bool:
    """Whether a word of `text` is no name: every token has a long piece of letters and digits, or is random."""
    if "sk-" in text or "sk_" in text or text.count("$") > 1:
        # The prefix of keys that people imitate in examples, or the hash of a password, which slashes cut.
        return True
    for word in _WORD.findall(text):
        for piece in word.replace("-", "_").split("_"):
            if len(piece) >= 10 and (len(piece) >= 20 or not piece.isalpha()):
                return True
        if is_random(word):
            return True
    return False


def _unnamed(text: str, low: str) -> Iterator[Span]:
    """Secrets that something other than a name announces."""
    for sign, pattern in _ANNOUNCED:
        if sign in low:
            yield from (match.span("value") for match in pattern.finditer(text))
    yield from _after_schemes(text, low)
    if '("' in text or "('" in text:
        # Clients are given their key as an argument without a name.
        for call in _CALL.finditer(text):
            for match in _ARGUMENT.finditer(text, *call.span("arguments")):
                if is_random(match["value"]) and is_secret(match["value"], NameClass.SECRET, is_quoted=True):
                    yield match.span("value")
    if "@" in text:
        for match in _LOGIN.finditer(text):
            if match["oracle"] or is_random(match["value"] or match["token"]):
                yield match.span(match.lastgroup or 0)
    if "-" in text:
        yield from _after_flags(text)


def _after_schemes(text: str, low: str) -> Iterator[Span]:
    for scheme in _SCHEMES:
        at = low.find(scheme)
        while at >= 0:
            end = at + len(scheme)
            match = (
                None if low[at - 1 : at].isalpha() and low[at - 1] != "n" else _CREDENTIAL.match(text, end)
            )
            # Any other scheme before a colon is the name of a field.
            if (
                match
                and (scheme == "bearer" or not match["colon"])
                and _is_credential(scheme, match["value"])
            ):
                yield match.span("value")
            at = low.find(scheme, end)


def _after_flags(text: str) -> Iterator[Span]:
    for match in _FLAG.finditer(text):
        # After a space, most programs read the name of a database, a port or a path.
        looks_secret = is_random if match["space"] else is_mixed
        if looks_secret(match["value"]) and is_secret(match["value"], NameClass.SECRET, is_quoted=False):
            yield match.span("value")


def _is_credential(scheme: str, value: str) -> bool:
    looks_so = (
        is_mixed(value)
        if scheme == "bearer"
        else value.endswith("=") or (is_random(value) and not is_identifier(value))
    )
    return looks_so and is_secret(value, NameClass.SECRET, is_quoted=False)


def _is_placeholder(match: re.Match[str]) -> bool:
    """Whether an address shows where a password goes, and holds none."""
    return (match["value"] or "").lower() in _PLACEHOLDERS
