"""Claims of effects in Redis, for processes on several machines. The client is the caller's own.

Scripts decide in one step on the server. A process renews a short lease while it has claims; a claim whose
lease has run out is unclear. A lease that ran out too early, as after a long pause of the process, therefore makes a
second caller stop, and never run the effect.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from threading import Event, Lock, Thread
from typing import Any, Self

from failwell.calls.argument_checks import check_number
from failwell.calls.clock import SYSTEM_CLOCK, Clock
from failwell.calls.suppress import suppress
from failwell.errors.fault import Fault
from failwell.store.effects.claims import Claim, EffectKey
from failwell.store.event import from_json, to_json
from failwell.store.redis_limits import RedisClient

POLL = 0.1
"""Seconds between two looks at a claim that another process has."""
LEASE = 15.0
"""Seconds after which a process that stopped renewing its lease counts as dead."""

_FIELDS = ("name", "scope", "key", "status", "token", "holder", "pid", "started", "ended", "expires", "arguments", "result", "kind")  # fmt: skip
_SHOW = """
local function show(claim)
  local values = redis.call('HMGET', claim, unpack(ARGV, 1, {fields}))
  values[#values + 1] = redis.call('EXISTS', KEYS[2] .. (values[6] or ''))
  for i = 1, #values do if values[i] == false then values[i] = '' end end
  return values
end
""".replace("{fields}", str(len(_FIELDS)))
# ARGV: the names of the fields, then their values for a new claim.
_CLAIM = (
    _SHOW
    + """
if redis.call('EXISTS', KEYS[1]) == 1 then return show(KEYS[1]) end
for i = 1, {fields} do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + {fields}]) end
redis.call('ZADD', KEYS[3], ARGV[8 + {fields}], KEYS[1])
return false
""".replace("{fields}", str(len(_FIELDS)))
)
_READ = _SHOW + "if redis.call('EXISTS', KEYS[1]) == 0 then return false end return show(KEYS[1])"
# ARGV: the token, then pairs of names and values, of which the first is the seconds to live.
_CHANGE = """
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then return 0 end
if ARGV[3] ~= '' and redis.call('HGET', KEYS[1], 'status') == ARGV[3] then return 0 end
for i = 4, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
if ARGV[2] ~= '' then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 1
"""
_RELEASE = """
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then return 0 end
redis.call('ZREM', KEYS[2], KEYS[1])
return redis.call('DEL', KEYS[1])
"""
_RENEW = "return redis.call('SET', KEYS[1], '1', 'PX', ARGV[1])"
# The index also names claims that have expired; they leave it here.
_INDEX = """
local names = redis.call('ZREVRANGE', KEYS[1], 0, -1)
local present = {}
for _, name in ipairs(names) do
  if redis.call('EXISTS', name) == 1 then present[#present + 1] = name else redis.call('ZREM', KEYS[1], name) end
end
return present
"""


class RedisClaims:
    """Claims in a Redis database, shared by all processes that use it. Threads may share it.

    Redis keeps claims only as safely as it is configured: use `appendonly yes` with `appendfsync always` for
    effects that must not happen twice after a power loss.
    """

    def __init__(
        self,
        client: Any,
        *,
        prefix: str = "failwell:effects",
        lease: float = LEASE,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """Nothing is sent yet.

        Args:
            client: A blocking client, such as `redis.Redis(host=…)`.
            prefix: The beginning of all keys.
            lease: Seconds after which a process that has not renewed its lease counts as dead.
            clock: Where times come from.

        Raises:
            TypeError: the client is not a blocking one.
        """
        check_number("lease", lease)
        self._redis = RedisClient(client, prefix)
        self._lease = lease
        self._clock = clock
        self._lock = Lock()
        self._held = 0
        """Claims that this process has taken and not completed."""
        self._renewal: tuple[int, str, Event] | None = None

    # -------------------------------------------------------------- taking and completing

    def claim(self, effect: EffectKey, arguments: Mapping[str, str]) -> Claim:
        """Take the claim if nobody has it; else return it as it is."""
        holder = self._holder()
        claim = Claim(
            effect=effect,
            status="running",
            token=os.urandom(8).hex(),
            started=self._clock.now().timestamp(),
            arguments=arguments,
            pid=os.getpid(),
            is_own=True,
        )
        values = (
            effect.name, effect.scope, effect.key, "running", claim.token, holder, str(claim.pid), repr(claim.started),
            "", "", to_json(arguments), "", "",
        )  # fmt: skip
        row = self._redis.run(_CLAIM, self._keys(effect.id), *_FIELDS, *values)
        if row is not None:
            return self._read(effect.id, row)
        self._count(1)
        return claim

    def take_over(self, claim: Claim) -> Claim | None:
        """Take an unclear claim; `None` if somebody else changed it first."""
        own = replace(
            claim,
            token=os.urandom(8).hex(),
            status="running",
            started=self._clock.now().timestamp(),
            ended=None,
            pid=os.getpid(),
            is_own=True,
        )
        changes = {
            "status": "running", "token": own.token, "holder": self._holder(), "pid": str(own.pid),
            "started": repr(own.started), "ended": "",
        }  # fmt: skip
        if not self._change(claim, changes, unless="done"):
            return None
        self._count(1)
        return own

    def complete(self, claim: Claim, result: str | None, keep: float | None) -> bool:
        """Store the result. `False` if the claim is no longer the caller's."""
        now = self._clock.now().timestamp()
        changes = {
            "status": "done",
            "ended": repr(now),
            "kind": "",
            "result": "" if result is None else result,
        }
        if keep is not None:
            changes["expires"] = repr(now + keep)
        is_stored = self._change(claim, changes, live="" if keep is None else str(max(1, round(keep * 1000))))
        self._count(-1)
        return is_stored

    def mark_unclear(self, claim: Claim, kind: str | None) -> bool:
        """Record that nobody knows whether it happened. `False` if the claim is no longer the caller's."""
        changes = {"status": "unclear", "ended": repr(self._clock.now().timestamp()), "kind": kind or ""}
        is_marked = self._change(claim, changes, unless="done")
        self._count(-1)
        return is_marked

    def release(self, claim: Claim) -> bool:
        """Delete the claim, so that the effect may be run. `False` if it was changed meanwhile."""
        keys = (self._redis.key("claim", claim.id), self._redis.key("index"))
        is_deleted = self._redis.run(_RELEASE, keys, claim.token) == 1
        if claim.is_own:
            self._count(-1)
        return is_deleted

    # -------------------------------------------------------------- reading

    def get(self, effect: str) -> Claim | None:
        """The claim with this id."""
        row = self._redis.run(_READ, self._keys(effect), *_FIELDS)
        return None if row is None else self._read(effect, row)

    def claims(self, statuses: Sequence[str] = (), limit: int | None = None) -> list[Claim]:
        """Claims with one of these statuses, or all, newest first."""
        claims = [claim for effect in self._ids() if (claim := self.get(effect)) is not None]
        return [claim for claim in claims if not statuses or claim.status in statuses][:limit]

    def watch(self) -> "Poll":
        """Something that waits for a moment."""
        return Poll(self._clock)

    # -------------------------------------------------------------- inside

    def _keys(self, effect: str) -> tuple[str, str, str]:
        return self._redis.key("claim", effect), self._redis.key("process", ""), self._redis.key("index")

    def _change(self, claim: Claim, changes: Mapping[str, str], *, live: str = "", unless: str = "") -> bool:
        pairs = [text for pair in changes.items() for text in pair]
        keys = (self._redis.key("claim", claim.id),)
        return self._redis.run(_CHANGE, keys, claim.token, live, unless, *pairs) == 1

    def _ids(self) -> list[str]:
        names: list[str] = self._redis.run(_INDEX, (self._redis.key("index"),))
        return [name.rpartition(":")[2] for name in names]

    def _read(self, effect: str, row: Sequence[Any]) -> Claim:
        *values, is_alive = row
        fields: dict[str, Any] = dict(zip(_FIELDS, values, strict=True))
        status = "unclear" if fields["status"] == "running" and not is_alive else fields["status"]

        def number(name: str) -> float | None:
            return float(fields[name]) if fields[name] else None

        return Claim(
            effect=EffectKey(id=effect, name=fields["name"], scope=fields["scope"], key=fields["key"]),
            status=status,
            token=fields["token"],
            started=number("started") or 0.0,
            arguments=from_json(fields["arguments"]),
            ended=number("ended"),
            expires=number("expires"),
            result=fields["result"] or None,
            kind=fields["kind"] or None,
            pid=int(fields["pid"]),
        )

    # -------------------------------------------------------------- the lease

    def _holder(self) -> str:
        """The name of this process. Its lease is there before a claim names it."""
        with self._lock:
            if self._renewal is None or self._renewal[0] != os.getpid():
                self._renewal = (os.getpid(), os.urandom(8).hex(), Event())
                self._held = 0
            name = self._renewal[1]
            if not self._held:
                self._renew(name)
            return name

    def _count(self, change: int) -> None:
        """Renew the lease in a thread as long as this process has claims."""
        with self._lock:
            if self._renewal is None:
                return
            before, self._held = self._held, max(0, self._held + change)
            pid, name, stop = self._renewal
            if not before and self._held:
                Thread(target=self._keep, args=(name, stop), name="failwell-lease", daemon=True).start()
            elif before and not self._held:
                stop.set()
                self._renewal = (pid, name, Event())

    def _keep(self, name: str, stop: Event) -> None:
        while not stop.wait(self._lease / 3):
            with suppress(Fault, reason="the lease is renewed a little later"):
                self._renew(name)

    def _renew(self, name: str) -> None:
        self._redis.run(_RENEW, (self._redis.key("process", name),), round(self._lease * 1000))


class Poll:
    """Waits for a moment, because Redis wakes nobody here."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    interval = POLL
    """Seconds after which the claim is read again."""

    def fileno(self) -> int | None:
        """Nothing that an event loop could wait on."""
        return None

    def wait(self, seconds: float) -> bool:
        """Let `seconds` pass."""
        self._clock.sleep(seconds)
        return False

    def drain(self) -> None:
        """Nothing was noticed."""
