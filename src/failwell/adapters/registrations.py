"""What programs and packages teach failwell: the kinds of their own exception classes and codes.

`register_exception` and `register_code` have the same rules: the kind must be registered, the same call may be repeated, and a name
that has a meaning cannot get another one.

Adapters that installed packages bring: entry points of the group `failwell.adapters`.
"""

import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from threading import Lock
from typing import Any

from failwell.adapters.classification import Classification, Rule
from failwell.errors.facts import Evidence
from failwell.errors.fault import Fault
from failwell.errors.kind_registry import kind as registered_kind
from failwell.errors.lazy_regex import lazy_regex

_SPELLED = lazy_regex(r"[a-z0-9_][a-z0-9_.\-]{1,79}")
_DOTTED = lazy_regex(r"[^\W\d]\w*(?:\.(?:[^\W\d]\w*|<locals>))+")
_LONGEST_NAME = 300
_registered_codes: dict[str, Rule] = {}
_registered_exceptions: dict[str, "ExceptionAdapter"] = {}
_on_change: list[Callable[[], None]] = []


class ExceptionAdapter:
    """The adapter of a registered class: the kind is given, and what the exception knows of a reply is read as usual."""

    def __init__(self, name: str, kind: str, provider: str | None) -> None:
        self.name = name
        self.kind = kind
        self.provider = provider

    def __call__(self, error: BaseException) -> Classification:
        if not self.kind.startswith("provider."):
            return Classification.from_rule(
                kind=self.kind, rule=self._rule, saw=self.name, provider=self.provider
            )
        from failwell.adapters.classify import classify
        from failwell.adapters.sdk_exceptions import gather

        return self.classified(classify(gather(error, self.provider, self.name.partition(".")[0])))

    def kind_of(self, _error: BaseException) -> str:
        """The kind, whatever the exception holds."""
        return self.kind

    def classified(self, reading: Classification) -> Classification:
        """What was read of a reply, under the registered kind."""
        first = Evidence(rule=self._rule, basis="type", saw=self.name)
        provider = reading.provider or self.provider
        return replace(reading, kind=self.kind, evidence=(first,), message=None, provider=provider)

    @property
    def _rule(self) -> str:
        return f"registered.{self.name}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExceptionAdapter) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.name, self.kind))


def register_exception(
    exception: type[BaseException] | str, *, kind: str, provider: str | None = None
) -> None:
    """Let exceptions of a class, and of its subclasses, mean `kind`, here and in saved and printed failures.

    Register at start-up. A status, a `Retry-After` header and a request id that the exception carries are read as for any SDK.

    Args:
        exception: The class, or its name with its package (`"acme.errors.QuotaError"`) where importing it would cost time. A name is
            matched by its package and the class, wherever in the package the class is defined.
        kind: A kind of failwell or a registered one of your own.
        provider: Which service raises it.

    Raises:
        KindError: nobody registered the kind.
        TypeError: it is neither an exception class nor a text.
        ValueError: the class has another meaning already, is one of Python's own or a fault, or the name is not one of a class.
    """
    registered_kind(kind)
    name = _class_name(exception)
    entry = ExceptionAdapter(name, kind, provider)
    key = name if isinstance(exception, type) else _package_and_class(name)
    known = _registered_exceptions.get(key)
    if known is not None and known != entry:
        raise ValueError(f"`{name}` is registered already, as `{known.kind}`; register it once")
    _registered_exceptions[key] = entry
    for changed in _on_change:
        changed()


def _class_name(exception: type[BaseException] | str) -> str:
    if isinstance(exception, str):
        name = exception.strip()
        if len(name) > _LONGEST_NAME or not _DOTTED.fullmatch(name):
            raise ValueError(
                f"`{exception}` is not the name of a class with its package, such as `acme.errors.QuotaError`"
            )
    else:
        name = _name_of(exception)
    if name.startswith("builtins."):
        raise ValueError(
            f"`{name.partition('.')[2]}` is one of Python's own classes, and other code raises it too; register a subclass of it"
        )
    return name


def _name_of(cls: object) -> str:
    if not (isinstance(cls, type) and issubclass(cls, BaseException)):
        raise TypeError(f"{cls!r} is not an exception class; pass the class, or its name as a text")
    if Fault in cls.__mro__:
        raise ValueError(
            f"`{cls.__name__}` is a fault; name its kind in the class: `class {cls.__name__}(Fault, kind=…)`"
        )
    return f"{cls.__module__}.{cls.__qualname__}"


def _package_and_class(name: str) -> str:
    return f"{name.partition('.')[0]}:{name.rpartition('.')[2]}"


def registered_exception(module: str, name: str, qualname: str | None = None) -> ExceptionAdapter | None:
    """The registration of a class, by its names."""
    if not _registered_exceptions:
        return None
    known = _registered_exceptions.get(f"{module}.{qualname or name}")
    return known or _registered_exceptions.get(f"{module.partition('.')[0]}:{name}")


def when_registered(changed: Callable[[], Any]) -> None:
    """Call `changed` after each registration of an exception, for those who keep what they looked up."""
    _on_change.append(changed)


def register_code(code: str, kind: str) -> None:
    """Let `code` in a service's error body mean `kind`, whatever the reply's status says.

    For services of your own, and for a provider's code that has no rule here yet. Register at start-up.

    Raises:
        KindError: nobody registered the kind.
        ValueError: the code has another meaning already, or is not spelled like one.
    """
    from failwell.adapters.codes import is_known_everywhere

    name = code.strip().lower()
    registered_kind(kind)
    if not _SPELLED.fullmatch(name):
        raise ValueError(
            f"`{code}` is not spelled like a code; use 2 to 80 letters, digits, `_`, `.` and `-`"
        )
    if is_known_everywhere(name):
        raise ValueError(f"`{code}` has a meaning for every provider; give the service's code another name")
    known = _registered_codes.get(name)
    if known is not None and known.kind != kind:
        raise ValueError(f"`{code}` is registered already, as `{known.kind}`; register it once")
    _registered_codes[name] = Rule(f"registered.{name}", kind, "code", name)


def is_known_code(code: object) -> bool:
    """Whether a rule, or a registration, gives `code` a meaning."""
    from failwell.adapters.codes import said_by_code

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


GROUP = "failwell.adapters"
_HEADING = f"[{GROUP}]".encode()
_LARGEST = 1 << 20
_lock = Lock()
_loaded: set[str] = set()
_names: frozenset[str] | None = None


def load_adapters(top: str) -> None:
    """Load the entry points for exceptions of the top-level module `top`, once. A broken one is logged and passed over."""
    if top in _loaded or top not in _installed_names():
        return
    with _lock:
        if top in _loaded:
            return
        # Noted first: an entry point may meet exceptions of its own package.
        _loaded.add(top)
    from importlib.metadata import entry_points

    for point in entry_points(group=GROUP, name=top):
        try:
            loaded = point.load()
            if callable(loaded):
                loaded()
        except Exception as error:  # noqa: BLE001  (a package's adapter may raise anything, and no failure is described worse for it)
            import logging

            logging.getLogger("failwell.adapters").warning(
                "the entry point `%s = %s` of the group `%s` failed with %s; its exceptions are read without it",
                point.name, point.value, GROUP, type(error).__name__,
            )  # fmt: skip


def _installed_names() -> frozenset[str]:
    """The names of the entry points of this group.

    `importlib.metadata` takes 40 ms to import, which most programs need not pay: no package that they have installed names the group.
    """
    global _names
    if _names is None:
        _names = frozenset()
        if any(_names_group(path) for path in sys.path):
            from importlib.metadata import entry_points

            _names = frozenset(point.name for point in entry_points(group=GROUP))
    return _names


def _names_group(path: str) -> bool:
    try:
        with os.scandir(path or ".") as folder:
            installed = [entry.path for entry in folder if entry.name.endswith((".dist-info", ".egg-info"))]
    except OSError:
        return False
    return any(_has_heading(f"{metadata}/entry_points.txt") for metadata in installed)


def _has_heading(file: str) -> bool:
    try:
        with open(file, "rb") as text:
            return _HEADING in text.read(_LARGEST)
    except OSError:
        return False
