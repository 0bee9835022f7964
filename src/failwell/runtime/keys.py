"""One idempotency key per operation, made outside its loop: every attempt sends the same one.

A server that knows the key does the work once however often it is asked, so a reply that got lost
may be asked for again. Loops make the key when it is first wanted; `keyed` brings one from outside,
such as the number of an order, which then holds across loops, processes and days.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from os import urandom


class OneKey:
    """The key of one operation; it does not exist before somebody asks."""

    __slots__ = ("around", "pinned", "value")

    def __init__(self, value: str | None = None, around: "OneKey | None" = None) -> None:
        self.value = value
        self.around = around
        self.pinned = value is not None
        """Whether it was brought from outside, so that loops below use it too."""


_key: ContextVar[OneKey | None] = ContextVar("failwell_key", default=None)
current = _key.get
put = _key.set
take_back = _key.reset


def idempotency_key() -> str:
    """The key of the operation this runs in: the same in each of its attempts.

    Outside any loop every call makes a new one.
    """
    held = _key.get()
    if held is None:
        return urandom(16).hex()
    if held.value is None:
        held.value = urandom(16).hex()
    return held.value


@contextmanager
def keyed(key: str) -> Generator[None]:
    """Let everything in the block that asks for a key get this one.

    Raises:
        ValueError: the key is empty.
    """
    if not key:
        raise ValueError("an idempotency key must not be empty")
    token = _key.set(OneKey(key, _key.get()))
    try:
        yield
    finally:
        _key.reset(token)
