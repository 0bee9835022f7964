"""Read-only views of JSON, which the engine gets instead of dicts and lists.

Templates can use every Python attribute without a leading underscore. A view has four of them, for mappings, and
all of them only read. Values inside are wrapped when they are accessed, so the cost does not depend on the size.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, cast

from failwell.workflows.template.lookup import NEVER_RAN
from failwell.workflows.template.memory_budget import note_undefined

LARGEST_NATIVE = 2**63 - 1
"""The engine rounds or refuses some whole numbers beyond 64 bits."""


def view(value: object) -> Any:
    """`value`, in a view if it could be changed."""
    kind = type(value)
    if kind is dict:
        return MapView(value)
    if kind is list or kind is tuple:
        return ListView(value)
    if kind is int and not -LARGEST_NATIVE <= cast("int", value) <= LARGEST_NATIVE:
        return BigNumber(cast("int", value))
    return value


class MissingValue:
    """The type of `MISSING_VALUE`, which templates get for what does not exist."""

    __slots__ = ()

    def __str__(self) -> str:
        note_undefined()
        return ""

    def __bool__(self) -> bool:
        note_undefined()
        return False

    def __eq__(self, other: object) -> bool:
        note_undefined()
        return False

    __hash__ = None  # pyright: ignore[reportAssignmentType] - it is no key


MISSING_VALUE: Final = MissingValue()
"""An undefined value, as filters receive it. The engine treats it as an object; using it is a mistake."""


def is_missing(value: object) -> bool:
    """Whether `value` is undefined, or a step that has not run."""
    return value is MISSING_VALUE or value is NEVER_RAN


class BigNumber:
    """A whole number that the template engine would round. It is only an object there; operators and filters know it."""

    __slots__ = ("_of",)

    def __init__(self, of: int) -> None:
        self._of = of

    def __str__(self) -> str:
        return str(self._of)

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return self._of == behind(other)

    def __hash__(self) -> int:
        return hash(self._of)


_TYPE_NAMES: tuple[tuple[Any, str], ...] = (
    (bool, "boolean"), (str, "text"), ((int, float), "number"), ((list, tuple), "list"), (dict, "mapping"),
)  # fmt: skip


def type_name(value: object) -> str:
    """The type of a value, as messages name it."""
    plain = behind(value)
    if plain is None:
        return "null"
    return next((name for kind, name in _TYPE_NAMES if isinstance(plain, kind)), "object")


def behind(value: Any) -> Any:
    """The value behind a view; any other value itself."""
    return value._of if isinstance(value, _View | BigNumber) else value  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - of its own family


def is_view(value: object) -> bool:
    """Whether `value` is a view, and so within the size limits."""
    return isinstance(value, _View)


def unwrapped(value: Any) -> Any:
    """The JSON behind a view, and behind views inside values that the template created."""
    if isinstance(value, _View | BigNumber):
        return behind(value)
    if isinstance(value, list | tuple):
        return [unwrapped(part) for part in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: unwrapped(part) for key, part in cast("dict[Any, Any]", value).items()}
    return value


class _ViewMethod:
    """A method that a template may call. Its text is a fixed word instead of an address."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __get__(self, of: "MapView | None", owner: type) -> Any:
        return self if of is None else _Bound(self._function, of)


class _Bound:
    __slots__ = ("_function", "_self")

    def __init__(self, function: Callable[..., Any], of: "MapView") -> None:
        self._function = function
        self._self = of

    def __call__(self, *args: Any) -> Any:
        return self._function(self._self, *args)

    def __str__(self) -> str:
        return "<method>"


class _View:
    __slots__ = ("_of",)

    def __init__(self, of: Any) -> None:
        self._of = of

    def __len__(self) -> int:
        return len(self._of)

    def __str__(self) -> str:
        return repr(self._of)

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return self._of == (other._of if isinstance(other, _View) else other)

    __hash__ = None  # pyright: ignore[reportAssignmentType] - as of the dict or list behind it


class MapView(_View):
    """A mapping that templates can only read."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        value: object = self._of[key]
        kind = type(value)
        return value if kind is str else view(value)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._of)

    def __contains__(self, key: object) -> bool:
        return key in self._of

    def _keys(self) -> Any:
        return list(self._of)

    def _values(self) -> Any:
        return [view(value) for value in self._of.values()]

    def _items(self) -> Any:
        return [(key, view(value)) for key, value in self._of.items()]

    def _get(self, key: Any, default: Any = None) -> Any:
        return self[key] if key in self._of else default

    keys = _ViewMethod(_keys)
    values = _ViewMethod(_values)
    items = _ViewMethod(_items)
    get = _ViewMethod(_get)


class ListView(_View):
    """A list that templates can only read."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> Any:
        return view(self._of[index])

    def __iter__(self) -> Iterator[Any]:
        return map(view, self._of)

    def __lt__(self, other: Any) -> bool:
        return self._of < unwrapped(other)

    def __gt__(self, other: Any) -> bool:
        return self._of > unwrapped(other)


# The engine tests this before it treats a value as a list.
cast("Any", Sequence).register(ListView)
