"""Which adapter reads which exception: looked up by name, never by importing a vendor.

An exception class is looked up as (top-level module, class name) along its MRO, nearest class
first. The file with a vendor's rules is loaded when the first exception of that vendor is met.
Results are kept per class, so the walk is paid once.
"""

import sys
from functools import lru_cache
from importlib import import_module

from failwell.adapters.classification import Adapter, Classification
from failwell.adapters.registrations import (
    ExceptionAdapter,
    load_adapters,
    registered_exception,
    when_registered,
)
from failwell.adapters.text.message import read_message, read_reply
from failwell.adapters.traceback_frames import read_placed
from failwell.errors.known_libraries import HOMES

Entry = Classification | Adapter
Table = dict[str, Entry]


ANSWERING = frozenset(
    {
        "bottle", "django", "failwell", "falcon", "fastapi", "flask", "litestar", "quart", "rest_framework", "sanic",
        "starlette", "tornado", "werkzeug",
    }
)  # fmt: skip
"""Libraries whose exceptions hold the reply that a program is about to send, and not one that it got."""
_MOST_TYPES = 4096
_PLAIN = {"python.RuntimeError": False, "python.ValueError": True}
"""Rows for classes that programs raise for anything: a fact in the message says more. `True`: only a reply's facts do."""
_tables: dict[str, dict[str, Table]] = {}
_entries: dict[type, tuple[tuple[Entry, bool], ...]] = {}


def find(module: str, name: str) -> Entry | None:
    """The entry for a class that is known by its names alone, as in a pasted traceback."""
    return registered(module, name) or _own_entry(module, name)


def registered(module: str, name: str, qualname: str | None = None) -> ExceptionAdapter | None:
    """What a program, or the entry point of an installed package, registered for a class."""
    top = module.partition(".")[0]
    if top not in sys.stdlib_module_names and top != "failwell":
        load_adapters(top)
    return registered_exception(module, name, qualname)


def _own_entry(module: str, name: str) -> Entry | None:
    top = module.partition(".")[0]
    home = HOMES.get(top)
    return None if home is None else _table(home, top).get(name)


def entries(cls: type) -> tuple[tuple[Entry, bool], ...]:
    """The entries for exceptions of `cls`, nearest class first, each with whether it is for `cls` itself.

    Of several bases, those come last that say less: `class Missing(AttributeError, KeyError)` is a `KeyError`.
    """
    known = _entries.get(cls)
    if known is None:
        pairs = [(above, entry) for above in cls.__mro__ if (entry := _entry_of(above)) is not None]
        pairs.sort(key=lambda pair: _says_less(cls, *pair))
        known = tuple((entry, above is cls) for above, entry in pairs)
        if len(_entries) >= _MOST_TYPES:
            # Programs that make exception classes on the fly must not make this grow for ever.
            _entries.clear()
        _entries[cls] = known
    return known


def _says_less(cls: type, above: type, entry: Entry) -> bool:
    """Whether a base of Python's is a program error, which any other base refines, or a time-out of another system error."""
    if above is cls or above.__module__ != "builtins":
        return False
    if above is TimeoutError:
        nearest = next(
            base for base in cls.__mro__ if base.__module__ == "builtins" and issubclass(base, OSError)
        )
        return nearest is not TimeoutError
    # An `ImportError` is a bug too, unless its message speaks of a library of the system.
    return above is ImportError or (isinstance(entry, Classification) and entry.kind == "internal.bug")


def _entry_of(cls: type) -> Entry | None:
    module, name = cls.__module__, cls.__name__
    return registered(module, name, cls.__qualname__) or _own_entry(module, name)


when_registered(_entries.clear)


def read(error: BaseException) -> Classification | None:
    """The first reading of an adapter, or `None` if no class of the exception is known."""
    if type(error).__module__ == "builtins":
        placed = read_placed(error)
        if placed is not None:
            return placed
    known = entries(type(error))
    if is_unknown(type(error)) and not any(type(entry) is ExceptionAdapter for entry, _ in known):
        # Below such a class is one of Python's at most, and a reply says more than that.
        reading = read_reply(error)
        if reading is not None:
            return reading
    for entry, exact in known:
        if isinstance(entry, Classification):
            if exact or not entry.exact:
                reply_only = _PLAIN.get(entry.rule)
                printed = None if reply_only is None else read_message(error, reply_only=reply_only)
                return printed or entry
        else:
            reading = entry(error)
            if reading is not None:
                return reading
    return read_message(error)


@lru_cache(maxsize=_MOST_TYPES)
def is_unknown(cls: type) -> bool:
    """Whether a class and its bases belong to no library that is known here, nor to one that answers requests."""
    tops = {above.__module__.partition(".")[0] for above in cls.__mro__} - {"builtins"}
    return bool(tops) and tops.isdisjoint(HOMES) and tops.isdisjoint(ANSWERING)


def kind_alone(error: BaseException) -> str | None:
    """The kind of `error` if it is known without a complete reading, else `None`."""
    known = entries(type(error))
    quick = getattr(known[0][0], "kind_of", None) if known else None
    return None if quick is None else quick(error)


def _table(home: str, top: str) -> Table:
    tables = _tables.get(home)
    if tables is None:
        tables = import_module(f"failwell.adapters.vendors.{home}").TABLES
        _tables[home] = tables
    return tables.get(top, {})
