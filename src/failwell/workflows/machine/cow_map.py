"""A copy-on-write mapping, so that a state can be forked without copying it.

The newest version owns the entries. Writing to it records the previous value for the version it was forked
from. An older version that is still read builds its own copy from those records.
"""

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar
from weakref import ReferenceType, ref

_V = TypeVar("_V")
_ABSENT = object()


class CowMap(Generic[_V]):
    """A part of a run's state: a dictionary with text keys, whose forks do not see each other's writes."""

    __slots__ = ("__weakref__", "_entries", "_heir", "_older", "_undo")

    def __init__(self, entries: dict[str, _V] | None = None) -> None:
        self._entries: dict[str, _V] | None = {} if entries is None else entries
        self._heir: CowMap[_V] | None = None
        """The version that took over the entries; `None` while this one owns them."""
        self._undo: list[tuple[str, object]] = []
        """The values that the newer version has overwritten, oldest first."""
        self._older: ReferenceType[CowMap[_V]] | None = None

    def fork(self) -> "CowMap[_V]":
        """A version to write to. This one keeps what it has now."""
        newer: CowMap[_V] = CowMap()
        newer._entries, self._entries = self._own(), None
        self._heir = newer
        self._undo = []
        newer._older = ref(self)
        return newer

    def get(self, key: str) -> _V | None:
        """The entry at `key`, or `None`."""
        entries = self._entries
        return (self._own() if entries is None else entries).get(key)

    def __getitem__(self, key: str) -> _V:
        entries = self._entries
        return (self._own() if entries is None else entries)[key]

    def __contains__(self, key: object) -> bool:
        entries = self._entries
        return key in (self._own() if entries is None else entries)

    def __len__(self) -> int:
        return len(self._own())

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._own()))

    def items(self) -> list[tuple[str, _V]]:
        """Every entry, in the order of writing."""
        return list(self._own().items())

    def values(self) -> list[_V]:
        """Every value, in the order of writing."""
        return list(self._own().values())

    def __setitem__(self, key: str, value: _V) -> None:
        entries = self._entries
        if entries is None:
            entries = self._own()
        if self._older is not None:
            self._note(entries, key)
        entries[key] = value

    def update(self, entries: Mapping[str, _V]) -> None:
        """Write several entries."""
        for key, value in entries.items():
            self[key] = value

    def pop(self, key: str) -> _V | None:
        """Remove the entry at `key` and return it, or `None`."""
        entries = self._own()
        if key not in entries:
            return None
        if self._older is not None:
            self._note(entries, key)
        return entries.pop(key)

    def _note(self, entries: dict[str, _V], key: str) -> None:
        older = None if self._older is None else self._older()
        if older is None:
            self._older = None
        elif older._heir is self:  # noqa: SLF001  (another version of the same map)
            older._undo.append((key, entries.get(key, _ABSENT)))  # noqa: SLF001

    def _own(self) -> dict[str, _V]:
        if self._entries is None:
            heir = self._heir
            assert heir is not None
            entries = dict(heir._own())  # noqa: SLF001
            for key, value in reversed(self._undo):
                if value is _ABSENT:
                    entries.pop(key, None)
                else:
                    entries[key] = value  # pyright: ignore[reportArgumentType]
            self._entries = entries
            self._heir = None
            self._undo = []
        return self._entries
