"""The idempotency key of a call that may be repeated: the same in each of its attempts."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from os import urandom


class KeyHolder:
    """The idempotency key of one operation that is retried; it is generated on first use."""

    __slots__ = ("outer", "pinned", "value")

    def __init__(self, value: str | None = None, outer: "KeyHolder | None" = None) -> None:
        self.value = value
        self.outer = outer
        self.pinned = value is not None
        """Whether it was set from outside; the loops below then use it too."""


_key: ContextVar[KeyHolder | None] = ContextVar("failwell_key", default=None)
current_key = _key.get
set_key = _key.set
reset_key = _key.reset


def idempotency_key() -> str:
    """The key of the operation this runs in: the same in each of its attempts.

    A server that knows the key does the work once however often it is called, so a call whose reply got lost
    may be repeated. Outside any loop every call makes a new key.
    """
    holder = _key.get()
    if holder is None:
        return urandom(16).hex()
    if holder.value is None:
        holder.value = urandom(16).hex()
    return holder.value


@contextmanager
def keyed(key: str) -> Generator[None]:
    """Make `key` the idempotency key of everything in the block, across loops, processes and days.

    Raises:
        ValueError: the key is empty.
    """
    if not key:
        raise ValueError("an idempotency key must not be empty")
    token = _key.set(KeyHolder(key, _key.get()))
    try:
        yield
    finally:
        _key.reset(token)
