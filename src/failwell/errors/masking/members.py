"""Values under the name of a secret in data: members of mappings, and pairs of a header and its value."""

from itertools import islice
from typing import cast

from failwell.errors.masking.secret_names import (
    NameClass,
    class_of,
    is_plural,
    is_secret,
    stands_in_for_a_secret,
)

_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie"})
_PRIVATE = frozenset({"d", "k", "p", "q", "dp", "dq", "qi"})
"""Private members of a JSON web key."""
_LARGEST_COUNT = 99_999
_SEQUENCES = (list, tuple, set, frozenset)


def is_secret_member(name: str, value: object) -> bool:
    """Whether the value of the member `name` must be masked as a whole."""
    under = class_of(name)
    if under is NameClass.NONE or value is None or type(value) is bool:
        return False
    if issubclass(type(value), str):
        text = str.__str__(cast("str", value))
        # In data, a name that means a secret is enough, however plain the value looks.
        if under is not NameClass.PLAUSIBLE:
            return not stands_in_for_a_secret(text)
        return _is_secret_text(name, text, under)
    if under is NameClass.PLAUSIBLE:
        return _has_secret_item(value) or (is_plural(name) and _has_secret_value(value))
    kind = type(value)
    if kind is int or kind is float:
        return under is NameClass.PASSWORD or abs(cast("float", value)) > _LARGEST_COUNT
    # An empty container holds nothing; anything else under such a name is taken for a secret.
    return bool(value) if any(kind is each for each in (*_SEQUENCES, dict)) else True


def name_in(table: object, name: str) -> str:
    """What the member `name` of `table` is called, where another member says more about it than its own name."""
    if type(table) is not dict:
        return name
    members = cast("dict[object, object]", table)
    if name in ("value", "val", "contents"):
        # `{"name": "DB_PASSWORD", "value": …}`, as manifests, forms and recorded requests have it.
        label = next(
            (members[key] for key in ("name", "key", "header", "field", "label") if key in members), None
        )
        return label if type(label) is str else name
    if name == "token" and "logprob" in members:
        # A piece of a model's text.
        return "logprob"
    return "private_key" if name in _PRIVATE and "kty" in members else name


def _has_secret_value(value: object) -> bool:
    if type(value) is not dict:
        return False
    values = islice(cast("dict[object, object]", value).values(), 100)
    return any(type(item) is str and is_secret(item, NameClass.SECRET, is_quoted=True) for item in values)


def is_secret_pair(value: object) -> bool:
    """Whether `value` is a header and its value, as in `("authorization", "Bearer …")`, and a secret."""
    if type(value) is not list and type(value) is not tuple:
        return False
    pair = cast("list[object]", value)
    if len(pair) < 2 or type(pair[0]) is not str or not issubclass(type(pair[1]), str):
        return False
    # HTTP/2 libraries add whether a header may be stored.
    if len(pair) > 3 or (len(pair) == 3 and type(pair[2]) is not bool):
        return False
    under = class_of(pair[0])
    if under not in (NameClass.SECRET, NameClass.PASSWORD):
        return False
    # Names stand side by side, too: ("password", "email").
    return _is_secret_text(pair[0], str.__str__(cast("str", pair[1])), NameClass.SECRET)


def _has_secret_item(value: object) -> bool:
    kind = type(value)
    if not any(kind is each for each in _SEQUENCES):
        return False
    # More of them are cut anyway.
    items = islice(cast("list[object]", value), 100)
    return any(type(item) is str and is_secret(item, NameClass.PLAUSIBLE, is_quoted=True) for item in items)


def _is_secret_text(name: str, value: str, under: NameClass) -> bool:
    if name.lower() in _HEADERS:
        under = NameClass.PASSWORD
    return is_secret(value, under, is_quoted=True)
