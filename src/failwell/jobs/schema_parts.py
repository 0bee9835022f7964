"""The parts of a schema: what a reference stands for, which type a value has, which of several forms is meant."""

from collections.abc import Mapping
from typing import Any, cast

Schema = Mapping[str, Any]
TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "array": (list, tuple),
    "object": (dict,),
}


def referred(pointer: str, root: Schema) -> Any:
    """The schema that `$ref` stands for; one that allows everything where there is none."""
    found: Any = root
    for step in pointer.removeprefix("#/").split("/"):
        if not isinstance(found, Mapping):
            return True
        found = cast("Schema", found).get(step.replace("~1", "/").replace("~0", "~"), True)
    return found


def is_type(wanted: Any, value: Any) -> bool:
    """Whether `value` is of the type, or one of the types, that a schema names."""
    names = cast("list[str]", wanted) if isinstance(wanted, list) else [str(wanted)]
    for name in names:
        if isinstance(value, bool):
            if name == "boolean":
                return True
        elif isinstance(value, TYPES.get(name, ())) or (
            name == "integer" and isinstance(value, float) and value.is_integer()
        ):
            return True
    return False


def only_form(forms: Any, value: Any, root: Schema) -> Any:
    """The one of several forms that has the value's type, such as the object of "an object or null"; else `None`."""
    fitting: list[Any] = []
    for form in cast("list[Any]", forms):
        held: Any = form
        if isinstance(form, Mapping) and "$ref" in form:
            held = referred(str(cast("Schema", form)["$ref"]), root)
        wanted = cast("Schema", held).get("type") if isinstance(held, Mapping) else None
        if wanted is None or is_type(wanted, value):
            fitting.append(form)
    return fitting[0] if len(fitting) == 1 else None
