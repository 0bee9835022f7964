"""`@frozen`: a frozen, slotted, keyword-only dataclass that is cheap to make and cheap to load.

The standard one writes every field through `object.__setattr__`, which for a report of thirty fields
takes longer than everything else in describing a failure; and it compiles six methods a class, which
is most of what importing this package would cost. Here the object is a plain slotted one while its
constructor runs and becomes frozen with the last statement, and the other methods are shared.
"""

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, fields
from dataclasses import field as field_options
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

_T = TypeVar("_T")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field_options,))
def frozen(cls: type[_T]) -> type[_T]:
    """Make `cls` a frozen, slotted, keyword-only dataclass. `__post_init__` sets its `field(init=False)`."""
    own = cls.__dict__
    record: Any = dataclass(slots=True, kw_only=True, init=False, repr=False, eq=False, match_args=False)(cls)
    names: tuple[str, ...] = tuple(field.name for field in fields(record))
    draft: type[Any] = type(f"_Draft{record.__name__}", (), {"__slots__": record.__dict__["__slots__"]})
    record.__init__ = _constructor(record, draft)
    record.__setattr__ = _refuse_to_set
    record.__delattr__ = _refuse_to_delete
    record.__getstate__ = _state
    record.__setstate__ = _set_state
    if "__repr__" not in own:
        record.__repr__ = _repr
    values: Callable[[Any], Any] = attrgetter(*names)

    def is_equal(self: Any, other: Any) -> bool:
        return values(self) == values(other) if type(other) is record else NotImplemented

    def hashed(self: Any) -> int:
        return hash((record.__name__, values(self)))

    record.__eq__ = is_equal
    if "__hash__" not in own:
        record.__hash__ = hashed
    return record


def _constructor(record: type[Any], draft: type[Any]) -> Callable[..., None]:
    known: dict[str, Any] = {"_draft": draft, "_made": record, "_set": object.__setattr__, "_none": MISSING}
    parameters: list[str] = []
    lines: list[str] = []
    for field in fields(record):
        if not field.init:
            continue
        parameters.append(f"{field.name}{_default(field, known)}")
        value = field.name
        if field.default_factory is not MISSING:
            value = f"_make_{field.name}() if {field.name} is _none else {field.name}"
        lines.append(f"    self.{field.name} = {value}")
    source = "\n".join(
        [
            f"def __init__(self, *, {', '.join(parameters)}):",
            "    _set(self, '__class__', _draft)",
            *lines,
            "    self.__class__ = _made",
            "    self.__post_init__()" if hasattr(record, "__post_init__") else "",
        ]
    )
    # The text is composed of the field names of our own classes alone, as dataclasses do it.
    exec(source, known)  # noqa: S102
    return known["__init__"]


def _default(field: Field[Any], known: dict[str, Any]) -> str:
    if field.default_factory is not MISSING:
        # `dict[str, Any]()` takes several times as long as `dict()`.
        known[f"_make_{field.name}"] = getattr(field.default_factory, "__origin__", field.default_factory)
        return "=_none"
    if field.default is not MISSING:
        known[f"_default_{field.name}"] = field.default
        return f"=_default_{field.name}"
    return ""


def _refuse_to_set(self: object, name: str, _value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r} of {type(self).__name__}")


def _refuse_to_delete(self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r} of {type(self).__name__}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


def _repr(self: Any) -> str:
    values = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr)
    return f"{type(self).__qualname__}({values})"
