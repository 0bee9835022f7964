"""Read-only views of JSON: what the engine is given instead of dicts and lists.

The engine reaches whatever Python attribute does not start with an underscore. A view has four such
names, for mappings, and all of them read. What is inside is wrapped when it is asked for, so a view
of something large costs as much as a view of something small.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any


def view(value: Any) -> Any:
    """`value`, in a view if it could be changed."""
    kind: Any = type(value)
    if kind is dict:
        return MapView(value)
    return ListView(value) if kind is list or kind is tuple else value


def unwrapped(value: Any) -> Any:
    """The JSON behind a view, and behind views inside of what the engine made itself."""
    kind: Any = type(value)
    if kind is MapView or kind is ListView:
        return value._of
    if kind is list or kind is tuple:
        return [unwrapped(part) for part in value]
    if kind is dict:
        return {key: unwrapped(part) for key, part in value.items()}
    return value


class _Reads:
    """A method that a template may call. Written out, it is a word and not an address."""

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
    """A mapping that can only be read."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        value = self._of[key]
        kind: Any = type(value)
        return MapView(value) if kind is dict else ListView(value) if kind is list else value

    def __iter__(self) -> Iterator[Any]:
        return iter(self._of)

    def __contains__(self, key: object) -> bool:
        return key in self._of

    keys = _Reads(lambda of: list(of._of))
    values = _Reads(lambda of: [view(value) for value in of._of.values()])
    items = _Reads(lambda of: [(key, view(value)) for key, value in of._of.items()])
    get = _Reads(lambda of, key, default=None: of[key] if key in of._of else default)


class ListView(_View):
    """A list that can only be read."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> Any:
        return view(self._of[index])

    def __iter__(self) -> Iterator[Any]:
        return map(view, self._of)

    def __lt__(self, other: Any) -> bool:
        return self._of < unwrapped(other)

    def __gt__(self, other: Any) -> bool:
        return self._of > unwrapped(other)


# The engine asks for this before it takes something for a list.
Sequence.register(ListView)
