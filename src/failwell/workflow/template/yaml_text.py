"""Reads a computed text as YAML, with the scalars of YAML 1.2 and without its dangers.

`yes` is a text, a date is a text, tags and aliases are not followed: with any of them, and wherever the
text is not YAML at all, it stays the text it was.
"""

import re
from collections.abc import Callable, Iterable
from datetime import date, datetime
from functools import lru_cache
from typing import Any, cast

_DEEPEST = 100


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
    if depth > _DEEPEST:
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
