"""Names of secrets: `password`, `OPENAI_API_KEY`, `x-amz-security-token`, and what only looks like one.

A name is read word by word from its end, so `max_tokens`, `password_policy` and `sort_key` are no names of secrets.

Whether the text beside the name of a secret is one, or a remark, a placeholder, a path or a piece of code.

What of an environment variable is secret: the password in an address, or all of it by its name.
"""

import re
from enum import Enum
from functools import lru_cache

from failwell.errors.lazy_regex import lazy_regex
from failwell.errors.masking.randomness import is_mixed, is_random

_LONGEST = 100
_PARTS = lazy_regex(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


STEMS = (
    "key", "token", "secret", "pass", "pwd", "auth", "cookie", "signature", "sig=", 'sig"', "sig'", "sig:", "cred",
    "sessionid", "session_id", "session-id", "sessid", "jwt", "dsn", "code=", "code%3", "bindpw", "pw=", "pw:", 'pw"', "pw'", "masterauth", "login=", "mnemonic",
    "saml", "sid=", "sign:", "sas=", "senha", "psw", "kennwort", "contraseña", "пароль", "密码", "パスワード", "비밀번호",
)  # fmt: skip
"""What a text in lower case holds if it holds the name of a secret."""


class NameClass(Enum):
    """How much a name says about the value under it."""

    NONE = 0
    PLAUSIBLE = 1
    """Often a plain value, such as `sort_key`: the value must look random."""
    SECRET = 2
    """A token or a key: the value must not be a plain word."""
    PASSWORD = 3
    """Chosen by a person: any value that is not a remark about the field."""


_PASSWORDS = (
    "password", "passwd", "passphrase", "passcode", "pwd", "passwort", "senha", "secret", "mnemonic", "bindpw",
    "wachtwoord", "clave", "kennwort",
)  # fmt: skip
_LAST_PASSWORDS = frozenset(
    {
        "pass",
        "passe",
        "sshpass",
        "psw",
        "requirepass",
        "masterauth",
        "pw",
        "dbpw",
        "adminpw",
        "rootpw",
        "userpw",
    }
)
_SECRETS = (
    "apikey", "accesskey", "secretkey", "privatekey", "signingkey", "masterkey", "authkey", "accountkey", "authtoken",
    "authorization", "credential", "credentials", "cookie", "cookies", "signature", "sessionid", "sessid", "jwt",
)  # fmt: skip
_LAST_SECRETS = frozenset(
    {"token", "auth", "sig", "dsn", "sas", "otp", "pat", "sid", "cred", "creds"},
)
"""Only as a word of their own."""
_PLAUSIBLE = frozenset({"key", "code", "login", "sign", "hmac"})
_QUALIFIERS = frozenset(
    {
        "old",
        "prod",
        "production",
        "dev",
        "staging",
        "live",
        "confirm",
        "confirmation",
        "repeat",
        "again",
        "backup",
        "v",
    }
)
"""Words after a name that do not change what it names: `password_prod`, `passwordConfirm`, `token_v2`."""
_PLURALS = {
    "keys": "key",
    "tokens": "token",
    "secrets": "secret",
    "passwords": "password",
    "apikeys": "apikey",
}
_KEY_OF = frozenset(
    {
        "access", "account", "admin", "api", "app", "application", "apim", "auth", "bearer", "client", "deploy",
        "encryption", "functions", "integration", "jwt", "license", "master", "private", "secret", "service", "session",
        "shared", "signing", "ssh", "storage", "subscription", "webhook", "write",
    }
)  # fmt: skip
_NO_TOKEN = frozenset(
    {
        "eos", "bos", "pad", "unk", "sep", "cls", "mask", "stop", "special", "image", "next", "unexpected", "expected",
        "invalid", "input", "output", "prompt", "completion", "max", "new", "per", "page", "continuation", "sync", "bad",
    }
)  # fmt: skip
_NO_KEY = frozenset(
    {
        "public", "primary", "foreign", "sort", "partition", "cache", "routing", "idempotency", "row", "object", "group",
        "dedup", "map", "index", "lookup", "unique", "hash", "range", "message", "event", "translation", "i18n", "issue",
    }
)  # fmt: skip


@lru_cache(maxsize=4096)
def class_of(name: str) -> NameClass:
    """What `name` says about the value under it."""
    if len(name) > _LONGEST:
        return NameClass.NONE
    if not name.isascii():
        return NameClass.PASSWORD if name.lower() in STEMS else NameClass.NONE
    words = [part.lower() for part in _PARTS.findall(name)]
    while len(words) > 1 and (words[-1].isdigit() or words[-1] in _QUALIFIERS):
        words.pop()
    if not words:
        return NameClass.NONE
    if words[-2:] == ["key", "base"] or words[-3:] == ["access", "key", "id"]:
        words = ["secret", "key"]
    if words[-2:] == ["session", "id"] or words[-1] == "sessionid":
        return NameClass.SECRET
    if words[-2:] == ["saml", "response"]:
        return NameClass.PLAUSIBLE
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last in _PLURALS:
        single = class_of("_".join([*words[:-1], _PLURALS[last]]))
        return NameClass.PLAUSIBLE if single is not NameClass.NONE else single
    return _class_of_word(last, before)


def _class_of_word(last: str, before: str) -> NameClass:
    if last == "pass" and not before:
        return NameClass.SECRET
    if last.endswith(_PASSWORDS) or last in _LAST_PASSWORDS:
        return NameClass.PASSWORD
    if last == "token" or last.endswith("token"):
        return NameClass.NONE if before in _NO_TOKEN else NameClass.SECRET
    if last == "key":
        if before in _KEY_OF:
            return NameClass.SECRET
        return NameClass.NONE if before in _NO_KEY else NameClass.PLAUSIBLE
    if last in _LAST_SECRETS or last.endswith(_SECRETS):
        return NameClass.SECRET
    return NameClass.PLAUSIBLE if last in _PLAUSIBLE else NameClass.NONE


def is_plural(name: str) -> bool:
    """Whether `name` ends in the plural of a name: `secrets`, `api_keys`."""
    words = _PARTS.findall(name[:_LONGEST])
    return bool(words) and words[-1].lower() in _PLURALS


def names_a_secret(name: str) -> bool:
    """Whether a value under this name must be taken for a secret."""
    return class_of(name) in (NameClass.SECRET, NameClass.PASSWORD)


_LONGEST_values = 128
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
_HOLDERS = lazy_regex(
    r"[*•.…_-]*|x{3,}|[*•]{3,}.*|[<$%{\[].*|\.{2,}.*|.*\.\.\..*|.*\*\*\*.*", re.IGNORECASE | re.DOTALL
)
_CALL = lazy_regex(r"[A-Za-z_][\w.]*(?:\.[A-Za-z_]\w*)*\s?[(\[]")
_DOTTED = lazy_regex(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_YOURS = lazy_regex(
    r"(?:your|my|the|some|insert)[-_ ](?:[a-z]+[-_ ])*(?:key|token|secret|pass(?:word|phrase|wd)?|pwd|credentials?|here|value)",
    re.IGNORECASE,
)
_PATH = lazy_regex(r"(?:~|\.{1,2})?/|[A-Za-z]:[\\/]")
_LONG = lazy_regex(r"[A-Za-z0-9+/_-]{16,}+")
_WORD = lazy_regex(r"[A-Za-z]+")
_NAME = lazy_regex(r"[A-Za-z_.]+")


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
    value = value[:_LONGEST_values].strip()
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
    value = value[:_LONGEST_values].strip()
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


_SHORTEST = 8
_LOGIN = lazy_regex(r"://[^/@\s:]*:([^/@\s]+)@")
_CONNECTION = lazy_regex(r"(?:key|password|pwd|secret|signature|token)=([^;\s]{6,})", re.IGNORECASE)
_PLAIN = lazy_regex(r"[A-Za-z]+|[0-9.,:-]+|[A-Z][A-Z_]+")
_WORDS = lazy_regex(r"[a-z]+(?:[_-][a-z]+)*")


def secrets_in(name: str, value: str) -> list[str]:
    """The secrets that the variable `name` holds."""
    secrets: list[str] = []
    if "://" in value and (login := _LOGIN.search(value)) and not _is_plain(login.group(1)):
        secrets.append(login.group(1))
    if "=" in value and ";" in value:
        secrets += _CONNECTION.findall(value)
    if len(value) >= _SHORTEST:
        # `API_KEYS` holds what `API_KEY` holds, several times.
        under = max(class_of(name), class_of(name.rstrip("sS")), key=lambda kind: kind.value)
        if under is not NameClass.NONE and not _is_path_variables(name, value):
            secrets += [item for item in _items(name, value) if _is_secret(item, under)]
    return secrets


def _items(name: str, value: str) -> list[str]:
    # `API_KEYS=first,second`
    return [value, *value.split(",")] if name.upper().endswith("S") and "," in value else [value]


def _is_secret(value: str, under: NameClass) -> bool:
    if len(value) < _SHORTEST or _is_plain(value):
        return False
    return under is not NameClass.PLAUSIBLE or (is_random(value) and not _WORDS.fullmatch(value))


def _is_plain(value: str) -> bool:
    """Whether a value is a word or a number that ordinary texts hold, too."""
    return bool(_PLAIN.fullmatch(value)) and not is_random(value)


def _is_path_variables(name: str, value: str) -> bool:
    # Some variables say where a key lies. Those that hold the secret itself may begin with a slash too: one
    # in sixty-four base64 texts does.
    says_secret = any(word in name.upper() for word in ("SECRET", "TOKEN", "PASS", "API"))
    return value.startswith(("/", "~", "./")) and (not says_secret or name.upper() in ("PWD", "OLDPWD"))
