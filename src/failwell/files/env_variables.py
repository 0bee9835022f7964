"""`${NAME}` and `${NAME:-default}` in texts. The variables come in as an argument; their values stay unquoted."""

import re
from collections.abc import Mapping

from failwell.fault.frozen import frozen

_REFERENCE = re.compile(r"\$(\$\{)|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
DEEPEST = 10
"""How often a value may name a further variable."""
LONGEST = 1 << 20
"""Characters that one text may grow to."""


@frozen
class Expanded:
    """A text with its variables put in."""

    text: str
    is_veiled: bool = False
    """Whether a variable's value is part of it."""
    unset: tuple[str, ...] = ()
    """Variables that have neither a value nor a default."""
    problem: str = ""


def expand(text: str, environ: Mapping[str, str]) -> Expanded:
    """`text` with its variables put in; `$${` is the way to write `${` itself."""
    unset: list[str] = []
    veiled = False

    def value_of(match: re.Match[str]) -> str:
        nonlocal veiled
        escaped, name, default = match.groups()
        if escaped:
            # A mark that cannot come from a YAML text keeps it from being read again.
            return "\0{"
        value = environ.get(name)
        if value is not None:
            veiled = True
            return value.replace("\0", "")
        if default is None:
            unset.append(name)
            return ""
        return default

    for _ in range(DEEPEST):
        text = _REFERENCE.sub(value_of, text)
        if len(text) > LONGEST:
            return Expanded(text="", is_veiled=veiled, problem="grows beyond a mebibyte with its variables")
        if "${" not in text or not _REFERENCE.search(text):
            text = text.replace("\0{", "${")
            return Expanded(text=text, is_veiled=veiled, unset=tuple(dict.fromkeys(unset)))
    return Expanded(
        text="", is_veiled=veiled, problem=f"names variables that name each other more than {DEEPEST} deep"
    )
