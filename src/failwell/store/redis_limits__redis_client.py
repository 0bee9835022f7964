"""The part of a Redis client that is used here: scripts, and a channel. The client is the caller's own object."""

from collections.abc import Sequence
from inspect import iscoroutinefunction
from typing import Any, cast

from failwell.errors.axes import Certainty
from failwell.store.faults__journal_faults import StoreUnavailable


class RedisClient:
    """A client of the caller. Whatever it raises becomes `StoreUnavailable`."""

    def __init__(self, client: Any, prefix: str) -> None:
        """Keep the client; nothing is sent.

        Raises:
            TypeError: it is not a blocking client of redis-py, or one with the same methods.
        """
        evaluate = getattr(client, "eval", None)
        if not callable(evaluate) or iscoroutinefunction(getattr(client, "execute_command", evaluate)):
            raise TypeError("pass a blocking client, such as `redis.Redis(host=…)`, not an asynchronous one")
        self.client = client
        self._prefix = prefix

    def key(self, *parts: str) -> str:
        """The name of a key or channel."""
        return ":".join((self._prefix, *parts))

    def run(self, script: str, keys: Sequence[str], *args: str | float) -> Any:
        """What a script returns, with texts for bytes.

        Raises:
            StoreUnavailable: the server or the client refuses.
        """
        try:
            reply: object = self.client.eval(script, len(keys), *keys, *args)
        except Exception as error:  # no class of the client is known here
            raise unavailable() from error
        return texts(reply)


def unavailable() -> StoreUnavailable:
    """The fault for a Redis that does not answer."""
    return StoreUnavailable(message="Redis could not be used", certainty=Certainty.UNKNOWN)


def texts(value: object) -> Any:
    """`value` with texts in place of bytes, inside lists too."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, list | tuple):
        return [texts(part) for part in cast("list[object]", value)]
    return value
