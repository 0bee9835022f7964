"""The values of an effect: its key, digests of its arguments, and its result as JSON."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, time
from decimal import Decimal
from enum import Enum
from inspect import Signature
from json import dumps, loads
from math import isfinite
from pathlib import Path, PurePath
from string import Formatter
from typing import Any, cast
from uuid import UUID

from failwell.errors.axes import Certainty
from failwell.store.effects.claims import EffectKey, EffectKeyInvalid

KeySource = str | Sequence[str] | Callable[..., str]
_SCALARS = (str, int, float, bool, Decimal, UUID, date, time, PurePath)
"""Types whose text is the same in every process."""
_LONGEST_HEADER = 200
_MISSING = object()
_RECEIVERS = ("self", "cls")


class NotJson(TypeError):
    """A value has no exact form in JSON; the message names the place."""


# ---------------------------------------------------------------- keys


def effect_key(name: str, scope: str, key: str) -> EffectKey:
    """The key of one effect, with an id of letters and digits."""
    return EffectKey(id=f"fx{_digest([name, scope, key], 12)}", name=name, scope=scope, key=key)


def provider_key(effect: EffectKey) -> str:
    """The key as a header can carry it: readable where it is short plain text, else the id."""
    text = effect.text
    is_plain = text.isascii() and text.isprintable() and " " not in text
    return text if is_plain and len(text) <= _LONGEST_HEADER else effect.id


def key_function(key: KeySource, signature: Signature, name: str) -> Callable[[Mapping[str, Any]], str]:
    """A function from the bound arguments to the key.

    Raises:
        TypeError: `key` is none of the forms.
        ValueError: it names an argument that the function does not have.
    """
    if callable(key):
        return _by_function(key, signature, name)
    if isinstance(key, str):
        if "{" in key or "}" in key:
            return _by_template(key, signature, name)
        key = (key,)
    names = tuple(key)
    if not names or not all(isinstance(part, str) for part in cast("tuple[object, ...]", names)):
        raise TypeError(
            "`key` takes a function of the arguments, a template such as `'order-{order_id}'`, or names of arguments"
        )
    _check_names(names, signature, name)

    def by_names(arguments: Mapping[str, Any]) -> str:
        values = [_present(arguments.get(part), part, name) for part in names]
        parts = [_stable(value) for value in values]
        if _MISSING in parts:
            raise _not_stable(names[parts.index(_MISSING)], name)
        return str(parts[0]) if len(parts) == 1 and isinstance(parts[0], str | int) else _canonical(parts)

    return by_names


def _by_function(
    function: Callable[..., str], signature: Signature, name: str
) -> Callable[[Mapping[str, Any]], str]:
    def by_function(arguments: Mapping[str, Any]) -> str:
        bound = _bound_again(signature, arguments)
        key = cast("object", function(*bound.args, **bound.kwargs))
        if not isinstance(key, str):
            raise TypeError(
                f"the `key` function of `{name}` returned {type(key).__name__}, and a key is a text"
            )
        return _present(key, "key", name)

    return by_function


def _by_template(template: str, signature: Signature, name: str) -> Callable[[Mapping[str, Any]], str]:
    formatter = Formatter()
    parsed = [*formatter.parse(template)]
    places = [field for _, field, _, _ in parsed if field is not None]
    if not places:
        raise ValueError(
            f"the `key` of `{name}` is the same for every call: name an argument, such as `{{order_id}}`"
        )
    _check_names([place.split(".")[0].split("[")[0] for place in places], signature, name)

    def by_template(arguments: Mapping[str, Any]) -> str:
        for place in places:
            value = formatter.get_field(place, (), arguments)[0]
            if not isinstance(_present(value, place, name), (*_SCALARS, Enum)):
                raise _not_stable(place, name)
        return formatter.vformat(template, (), arguments)

    return by_template


def _bound_again(signature: Signature, arguments: Mapping[str, Any]) -> Any:
    from collections import OrderedDict
    from inspect import BoundArguments

    return BoundArguments(signature, OrderedDict(arguments))


def _check_names(names: Sequence[str], signature: Signature, name: str) -> None:
    for part in names:
        if part not in signature.parameters:
            known = ", ".join(f"`{parameter}`" for parameter in signature.parameters) or "none"
            raise ValueError(f"the `key` of `{name}` names `{part}`, and the arguments are {known}")


def _present(value: Any, place: str, name: str) -> Any:
    if value is None or value == "":
        raise EffectKeyInvalid(
            tool=name,
            parameter=place,
            reason="which is missing" if value is None else "which is empty",
            certainty=Certainty.NOT_SENT,
        )
    return value


def _not_stable(place: str, name: str) -> TypeError:
    return TypeError(
        f"the `key` of `{name}` uses `{place}`, whose text may differ between processes: use a text, a number or a date"
    )


def function_name(function: Callable[..., Any]) -> str:
    """Module and name of a function; a script counts as the module that importing it would make."""
    module = getattr(function, "__module__", None) or ""
    if module == "__main__":
        main = sys.modules["__main__"]
        spec = getattr(main, "__spec__", None)
        module = spec.name if spec is not None else Path(getattr(main, "__file__", None) or "main").stem
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return f"{module}.{name.replace('<locals>.', '')}"


# ---------------------------------------------------------------- arguments


def argument_digests(arguments: Mapping[str, Any], ignore: frozenset[str]) -> dict[str, str]:
    """Digests of the arguments that have a stable form; others, such as clients and contexts, are left out."""
    digests: dict[str, str] = {}
    for name, value in arguments.items():
        if name in ignore or name in _RECEIVERS:
            continue
        stable = _stable(value)
        if stable is not _MISSING:
            digests[name] = _digest(stable, 8)
    return digests


def differing(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The names of the arguments that both calls have, with other values."""
    return [name for name, digest in now.items() if before.get(name, digest) != digest]


def _stable(value: Any, depth: int = 32) -> Any:
    """`value` as JSON that is the same in every process, or `_MISSING` if it has no such form."""
    if value is None or (isinstance(value, bool | int | str) and not isinstance(value, Enum)):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if isinstance(value, Enum):
        return _stable(value.value, depth - 1)
    if isinstance(value, _SCALARS):
        return f"{type(value).__name__} {value}"
    if isinstance(value, bytes):
        return f"bytes {value.hex()}"
    if depth <= 0:
        return _MISSING
    if isinstance(value, Mapping):
        items = [
            (str(key), _stable(inner, depth - 1)) for key, inner in cast("Mapping[Any, Any]", value).items()
        ]
        return _MISSING if any(inner is _MISSING for _, inner in items) else dict(sorted(items))
    if isinstance(value, list | tuple | set | frozenset):
        parts = [_stable(inner, depth - 1) for inner in cast("Sequence[Any]", value)]
        if any(part is _MISSING for part in parts):
            return _MISSING
        return sorted(parts, key=_canonical) if isinstance(value, set | frozenset) else parts
    if is_dataclass(value):
        return _stable({field.name: getattr(value, field.name) for field in fields(value)}, depth - 1)
    dump = getattr(cast("type[Any]", type(value)), "model_dump", None)
    return _MISSING if dump is None else _stable(dump(value), depth - 1)


def _canonical(value: Any) -> str:
    return dumps(value, sort_keys=True, separators=(",", ":"))


def _digest(value: Any, size: int) -> str:
    from hashlib import blake2s

    return blake2s(_canonical(value).encode(), digest_size=size).hexdigest()


# ---------------------------------------------------------------- results


def result_to_json(value: object) -> str:
    """The result as JSON text.

    Raises:
        NotJson: it would not come back as it was.
    """
    for place, problem in _problems(value, "the result", 200):
        raise NotJson(f"{place} is {problem}")
    return dumps(value, separators=(",", ":"))


def result_from_json(text: str) -> Any:
    """The result that `result_to_json` wrote."""
    return loads(text)


def _problems(value: object, place: str, depth: int) -> Iterator[tuple[str, str]]:
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return
    if kind is float:
        if not isfinite(cast("float", value)):
            yield place, "no finite number"
    elif depth <= 0:
        yield place, "nested too deeply"
    elif kind is list:
        for index, inner in enumerate(cast("list[Any]", value)):
            yield from _problems(inner, f"{place}[{index}]", depth - 1)
    elif kind is dict:
        for key, inner in cast("dict[Any, Any]", value).items():
            if type(key) is not str:
                yield place, f"a dictionary with {type(key).__name__} as key"
            else:
                yield from _problems(inner, f"{place}.{key[:40]}", depth - 1)
    else:
        yield place, f"of type {kind.__name__}, which JSON does not have"


_REFUSED = (bytes, bytearray, complex, date, time, Decimal, Enum, PurePath, set, frozenset, tuple, UUID)


def check_return_type(function: Callable[..., Any], name: str) -> None:
    """Refuse a function whose annotation says that it returns something that JSON does not have.

    Raises:
        TypeError: it does.
    """
    annotation = _return_annotation(function)
    kind: Any
    for kind in _classes_in(annotation, 16):
        if issubclass(kind, _REFUSED) or hasattr(kind, "model_dump") or hasattr(kind, "__dataclass_fields__"):
            raise TypeError(
                f"`{name}` returns {kind.__name__}, and an effect returns JSON values, because a repeated call gets the "
                "stored result: return dictionaries, lists, texts, numbers, booleans or None"
            )


def _return_annotation(function: Callable[..., Any]) -> Any:
    from typing import get_type_hints

    try:
        return get_type_hints(function).get("return")
    except (NameError, TypeError, AttributeError, SyntaxError):
        # A name that exists for type checkers only. The result is checked when there is one.
        return None


def _classes_in(annotation: Any, depth: int) -> Iterator[type]:
    from typing import get_args, get_origin

    origin = get_origin(annotation)
    if origin is None:
        if isinstance(annotation, type):
            yield annotation
        return
    if isinstance(origin, type):
        yield origin
    if depth > 0:
        for part in get_args(annotation):
            yield from _classes_in(part, depth - 1)
