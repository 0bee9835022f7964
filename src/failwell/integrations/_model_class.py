"""Subclasses of a framework's classes whose methods run under one retry authority.

Frameworks ask a model what it is by its class: whether it streams, which vendor it speaks to, how it is saved. A
subclass answers all of that as the class does, where a wrapper object would not.
"""

from collections.abc import Callable, Mapping
from typing import Any, cast

_BASE = "failwell_base"
_MOST_COPIES = 64


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
        self._copies: dict[int, tuple[Any, Any]] = {}
        """By the `id` of the model, which is held so that no other gets the same."""

    def of(self, model: Any) -> Any:
        """The copy of a model; a copy itself is returned as it is."""
        known = self._copies.get(id(model))
        if known is not None and known[0] is model:
            return known[1]
        if self._subclasses.holds(model):
            return model
        copy = self._prepare(model)
        self._subclasses.put(copy)
        if len(self._copies) >= _MOST_COPIES:
            self._copies.clear()
        self._copies[id(model)] = (model, copy)
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
