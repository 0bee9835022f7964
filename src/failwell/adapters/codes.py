"""Codes that somebody taught failwell: what a service of one's own says in its error bodies.

They are asked before every built-in rule, so they can only be codes that no built-in rule knows.
"""

import re
from collections.abc import Iterable

from failwell.adapters.rules import CODES, IMPLIED_STATUS, Rule
from failwell.fault.registry import kind as registered_kind

_SPELLED = re.compile(r"[a-z0-9_][a-z0-9_.\-]{1,79}")
_RESERVED = frozenset(IMPLIED_STATUS).union(*(rule.codes for rule in CODES))
_taught: dict[str, Rule] = {}


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
    if name in _RESERVED:
        raise ValueError(f"`{code}` has a meaning for every provider; give the service's code another name")
    if name in _taught:
        raise ValueError(f"`{code}` is registered already, as `{_taught[name].kind}`; register it once")
    _taught[name] = Rule(f"registered.{name}", kind, "code", codes=frozenset({name}))


def taught(codes: Iterable[str]) -> Rule | None:
    """The rule for the first of `codes` that somebody registered."""
    return next((_taught[code] for code in codes if code in _taught), None) if _taught else None
