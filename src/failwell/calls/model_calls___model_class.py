"""Subclasses of a framework's classes whose methods run under one retry authority.

Frameworks ask a model what it is by its class: whether it streams, which vendor it speaks to, how it is saved. A
subclass answers all of that as the class does, where a wrapper object would not.
"""

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar, cast

_BASE = "failwell_base"
_MOST_KNOWN = 64
_K = TypeVar("_K")
_V = TypeVar("_V")


class ByIdentity(Generic[_K, _V]):
    """Remembers what `make` returned for each object, of the latest ones. Threads may share it."""

    __slots__ = ("_known", "_make")

    def __init__(self, make: Callable[[_K], _V]) -> None:
        self._make = make
        self._known: dict[int, tuple[_K, _V]] = {}
        """By the `id` of the object, which is held so that no other gets the same."""

    def of(self, target: _K) -> _V:
        """What `make(target)` returned first."""
        known = self._known.get(id(target))
        if known is not None:
            return known[1]
        value = self._make(target)
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[id(target)] = target, value
        return value


class Subclasses:
    """Gives objects a subclass of their class: one for each class, with the methods that `methods(cls)` returns."""

    __slots__ = ("_made", "_methods")

    def __init__(self, methods: Callable[[Any], Mapping[str, Callable[..., Any]]]) -> None:
        self._methods = methods
        self._made: dict[Any, Any] = {}

    def holds(self, target: object) -> bool:
        """Whether the object has one of these subclasses."""
        return type(target) in self._made.values()

    def put(self, target: Any) -> None:
        """Give the object its subclass. One that another plugin gave it is replaced, so that calls do not multiply."""
        cls = cast("Any", type(target))
        base: Any = cls.__dict__.get(_BASE, cls)
        if base not in self._made:
            self._made[base] = _subclass_of(base, self._methods(base))
        target.__class__ = self._made[base]


class Copies:
    """Copies of models with a subclass of their class: one for each model, which stays as it is."""

    __slots__ = ("_copies", "_prepare", "_subclasses")

    def __init__(
        self, methods: Callable[[Any], Mapping[str, Callable[..., Any]]], prepare: Callable[[Any], Any]
    ) -> None:
        """Read how a copy differs.

        Args:
            methods: Returns the methods of the subclass of a class.
            prepare: Copies a model, with the retries of its client off.
        """
        self._subclasses = Subclasses(methods)
        self._prepare = prepare
        self._copies = ByIdentity[Any, Any](self._copy)

    def of(self, model: Any) -> Any:
        """The copy of a model; a copy itself is returned as it is."""
        return model if self._subclasses.holds(model) else self._copies.of(model)

    def _copy(self, model: Any) -> Any:
        copy = self._prepare(model)
        self._subclasses.put(copy)
        return copy


def _subclass_of(cls: Any, methods: Mapping[str, Callable[..., Any]]) -> Any:
    """It has the name of `cls`: saved states and traces stay as they are."""
    names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    made = type(cls)(cls.__name__, (cls,), {**names, **methods})
    type.__setattr__(made, _BASE, cls)
    return made


def has_field(target: object, name: str) -> bool:
    """Whether the class of a pydantic model has this field."""
    fields: Any = getattr(type(target), "model_fields", ())
    return name in fields
