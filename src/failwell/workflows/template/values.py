"""Converts rendered and typed texts into values.

Each place where a text becomes a value has its own rules, in one function each. A text that no rule covers stays
text. Numbers that JSON cannot represent (`NaN`, infinities) stay text, except in a `set` step, which they fail.
"""

import json
import re
from collections.abc import Callable, Iterable
from datetime import date, datetime
from functools import lru_cache
from typing import Any, Literal, NoReturn, cast

from failwell.errors.fault import Fault
from failwell.files.finite_json import load_finite

OutputType = Literal["auto", "string", "number", "integer", "boolean", "list", "dict"]
InputType = Literal["string", "number", "boolean", "array", "object"]

LONGEST_WAIT = 86_400.0
"""Seconds: a day."""

_WHOLE = re.compile(r"[-+]?[0-9]+\Z")
_JSON_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]*)\Z")
_JSON_FRACTION = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+(?:[eE][-+]?[0-9]+)?|[eE][-+][0-9]+)\Z")
_FRACTION = re.compile(r"[-+]?(?:(?:\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+][0-9]+)\Z")
_EXPONENT = re.compile(r"-?[0-9]+[eE][0-9]+\Z")
"""Digits, `e`, digits: a number in JSON, and possibly the name of a commit. Text, unless a number is declared."""
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?\Z")
_NOT_FINITE = frozenset(
    {"nan", "inf", "-inf", "NaN", "Infinity", "-Infinity", ".nan", ".NaN", ".inf", "-.inf"}
)
"""Numbers that are not finite, as Python, JavaScript and YAML write them."""
_INNER_INFINITE = re.compile(
    r"[\[,:]\s*(?:-?inf|nan|NaN|-?Infinity|\.nan|-?\.inf|-?[0-9.]+[eE]\+?[0-9]{3,})\s*[,\]}]"
)
_INFINITIES = frozenset({float("inf"), float("-inf")})
_QUOTED = re.compile(r"""'[^']*'|"[^"]*\"""")
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|m|h)?\Z")
_WORDS: dict[str, Any] = {
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
    "null": None, "None": None, "Null": None, "NULL": None,
}  # fmt: skip
_OUTPUT_WORDS: dict[str, Any] = {
    "true": True, "True": True, "false": False, "False": False, "null": None, "None": None,
}  # fmt: skip
"""The words of JSON, and as Python writes them."""
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, None: 1.0}
_MAX_DIGITS = 4000
_LONGEST_YAML = 1_000_000


class CoercionFailed(Fault, kind="internal.template_error"):
    """What a template rendered cannot be converted into the required type."""

    wanted: str

    def summary(self) -> str:
        """The required type; never the text, which is data."""
        return f"a value was computed that is not {self.wanted}"


def _refuse(type_name: str) -> NoReturn:
    raise CoercionFailed(wanted=type_name)


# ---------------------------------------------------------------- numbers and JSON


def _number(text: str, integer: re.Pattern[str], fraction: re.Pattern[str]) -> int | float | None:
    if len(text) > _MAX_DIGITS:
        return None
    if integer.match(text):
        return int(text)
    if fraction.match(text):
        value = float(text)
        return value if value - value == 0 else None
    return None


def _json(text: str) -> Any:
    """`text` as strict JSON, with finite numbers. Raises `ValueError`."""
    try:
        return load_finite(text)
    except RecursionError:
        raise ValueError from None


def _structure(text: str, starts: str) -> Any:
    """`text` as JSON if it starts like an object or a list, and is one; otherwise `text`."""
    if text[:1] not in starts or not text:
        return text
    try:
        return _json(text)
    except ValueError:
        return text


# ---------------------------------------------------------------- outputs and inputs


def as_output(text: str) -> Any:
    """A value of the final output: words, objects, lists, quoted texts and numbers as JSON writes them.

    `007` and `+5` are not numbers in JSON and stay text, like everything else; `12345e6` may be the name of a commit.
    """
    bare = text.strip()
    if bare in _OUTPUT_WORDS:
        return _OUTPUT_WORDS[bare]
    number = _number(bare, _JSON_WHOLE, _JSON_FRACTION)
    if number is not None:
        return number
    value = _structure(bare, '{["')
    return text if value is bare else value


class TypedText(str):
    """A value as a person typed it. The declared type of the input decides how it is converted."""

    __slots__ = ()


def as_input(text: str, declared: InputType | None = None) -> Any:
    """A value that a person typed, as in `name=value`. A declared `string` is not converted.

    A text that does not match the declared type is returned as it is, and refused by the check of the inputs.
    """
    if declared == "string":
        return text
    bare = text.strip()
    lowered = bare.lower()
    if lowered in {"true", "false"} and declared in {None, "boolean"}:
        return lowered == "true"
    if lowered in {"null", "none"} and declared is None:
        return None
    if declared in {None, "number"}:
        number = _number(bare, _JSON_WHOLE, _JSON_FRACTION if declared is None else _JSON_NUMBER)
        if number is not None:
            return number
    if declared in {None, "array", "object"}:
        value = _structure(bare, "{[")
        return text if value is bare else value
    return text


def as_mapped(text: str) -> Any:
    """A value for an input of a sub-workflow: parsed if it is JSON, else the text."""
    bare = text.strip()
    if bare in {"True", "False", "None"}:
        return _WORDS[bare]
    if _EXPONENT.match(bare):
        return text
    try:
        return _json(bare)
    except ValueError:
        return text


# ---------------------------------------------------------------- set


def as_set_value(value: Any, output_type: OutputType = "auto") -> Any:
    """A value of a `set` step, converted to its type."""
    convert = _SET_TYPES[output_type]
    return convert(value)


def _auto(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    bare = value.strip()
    if not bare:
        return ""
    if bare in _WORDS and bare != "None":
        return _WORDS[bare]
    if bare in {"None", "~"}:
        return None
    number = _number(bare, _WHOLE, _FRACTION)
    if number is not None:
        return number
    _refuse_infinite(bare)
    return bare if _EXPONENT.match(bare) else _yaml(bare)


def _yaml(text: str) -> Any:
    """A list, a mapping or a quoted text, as YAML; any other text unchanged."""
    try:
        return _json(text)
    except ValueError:
        pass
    if len(text) > _LONGEST_YAML or not _STRUCTURED.search(text):
        return text
    return read_yaml(text)


_STRUCTURED = re.compile(r"""\A["'\[{]|\A- |:(?:\s|\Z)|\A-\Z""")


def _string(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _numeric(value: Any) -> Any:
    if isinstance(value, str) and _EXPONENT.match(value.strip()):
        _refuse_infinite(value.strip())
        return float(value)
    number = _auto(value)
    # `bool` is a subclass of `int`.
    if isinstance(number, bool) or not isinstance(number, int | float):
        _refuse("a number")
    return number


def _refuse_infinite(text: str) -> None:
    """Fail for a number that is not finite, alone or in a list or mapping: JSON cannot represent it."""
    is_number = _FRACTION.match(text) or _EXPONENT.match(text)
    is_infinite = (
        float(text) in _INFINITIES
        if is_number
        else text in _NOT_FINITE
        or (text[:1] in {"[", "{"} and _INNER_INFINITE.search(_QUOTED.sub("''", text)))
    )
    if is_infinite:
        _refuse("a finite number; `output_type: string` keeps it as text")


def _integer(value: Any) -> Any:
    number = _numeric(value)
    if isinstance(number, float):
        if not number.is_integer():
            _refuse("a whole number")
        return int(number)
    return number


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower() if isinstance(value, str | int) else ""
    if word in {"true", "yes", "1", "y", "on"}:
        return True
    if word in {"false", "no", "0", "n", "off", ""}:
        return False
    return _refuse("true or false")


def _list(value: Any) -> Any:
    items = _auto(value)
    if not isinstance(items, list):
        _refuse("a list")
    return cast("list[Any]", items)


def _dict(value: Any) -> Any:
    mapping = _auto(value)
    if not isinstance(mapping, dict):
        _refuse("a mapping")
    return cast("dict[str, Any]", mapping)


_SET_TYPES: dict[OutputType, Any] = {
    "auto": _auto,
    "string": _string,
    "number": _numeric,
    "integer": _integer,
    "boolean": _boolean,
    "list": _list,
    "dict": _dict,
}


# ---------------------------------------------------------------- durations


def duration(value: object) -> float:
    """Seconds: a number, or `500ms`, `60s`, `2.5m`, `1h`; above zero and at most a day."""
    seconds: float | None = None
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value) if abs(value) <= LONGEST_WAIT else None
    elif isinstance(value, str) and len(value) <= 40:
        match = _DURATION.match(value.strip())
        if match is not None:
            seconds = float(match[1]) * _UNITS[match[2]]
    if seconds is None or not 0 < seconds <= LONGEST_WAIT:
        _refuse("a duration such as 500ms, 60s, 2.5m or 1h, above zero and at most 24h")
    return seconds


# ---------------------------------------------------------------- YAML

_MAX_DEPTH = 100


def read_yaml(text: str) -> Any:
    """The list, mapping or quoted text that `text` writes in YAML, else `text` itself."""
    import yaml

    loader = _loader()
    parse = cast("Callable[..., Iterable[object]]", yaml.parse)  # pyright: ignore[reportUnknownMemberType]
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in parse(text, Loader=loader)):
            return text
        value = yaml.load(text, Loader=loader)  # noqa: S506 - a safe loader with fewer words
        value = _as_json(value, 0)
    except (yaml.YAMLError, ValueError, RecursionError):
        return text
    if isinstance(value, list | dict) or (isinstance(value, str) and text[:1] in {'"', "'"}):
        return cast("Any", value)
    return text


@lru_cache(maxsize=1)
def _loader() -> Any:
    import yaml

    safe: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    core: Any = type("_CoreLoader", (safe,), {"yaml_implicit_resolvers": {}})
    for tag, pattern, starts in (
        ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
        ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
        ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
        ("null", r"~|null|Null|NULL|None|", ["~", "n", "N", ""]),
    ):
        core.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(rf"(?:{pattern})\Z"), list(starts))
    core.add_constructor("tag:yaml.org,2002:int", _whole)
    core.add_constructor("tag:yaml.org,2002:float", _fraction)
    return core


def _whole(_: Any, node: Any) -> int:
    text: str = node.value
    base = 8 if text.startswith("0o") else 16 if text.startswith("0x") else 10
    return int(text, base)


def _fraction(_: Any, node: Any) -> float:
    return float(node.value)


def _as_json(value: Any, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        raise ValueError
    if isinstance(value, dict):
        return {_key(key): _as_json(part, depth + 1) for key, part in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list):
        return [_as_json(part, depth + 1) for part in cast("list[Any]", value)]
    if isinstance(value, date | datetime):
        return value.isoformat()
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float) and value - value == 0:
        return value
    raise ValueError


def _key(key: Any) -> str:
    if isinstance(key, str):
        return key
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    if isinstance(key, int | float):
        return str(key)
    raise ValueError
