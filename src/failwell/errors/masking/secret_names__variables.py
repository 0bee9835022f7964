"""What of an environment variable is secret: the password in an address, or all of it by its name.

The name alone never makes a word a secret: `SORT_KEY=ascending` and `DB_PASSWORD=postgres` mask nothing, because
the words they hold stand in a thousand messages. A value that is a plain word can be registered by hand.
"""

import re

from failwell.errors.masking.randomness import is_random
from failwell.errors.masking.secret_names import NameClass, class_of

_SHORTEST = 8
_LOGIN = re.compile(r"://[^/@\s:]*:([^/@\s]+)@")
_CONNECTION = re.compile(r"(?:key|password|pwd|secret|signature|token)=([^;\s]{6,})", re.IGNORECASE)
_PLAIN = re.compile(r"[A-Za-z]+|[0-9.,:-]+|[A-Z][A-Z_]+")
_WORDS = re.compile(r"[a-z]+(?:[_-][a-z]+)*")


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
        if under is not NameClass.NONE and not _is_path(name, value):
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


def _is_path(name: str, value: str) -> bool:
    # Some variables say where a key lies. Those that hold the secret itself may begin with a slash too: one
    # in sixty-four base64 texts does.
    says_secret = any(word in name.upper() for word in ("SECRET", "TOKEN", "PASS", "API"))
    return value.startswith(("/", "~", "./")) and (not says_secret or name.upper() in ("PWD", "OLDPWD"))
