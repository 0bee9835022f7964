"""Whose code runs when an object is printed or walked: Python's, that of a library that is known here, or anybody's.

How long a function runs cannot be limited from outside. So a class is looked at before one of its methods is called:
who wrote the method, and whether a subclass of an unknown author puts code of its own under it. Classes are read by the
methods of `type` itself, so that no metaclass is asked.
"""

from collections import ChainMap, UserDict
from functools import lru_cache
from gc import get_referents
from sys import modules, stdlib_module_names
from types import FunctionType, GetSetDescriptorType, MappingProxyType, MemberDescriptorType, ModuleType
from typing import Any, cast

from failwell.errors.known_libraries import HOMES
from failwell.errors.lazy_regex import lazy_regex

_mro: Any = type.__dict__["__mro__"].__get__
members_of: Any = type.__dict__["__dict__"].__get__
"""What a class itself defines, read without calling code of its metaclass."""
_module: Any = type.__dict__["__module__"].__get__
_MOST_TYPES = 4096

_BESIDE = frozenset(
    {
        "anyio", "attr", "bottle", "dateutil", "django", "exceptiongroup", "failwell", "falcon", "flask", "frozenlist", "h11",
        "h2", "httpx_sse", "litestar", "multidict", "proto", "pytz", "quart", "rest_framework", "sanic", "sniffio",
        "starlette", "tornado", "trio", "typing_extensions", "tzlocal", "werkzeug", "yarl",
    }
)  # fmt: skip
"""Libraries whose headers, addresses and containers are held by exceptions of those that have rules."""
_AMBIGUOUS = frozenset({"agents"})
"""Programs call packages of their own so, too."""
_READING = ("items", "keys", "values", "get", "__iter__", "__getitem__", "__len__", "__contains__")
_NOT_CALLED = frozenset(
    {"__init__", "__new__", "__init_subclass__", "__class_getitem__", "__reduce__", "__weakref__", "__dict__"}
)
"""Methods that nothing calls when an object is printed."""
_PACKAGES = lazy_regex(r"[/\\](?:site|dist)-packages[/\\]")
_STORING = (MemberDescriptorType, GetSetDescriptorType)


def is_known(cls: type) -> bool:
    """Whether a class belongs to Python or to a library that is known here."""
    return _is_known_name(module_of(cls))


def module_of(cls: type) -> str:
    """The module of a class, read without calling code of its metaclass; empty if it has none."""
    try:
        module = _module(cls)
    except AttributeError:
        # The class statement ran where there was no `__name__`.
        return ""
    return module if type(module) is str else ""


def is_installed(module: str) -> bool:
    """Whether a module that is loaded was installed, and is not the program's own."""
    loaded = modules.get(module)
    # Not asked for: a module may have a `__getattr__` of its own.
    file = vars(loaded).get("__file__") if type(loaded) is ModuleType else None
    return type(file) is str and is_installed_file(file)


def is_installed_file(path: str) -> bool:
    """Whether a file of source belongs to an installed package."""
    return _PACKAGES.search(path) is not None


def is_pythons(cls: type) -> bool:
    """Whether a class that is known belongs to Python."""
    return _module(cls).partition(".")[0] in stdlib_module_names


@lru_cache(maxsize=_MOST_TYPES)
def _is_known_name(module: str) -> bool:
    top = module.partition(".")[0]
    return top in stdlib_module_names or is_known_library(top)


def is_known_library(top: str) -> bool:
    """Whether a top-level module belongs to a library that is known here."""
    return top in _BESIDE or (top in HOMES and top not in _AMBIGUOUS)


def definer(cls: type, name: str) -> type | None:
    """The class along the MRO that defines `name`."""
    return next((above for above in _mro(cls) if name in members_of(above)), None)


def runs_known_code(cls: type, *names: str) -> bool:
    """Whether all of these methods of a class are written by Python or by a library that is known here."""
    return all(_is_known_method(cls, name) for name in names)


def _is_known_method(cls: type, name: str) -> bool:
    author = definer(cls, name)
    if author is None:
        return True
    method: object = members_of(author)[name]
    # Somebody may have put a function of his own into the class of a library.
    return is_known(author) and (
        type(method) is not FunctionType or _is_known_name(str(method.__globals__.get("__name__")))
    )


def adds_no_code(cls: type) -> bool:
    """Whether unknown authors of a class and its bases define nothing that a method of a known base may call."""
    return all(is_known(above) or not any(map(_is_code, *_named(above))) for above in _mro(cls))


def _named(cls: type) -> tuple[list[str], list[object]]:
    members = members_of(cls)
    return list(members), list(members.values())


def _is_code(name: str, value: object) -> bool:
    kind = type(value)
    return (
        name not in _NOT_CALLED
        and not any(kind is each for each in _STORING)
        and definer(kind, "__get__") is not None
    )


def has_ordinary_class(value: object) -> bool:
    """Whether the class of a value can be a key: its metaclass is Python's or a known library's."""
    meta = type(type(value))
    return meta is type or (type(meta) is type and is_known(meta))


def is_readable(value: object) -> bool:
    """Whether the items of a mapping can be read without running code of an unknown author."""
    kind = type(value)
    if issubclass(kind, dict):
        # By the methods of the built-in class, whatever a subclass overrides.
        return True
    if not has_ordinary_class(value) or not _is_read_by_known_code(kind):
        return False
    return all(map(is_readable, _wrapped(value, kind)))


@lru_cache(maxsize=_MOST_TYPES)
def _is_read_by_known_code(cls: type) -> bool:
    return runs_known_code(cls, *_READING) and adds_no_code(cls)


def _wrapped(value: object, kind: type) -> list[Any]:
    """The mappings that one of Python's own looks into."""
    if kind is MappingProxyType:
        return get_referents(value)
    if issubclass(kind, ChainMap):
        return [*cast("ChainMap[Any, Any]", value).maps[:_MOST_TYPES]]
    return [cast("UserDict[Any, Any]", value).data] if issubclass(kind, UserDict) else []
