"""Schemas that check the tool calls of a model and come from a tool server: only those whose check is short and stays inside the schema are used."""

from collections.abc import Mapping
from typing import Any, cast

_MOST_NODES = 20_000
_METASCHEMAS = ("http://json-schema.org/", "https://json-schema.org/")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_OPEN: Mapping[str, Any] = {"type": "object"}


def safe_schema(schema: object) -> Mapping[str, Any]:
    """The schema, or one that accepts every object. The server checks the arguments of its tools in any case.

    A reference to another address could be fetched, and references in a circle or to many branches could be followed
    for ever.
    """
    if not isinstance(schema, Mapping):
        return _OPEN
    root = cast("Mapping[str, Any]", schema)
    try:
        return root if _size(root, root, {}) <= _MOST_NODES else _OPEN
    except (_Unsafe, RecursionError):
        return _OPEN


class _Unsafe(Exception):
    """The schema refers to itself or to another place."""


def _size(node: object, root: Mapping[str, Any], sizes: dict[int, int | None]) -> int:
    """The nodes below `node` with every reference written out. A shared part is counted each time and visited once."""
    children = _children(node, root)
    if children is None:
        return 1
    place = id(node)
    if place in sizes:
        size = sizes[place]
        if size is None:
            raise _Unsafe
        return size
    sizes[place] = None
    total = 1 + sum(_size(child, root, sizes) for child in children)
    sizes[place] = total
    return total


def _children(node: object, root: Mapping[str, Any]) -> list[object] | None:
    if isinstance(node, list):
        return cast("list[object]", node)
    if not isinstance(node, Mapping):
        return None
    mapping = cast("Mapping[str, object]", node)
    _check_address(mapping)
    return [
        _target(value, root) if key in _REFERENCES and isinstance(value, str) else value
        for key, value in mapping.items()
    ]


def _check_address(node: Mapping[str, object]) -> None:
    """An address of its own changes what references mean, unless it only names the version of JSON Schema."""
    dialect = node.get("$schema")
    if isinstance(dialect, str) and not dialect.startswith(_METASCHEMAS):
        raise _Unsafe
    if isinstance(node.get("$id"), str) and any(name in str(node) for name in _REFERENCES):
        raise _Unsafe


def _target(reference: str, root: Mapping[str, Any]) -> object:
    """The part of the schema that a reference such as `#/$defs/order` names."""
    if not reference.startswith("#/"):
        raise _Unsafe
    place: Any = root
    for part in reference[2:].split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(place, Mapping) or name not in place:
            raise _Unsafe
        place = cast("Mapping[str, Any]", place)[name]
    return place
