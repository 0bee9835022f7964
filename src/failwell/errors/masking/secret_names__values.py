"""Whether the text beside the name of a secret is one, or a remark, a placeholder, a path or a piece of code."""

import re

from failwell.errors.masking.randomness import is_mixed, is_random
from failwell.errors.masking.secret_names import NameClass, names_a_secret

_LONGEST = 128
"""Characters by which a value is judged."""
_SETTINGS = frozenset(
    {
        "", "none", "null", "nil", "undefined", "true", "false", "yes", "no", "on", "off", "required", "missing",
        "invalid", "expired", "empty", "optional", "unset", "default", "disabled", "enabled", "unknown", "mismatch",
        "rejected", "denied", "revoked", "forbidden", "failed", "failure", "success", "ok", "valid", "wrong", "hidden",
        "masked", "redacted", "filtered", "removed", "string", "str", "bytes", "int", "bool", "float", "any", "object", "secretstr",
        "secretbytes", "text", "type", "value", "password", "passwd", "token", "secret", "key", "bearer", "basic",
        "digest", "oauth", "oauth2", "jwt", "apikey", "example", "changeme", "placeholder", "todo", "see", "must",
        "cannot", "not", "is", "was", "has", "should", "may", "can", "will", "the", "a", "an", "your", "my", "this",
        "ensure", "enter", "confirm", "field", "header", "change", "unsupported", "unauthorized", "command", "files",
        "obligatoire", "obligatoria", "obrigatória", "erforderlich", "verplicht", "incorrect", "malformed", "closed",
        "done", "sigterm", "sigkill", "sigint", "sigsegv", "sigabrt", "sighup", "variable", "env", "file", "vault",
    }
)  # fmt: skip
"""What is written in place of a secret."""
_REMARKS = frozenset(
    {
        "must", "be", "is", "are", "was", "not", "no", "field", "required", "may", "cannot", "could", "should", "least",
        "most", "characters", "blank", "missing", "invalid", "expired", "too", "did", "match", "does", "expected",
        "allowed", "set", "found", "given", "provided", "value", "type", "has", "have", "contain",
    }
)  # fmt: skip
"""Words of sentences about a field."""
_HOLDERS = re.compile(
    r"[*•.…_-]*|x{3,}|[*•]{3,}.*|[<$%{\[].*|\.{2,}.*|.*\.\.\..*|.*\*\*\*.*", re.IGNORECASE | re.DOTALL
)
_CALL = re.compile(r"[A-Za-z_][\w.]*(?:\.[A-Za-z_]\w*)*\s?[(\[]")
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_YOURS = re.compile(
    r"(?:your|my|the|some|insert)[-_ ](?:[a-z]+[-_ ])*(?:key|token|secret|pass(?:word|phrase|wd)?|pwd|credentials?|here|value)",
    re.IGNORECASE,
)
_PATH = re.compile(r"(?:~|\.{1,2})?/|[A-Za-z]:[\\/]")
_LONG = re.compile(r"[A-Za-z0-9+/_-]{16,}+")
_WORD = re.compile(r"[A-Za-z]+")
_NAME = re.compile(r"[A-Za-z_.]+")


def is_secret(value: str, under: NameClass, *, is_quoted: bool, goes_on: bool = False) -> bool:
    """Whether `value`, which stands under a name of that class, is to be masked.

    Args:
        value: The text, without its quotes.
        under: The class of its name.
        is_quoted: Whether it stands in quotes.
        goes_on: Whether more words follow it on the line.
    """
    if stands_in_for_a_secret(value, is_quoted=is_quoted):
        return False
    value = value[:_LONGEST].strip()
    if under is NameClass.PLAUSIBLE:
        return len(value) >= 12 and is_random(value) and not _is_uuid(value)
    if value.isdecimal():
        return len(value) >= (4 if under is NameClass.PASSWORD else 6)
    if not value.isascii() and not any(character.isascii() and character.isalnum() for character in value):
        # A word of another script after a colon is a remark far more often than a password.
        return is_quoted and under is NameClass.PASSWORD and " " not in value
    if goes_on and _WORD.fullmatch(value.rstrip(".,;:!?")) and not is_random(value):
        return False
    if under is NameClass.PASSWORD:
        return is_quoted or len(value) >= 3
    if _NAME.fullmatch(value) and not is_random(value) and (not is_quoted or names_a_secret(value)):
        return False
    return len(value) >= 6 and (is_mixed(value) or _has_signs(value) or is_random(value))


def stands_in_for_a_secret(value: str, *, is_quoted: bool = True) -> bool:
    """Whether `value` is what people write in place of a secret: a remark, a placeholder, a path, a name."""
    value = value[:_LONGEST].strip()
    plain = value.rstrip(".,;:!?)").lower()
    if plain in _SETTINGS or not any(map(str.isalnum, value)):
        return True
    if _HOLDERS.fullmatch(value):
        # A key in braces is no placeholder.
        return not any(map(is_random, _LONG.findall(value)))
    return _is_written_elsewhere(value, is_quoted) or (" " in value and _is_remark(value))


def _is_written_elsewhere(value: str, is_quoted: bool) -> bool:
    """Whether the value is a path, an address, or code that names where the secret comes from."""
    if _PATH.match(value) and _is_path(value):
        return True
    if value.startswith(("http://", "https://")) or (
        _YOURS.fullmatch(value) and not any(map(str.isdigit, value))
    ):
        return True
    if is_quoted:
        return value.isascii() and names_a_secret(value) and value.upper() == value
    if _CALL.match(value) or (
        names_a_secret(value) and "-" not in value and not any(map(str.isdigit, value))
    ):
        return True
    return bool(_DOTTED.fullmatch(value)) and not is_random(value)


def _is_path(value: str) -> bool:
    # One base64 text in sixty-four begins with a slash as well.
    parts = [part for part in re.split(r"[\\/]", value) if part]
    return not any(is_random(part) and len(part) >= 16 for part in parts) and not value.endswith("=")


def _is_remark(value: str) -> bool:
    words = [word.strip(".,;:!?()'\"").lower() for word in value.split()]
    return any(word in _REMARKS for word in words)


def _is_uuid(value: str) -> bool:
    return len(value) == 36 and value.count("-") == 4


def _has_signs(value: str) -> bool:
    return any(not (character.isalnum() or character in "_-. ,:()'") for character in value)
