"""What a chain is made of: its entries, and how it behaves beyond them."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from failwell.decision.backoff import Backoff
from failwell.decision.breaker import Called
from failwell.decision.match import Match
from failwell.decision.policy import IN_PROCESS_LIMIT, Policy, Rule, Schedule
from failwell.fault.frozen import frozen
from failwell.runtime.handover import neutral

CHAIN_BACKOFF = Backoff(first=0.25, longest=8.0, jitter=0.2)


@frozen
class Entry:
    """One way to make the call: who answers, with which model, and how often to try."""

    provider: str
    model: str
    call: Callable[..., Any]
    """Any callable: a plain function, an async one, or one that returns a stream."""
    attempts: int = 1
    backoff: Backoff = CHAIN_BACKOFF
    capabilities: frozenset[str] | None = None
    """What this entry can do; `None` when nobody said, which is taken for everything."""
    account: str = ""
    credential: Callable[[], Any] | None = None
    """Looks up the key before every attempt; `call` is given it as the keyword `credential`."""

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError(f"entry {self.provider}/{self.model}: `attempts` must be at least 1")

    @property
    def called(self) -> Called:
        """Who is called, for breakers and cool-downs."""
        return Called(self.provider, self.account, self.model)

    def lacks(self, needs: Iterable[str]) -> list[str]:
        """What a call needs and this entry cannot do."""
        return [] if self.capabilities is None else sorted(set(needs) - self.capabilities)

    def policy(self, limit: float = IN_PROCESS_LIMIT) -> Policy:
        """The entry's own attempts and waits as a policy; a told wait beyond `limit` is not slept."""
        schedule = Schedule(max_attempts=self.attempts, backoff=self.backoff)
        rule = Rule(match=Match(), schedule=schedule, name=f"entry {self.provider}/{self.model}")
        return Policy(rules=(rule,), in_process_limit=limit)


@frozen
class ChainPolicy:
    """How a chain behaves beyond its entries."""

    cooldown: float = 30.0
    """Seconds that whoever is to blame for a rate limit is passed over."""
    idempotent: bool | None = None
    """Whether a repeat is harmless although the outcome is unknown."""
    keyed: bool = False
    """Whether the calls send `idempotency_key()`; see `Retrying`."""
    longest_wait: float = 8.0
    """A longer wait than this is not waited for while there is another entry."""
    refresh: Callable[[str], bool | Awaitable[bool]] | None = None
    """Renews a provider's credentials; tried once per provider until a call works, `True` if it worked."""
    before: Callable[[Entry], object] | None = None
    """Called before every attempt; raising stops the chain, which is how a limit of your own says no."""
    handover: Callable[[tuple[Any, ...], Mapping[str, Any]], tuple[tuple[Any, ...], dict[str, Any]]] = neutral
    """Makes the arguments fit for another provider than the one called last."""
    usage: Callable[[Any], Mapping[str, int]] | None = None
    """Reads the tokens off a reply, a chunk or an exception; by default the common shapes are known."""

    def __post_init__(self) -> None:
        if not (self.cooldown >= 0 and self.longest_wait >= 0):
            raise ValueError("`cooldown` and `longest_wait` must not be negative")
