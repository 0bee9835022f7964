"""What programs teach failwell: the meaning of a code of their own services."""

import re
from collections.abc import Iterable

from failwell.adapters.codes import is_known_everywhere, said_by_code
from failwell.adapters.rules import Rule
from failwell.fault.registry import kind as registered_kind

_SPELLED = re.compile(r"[a-z0-9_][a-z0-9_.\-]{1,79}")
_registered_codes: dict[str, Rule] = {}


def register_code(code: str, kind: str) -> None:
    """Let `code` in a service's error body mean `kind`, whatever the reply's status says.

    For services of your own, and for a provider's code that has no rule here yet. Register at start-up.

    Raises:
        KindError: nobody registered the kind.
        ValueError: the code has a meaning already, or is not spelled like one.
    """
    name = code.strip().lower()
    registered_kind(kind)
    if not _SPELLED.fullmatch(name):
        raise ValueError(
            f"`{code}` is not spelled like a code; use 2 to 80 letters, digits, `_`, `.` and `-`"
        )
    if is_known_everywhere(name):
        raise ValueError(f"`{code}` has a meaning for every provider; give the service's code another name")
    if name in _registered_codes:
        raise ValueError(
            f"`{code}` is registered already, as `{_registered_codes[name].kind}`; register it once"
        )
    _registered_codes[name] = Rule(f"registered.{name}", kind, "code", name)


def is_known_code(code: object) -> bool:
    """Whether a rule, or a registration, gives `code` a meaning."""
    if type(code) is not str:
        return False
    name = code.strip().lower()
    said = said_by_code(name)
    return name in _registered_codes or said.rule is not None or said.status is not None


def registered_rule(codes: Iterable[str]) -> Rule | None:
    """The rule for the first of `codes` that was registered."""
    return (
        next((_registered_codes[code] for code in codes if code in _registered_codes), None)
        if _registered_codes
        else None
    )
