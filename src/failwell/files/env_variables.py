"""Expands `${NAME}` and `${NAME:-default}` in texts. Messages never quote the values."""

import re
from collections.abc import Mapping

from failwell.errors.frozen import frozen

_REFERENCE = re.compile(r"\$(\$\{)|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
MAX_DEPTH = 10
"""How deep values may refer to further variables."""
LONGEST = 1 << 20
"""Characters of an expanded text."""


@frozen
class Expanded:
    """A text after expansion."""

    text: str
    from_env: bool = False
    """Whether it contains the value of a variable."""
    unset: tuple[str, ...] = ()
    """Variables that have neither a value nor a default."""
    problem: str = ""


def expand(text: str, environ: Mapping[str, str]) -> Expanded:
    """The `text` of a YAML value with its variables expanded; `$${` is an escaped `${`."""
    unset: list[str] = []
    from_env = False

    def value_of(match: re.Match[str]) -> str:
        nonlocal from_env
        escaped, name, default = match.groups()
        if escaped:
            # A placeholder that no YAML text can contain, so that it is not expanded in the next round.
            return "\0{"
        value = environ.get(name)
        if value is not None:
            from_env = True
            return value.replace("\0", "")
        if default is None:
            unset.append(name)
            return ""
        return default

    for _ in range(MAX_DEPTH):
        text = _REFERENCE.sub(value_of, text)
        if len(text) > LONGEST:
            return Expanded(text="", from_env=from_env, problem="grows beyond a mebibyte with its variables")
        if "${" not in text or not _REFERENCE.search(text):
            text = text.replace("\0{", "${")
            return Expanded(text=text, from_env=from_env, unset=tuple(dict.fromkeys(unset)))
    return Expanded(
        text="", from_env=from_env, problem=f"names variables that name each other more than {MAX_DEPTH} deep"
    )
