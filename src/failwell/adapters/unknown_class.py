"""Reads a live exception whose class no table knows, as a row of a log with the same class and the same words is read.

What an installed library raises is about what it was asked to do. What a program's own classes say is the program's business, so they
are read only where the border says that a call was made, and are never repeated for their words.

Much of what libraries raise is not about a call: they merge, schedule and compile. So where nothing shows a call, a failure is
repeated only if it is a rate limit, or a connection or a server by name.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from failwell.adapters.classification import Classification
from failwell.adapters.classify import classify
from failwell.adapters.facts import STRUCTURES, Facts
from failwell.adapters.log_records.reading import is_misuse, read_saved, saved_facts
from failwell.adapters.registry import ANSWERING
from failwell.adapters.sdk_exceptions import gather
from failwell.adapters.traceback_frames import innermost
from failwell.errors.axes import Category
from failwell.errors.facts import Origin
from failwell.errors.foreign_code import module_of
from failwell.errors.foreign_objects import safe_getattrs
from failwell.errors.kind_registry import KINDS
from failwell.errors.lazy_regex import lazy_regex

_NAMES = frozenset({"Exception", "OSError", "RuntimeError", "ValueError"})
"""Classes of Python that libraries raise for anything."""
_UNKNOWN = ("provider.unknown", "internal.unknown")
_MOST_BASES = 4
_STATUSES = ("status_code", "status", "http_status", "response", "http_response", "raw_response")
"""Attributes that show that a number in `code` is a status of HTTP."""
_OF_CALLS = frozenset({"provider.rate_limited", "provider.connection"})
_OF_SERVERS = lazy_regex(r"unavailable|overload|badgateway|internalserver", re.IGNORECASE)
"""What the names of classes say that only a server can be."""


def read_unknown(
    error: BaseException, origin: Origin, by_text: Classification | None, of_library: bool
) -> Classification | None:
    """What the class, the words and the attributes of `error` say, if anything.

    `by_text` is what the facts in its message say, if there are any; `of_library`, whether an installed library made or raised it.
    """
    cls = type(error)
    if cls.__name__ in _NAMES and module_of(cls) == "builtins":
        # Who raised it tells a refusal of a library from a mistake of the interpreter's user.
        facts = gather(error, None, innermost(error).partition(".")[0])
        return _of_plain_row(_row(cls, facts), origin, of_library=of_library)
    module = module_of(cls)
    top = module.partition(".")[0]
    if module == "builtins" or top in ANSWERING:
        return None
    facts = gather(error, None, top)
    has_status = any(safe_getattrs(error, _STATUSES))
    if facts.status is not None and facts.status < 400 and not facts.headers and not has_status:
        # A number in `code` is anything: the exit code of a tool, the status of another protocol.
        facts.status = None
    reading = _read(cls, facts) if by_text is None else by_text
    if reading is None:
        return None
    has_reply = has_status or bool(facts.headers) or isinstance(facts.body, STRUCTURES)
    return _of_class(reading, facts, origin, of_library=of_library, has_reply=has_reply)


def _of_class(
    reading: Classification, facts: Facts, origin: Origin, *, of_library: bool, has_reply: bool
) -> Classification | None:
    """The reading of a class that no table knows, as far as it counts where the failure arose."""
    if of_library and (has_reply or facts.phase is not None):
        return reading
    if origin == "code" and facts.status is None and _blames_input(reading):
        # What a library refuses in the program's own code is nobody's input.
        return None
    first = reading.evidence[0]
    is_of_a_call = (
        origin == "call"
        or reading.kind in _OF_CALLS
        or (first.basis in ("class", "code") and _OF_SERVERS.search(first.saw) is not None)
    )
    if of_library and is_of_a_call and not is_misuse(facts.message):
        return reading
    return _without_repeat(reading)


def _blames_input(reading: Classification) -> bool:
    known = KINDS.get(reading.kind)
    return known is not None and known.category is Category.USER_INPUT


def read_unknown_row(row: Mapping[str, Any], origin: Origin, *, of_library: bool) -> Classification | None:
    """The same for an exception that was printed. `of_library`: whether code of an installed library raised it."""
    name = str(row.get("exception_class") or "")
    top = name.partition(".")[0]
    if name in _NAMES:
        return _of_plain_row(row, origin, of_library=of_library)
    is_own = not of_library or top in sys.stdlib_module_names
    if "." not in name or top in ANSWERING or (is_own and origin != "call"):
        return None
    reading = read_saved(row)
    if reading.kind in _UNKNOWN:
        return None
    return _of_class(reading, saved_facts(row), origin, of_library=not is_own, has_reply=False)


def _of_plain_row(row: Mapping[str, Any], origin: Origin, *, of_library: bool) -> Classification | None:
    if origin != "call" and not (origin == "code" and of_library):
        return None
    reading = read_saved(row)
    if (
        reading.kind in _UNKNOWN
        or reading.rule.startswith("python.")
        # A library refuses what this program gave it: that is a bug, and nobody's input, unless it was a file.
        or (origin == "code" and _blames_input(reading) and row["exception_class"] != "OSError")
    ):
        return None
    return _without_repeat(reading)


def _read(cls: type, facts: Facts) -> Classification | None:
    row = _row(cls, facts)
    if (
        facts.status is not None
        or facts.headers
        or facts.codes
        or facts.phase
        or isinstance(facts.body, STRUCTURES)
    ):
        reading = classify(facts)
        if reading.kind not in _UNKNOWN:
            return reading
    reading = read_saved(row)
    if reading.kind not in _UNKNOWN:
        return reading
    named = (read_saved(_row(above, facts)) for above in _unknown_bases(cls))
    return next((reading for reading in named if reading.kind not in _UNKNOWN), None)


def _row(cls: type, facts: Facts) -> dict[str, Any]:
    module = module_of(cls)
    name = cls.__name__ if module == "builtins" else f"{module}.{cls.__name__}"
    return {"exception_class": name, "message": facts.message, "sdk": facts.sdk, "http_status": facts.status}


def _unknown_bases(cls: type) -> Iterator[type]:
    bases = (
        base for base in cls.__mro__[1:] if module_of(base).partition(".")[0] not in sys.stdlib_module_names
    )
    return islice(bases, _MOST_BASES)


def _without_repeat(reading: Classification) -> Classification:
    return replace(reading, retryable=False)
