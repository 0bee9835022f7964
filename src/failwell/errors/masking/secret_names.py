"""Names of secrets: `password`, `OPENAI_API_KEY`, `x-amz-security-token`, and what only looks like one.

A name is read word by word from its end, so `max_tokens`, `password_policy` and `sort_key` are no names of secrets.
"""

import re
from enum import Enum
from functools import lru_cache

_LONGEST = 100
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


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
