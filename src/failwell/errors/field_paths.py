"""Paths to invalid fields. Names that a schema declares are shown; keys of the data are not.

A key of a free-form object can be an address, a number or whatever else somebody keys data by. Everybody may see
the name of a field, so only operators see the whole path, in the details.
"""

from collections.abc import Container, Iterable
from itertools import islice, pairwise

from failwell.errors.lazy_regex import lazy_regex

KEY = "(key)"
"""Stands in a path for a key of the data."""
WHOLE = "(whole)"
_NAME = lazy_regex(r"[A-Za-z_][A-Za-z0-9_]{0,40}")
_LARGEST_INDEX = 999
"""A larger number is taken for a key, such as a customer's."""
_MOST = 20
_LONGEST = 60


def whole_path(parts: Iterable[object]) -> str:
    """The path with the keys of the data, for operators."""
    return ".".join(str(part)[:_LONGEST] for part in islice(parts, _MOST)) or WHOLE


def field_path(parts: Iterable[object], declared: Container[str] | None = None) -> str:
    """The path with `(key)` for each key of the data.

    Args:
        parts: Names, keys and indices, the outermost first.
        declared: The names that the schema declares; without them, what looks like the name of a field is one.
    """
    return ".".join(_shown(part, declared) for part in islice(parts, _MOST)) or WHOLE


def _shown(part: object, declared: Container[str] | None) -> str:
    if type(part) is int:
        return str(part) if 0 <= part <= _LARGEST_INDEX else KEY
    if type(part) is not str:
        return KEY
    is_name = _NAME.fullmatch(part) is not None if declared is None else part in declared
    return part[:_LONGEST] if is_name else KEY


def declared_names(schema_path: Iterable[object]) -> set[str]:
    """The names of fields on a way through a JSON Schema: what follows `properties` is one."""
    steps = pairwise(islice(schema_path, 5 * _MOST))
    return {name for keyword, name in steps if keyword == "properties" and isinstance(name, str)}


def field_details(pairs: Iterable[tuple[str, str, str]]) -> dict[str, dict[str, str]]:
    """The details of invalid fields, each a path, a whole path and a broken rule.

    `fields` is for everybody; `paths` is there if a path has a key of the data, and for operators.
    """
    fields: dict[str, str] = {}
    paths: dict[str, str] = {}
    for path, whole, rule in pairs:
        fields[path] = rule
        paths[whole] = rule
    return {"fields": fields} if fields == paths else {"fields": fields, "paths": paths}
