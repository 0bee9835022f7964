"""Limits that processes on several machines share, in Redis. The client is the caller's own.

A change is written if nobody else has changed anything since the values were read; else it is made again. A thread
listens to a channel, so a call that is allowed asks nobody. Times are those of the server.
"""

import os
from collections.abc import Sequence
from functools import partial
from inspect import iscoroutinefunction
from threading import Event, Lock, Thread
from typing import Any, cast

from failwell.calls.clock import SYSTEM_CLOCK, Clock
from failwell.calls.shared_limits import LOST, Change, Limits
from failwell.calls.suppress import catch
from failwell.errors.axes import Certainty
from failwell.store.faults import StoreUnavailable
from failwell.store.sqlite_limits import is_first


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


_MOST_CONFLICTS = 50
_RECONNECT = 0.25
_LISTEN = 1.0
_KEEP_MS = 30 * 86_400_000
_READ = """
local time = redis.call('TIME')
return {redis.call('GET', KEYS[2]) or '0', time[1] .. '.' .. string.format('%06d', time[2]), redis.call('HGETALL', KEYS[1])}
"""
# ARGV: the version that was read, the channel, how many names to delete, these names, then names and values.
_CHANGE = """
if (redis.call('GET', KEYS[2]) or '0') ~= ARGV[1] then return -1 end
local deleted = tonumber(ARGV[3])
for i = 4, 3 + deleted do redis.call('HDEL', KEYS[1], ARGV[i]) end
for i = 4 + deleted, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
local version = redis.call('INCR', KEYS[2])
redis.call('PEXPIRE', KEYS[1], {keep})
redis.call('PEXPIRE', KEYS[2], {keep})
redis.call('PUBLISH', ARGV[2], version)
return version
""".replace("{keep}", str(_KEEP_MS))


class RedisLimits:
    """Limits in Redis: pass it as `store` to the guards and budgets of every process.

    Give the client a `socket_timeout` of a fraction of a second: so long may a call wait for a server that hangs.
    """

    def __init__(self, client: Any, *, prefix: str = "failwell:limits", clock: Clock = SYSTEM_CLOCK) -> None:
        """Nothing is sent yet.

        Args:
            client: A blocking client, such as `redis.Redis(host=…, socket_timeout=0.25)`.
            prefix: The beginning of all keys, and the name of the channel.
            clock: Where pauses between attempts to connect are spent.

        Raises:
            TypeError: the client is not a blocking one.
        """
        self._redis = RedisClient(client, prefix)
        self._keys = (self._redis.key("values"), self._redis.key("version"))
        self._channel = self._redis.key("changes")
        self._clock = clock
        self._lock = Lock()
        self._listener: tuple[int, Thread] | None = None
        self._stop = Event()
        self._ready = Event()
        self._seen = LOST

    def version(self) -> int:
        """The number of the latest change that the channel told; `LOST` while there is no connection."""
        if self._listener is None or self._listener[0] != os.getpid():
            self._listen()
        return self._seen

    def read(self) -> Limits:
        """All values."""
        version, now, pairs = self._redis.run(_READ, self._keys)
        return Limits(int(version), float(now), dict(zip(pairs[::2], pairs[1::2], strict=True)))

    def change(self, change: Change) -> int:
        """Write what `change` returns, unless the values have changed since they were read: then the change is made again."""
        for _ in range(_MOST_CONFLICTS):
            limits = self.read()
            written = change(limits.now, limits.values)
            if not written:
                return limits.version
            deleted = [name for name, value in written.items() if value is None]
            pairs = [text for name, value in written.items() if value is not None for text in (name, value)]
            version = self._redis.run(
                _CHANGE, self._keys, str(limits.version), self._channel, len(deleted), *deleted, *pairs
            )
            if version != -1:
                return version
        raise unavailable()

    def is_first(self, name: str, seconds: float) -> bool:
        """Whether nobody has asked for `name` within `seconds`, on any machine."""
        return is_first(self, name, seconds)

    def close(self) -> None:
        """Stop listening. The client stays open."""
        with self._lock:
            self._stop.set()
            self._listener = None

    # -------------------------------------------------------------- the channel

    def _listen(self) -> None:
        """Start the thread, and give it a moment to connect."""
        with self._lock:
            if self._listener is not None and self._listener[0] == os.getpid():
                return
            self._seen = LOST
            self._stop, self._ready = Event(), Event()
            thread = Thread(
                target=self._follow, args=(self._stop, self._ready), name="failwell-limits", daemon=True
            )
            self._listener = (os.getpid(), thread)
            thread.start()
        self._ready.wait(_LISTEN)

    def _follow(self, stop: Event, ready: Event) -> None:
        while not stop.is_set():
            channel, _ = catch(self._subscribe)
            while channel is not None and not stop.is_set():
                message, error = catch(partial(channel.get_message, timeout=_LISTEN))
                if error is None and message is None:
                    # Nothing was told for a while: the server may have lost what it was to tell.
                    message, error = catch(self._current)
                if error is not None:
                    break
                self._seen = _number(message)
                ready.set()
            if stop.is_set():
                break
            self._seen = LOST
            ready.set()
            if channel is not None:
                catch(channel.close)
            stop.wait(_RECONNECT)

    def _subscribe(self) -> Any:
        channel = self._redis.client.pubsub(ignore_subscribe_messages=True)
        channel.subscribe(self._channel)
        self._seen = self._current()
        self._ready.set()
        return channel

    def _current(self) -> int:
        return self.read().version


def _number(message: Any) -> int:
    """The version that a message tells."""
    value: object = cast("dict[str, Any]", message).get("data") if isinstance(message, dict) else message
    try:
        return int(texts(value))
    except (TypeError, ValueError):
        return LOST
