"""Claims of effects: what a store keeps of each, and the faults that a second caller gets.

A claim is taken before the effect and completed with its result after it. A store decides in one step who
takes it, so of several callers with the same key one runs the effect.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, Self

from failwell.errors.axes import ActionKind, Certainty
from failwell.errors.facts import UserAction
from failwell.errors.fault import Fault
from failwell.errors.faults import Session
from failwell.errors.frozen import frozen

ClaimStatus = Literal["running", "done", "unclear"]
"""`unclear`: it was begun, and whether it happened is unknown."""
STATUSES: tuple[ClaimStatus, ...] = ("running", "done", "unclear")


@frozen
class EffectKey:
    """What identifies one effect: the name of the function, the scope, and the key within it."""

    id: str
    name: str
    scope: str
    key: str

    @property
    def text(self) -> str:
        """The three parts in one line."""
        return "/".join(part for part in (self.name, self.scope, self.key) if part)


@frozen
class Claim:
    """One claim as the store has it. Times are seconds since the epoch."""

    effect: EffectKey
    status: ClaimStatus
    token: str
    """Who may complete it: another one each time the claim is taken."""
    started: float
    arguments: Mapping[str, str]
    """Digests of the arguments by name."""
    ended: float | None = None
    expires: float | None = None
    result: str | None = None
    """JSON; `None` if the function returned something that JSON cannot hold."""
    kind: str | None = None
    """How it failed; `None` if its process died."""
    pid: int | None = None
    is_own: bool = False
    """Whether this caller has just taken it."""

    @property
    def id(self) -> str:
        """The id of the effect."""
        return self.effect.id


class ClaimWatch(Protocol):
    """Waits for the next change of any claim in a store."""

    def __enter__(self) -> Self:
        """Begin to watch. Read the claim once after this."""
        ...

    def __exit__(self, *_: object) -> None:
        """Stop watching."""
        ...

    @property
    def interval(self) -> float:
        """Seconds after which the claim is read again although nothing was noticed."""
        ...

    def fileno(self) -> int | None:
        """What an event loop can wait on; `None` if the store has to be polled."""
        ...

    def wait(self, seconds: float) -> bool:
        """Block until something changed, or `seconds` pass."""
        ...

    def drain(self) -> None:
        """Forget the changes that were noticed."""
        ...


class ClaimStore(Protocol):
    """Where claims are kept. Its methods may be called from any thread, and raise a `Fault` if they fail."""

    def claim(self, effect: EffectKey, arguments: Mapping[str, str]) -> Claim:
        """Take the claim if nobody has it, in one step; else return it as it is."""
        ...

    def take_over(self, claim: Claim) -> Claim | None:
        """Take an unclear claim, in one step; `None` if somebody else changed it first."""
        ...

    def complete(self, claim: Claim, result: str | None, keep: float | None) -> bool:
        """Store the result. `False` if the claim is no longer the caller's."""
        ...

    def mark_unclear(self, claim: Claim, kind: str | None) -> bool:
        """Record that nobody knows whether it happened. `False` if the claim is no longer the caller's."""
        ...

    def release(self, claim: Claim) -> bool:
        """Delete the claim, so that the effect may be run. `False` if it was changed meanwhile."""
        ...

    def get(self, effect: str) -> Claim | None:
        """The claim with this id."""
        ...

    def claims(self, statuses: Sequence[str] = (), limit: int | None = None) -> list[Claim]:
        """Claims with one of these statuses, or all, newest first."""
        ...

    def watch(self) -> ClaimWatch:
        """Something that waits for changes."""
        ...


class EffectUnclear(Fault, kind="tool.interrupted"):
    """The effect was begun before, and whether it happened is unknown. It was not run again."""

    tool: str
    claim: str
    reason: str
    may_have_run: bool = True

    def summary(self) -> str:
        return f"`{self.tool}` was begun before and {self.reason}; whether it happened is unknown, so it was not run again"


class EffectBusy(Fault, kind="tool.busy"):
    """Another caller runs the same effect at the moment."""

    tool: str
    claim: str

    def summary(self) -> str:
        return f"another call of `{self.tool}` with the same key has not ended yet; nothing was done"


class EffectMismatch(Fault, kind="tool.input_invalid"):
    """The key was used before, with other arguments."""

    tool: str
    claim: str
    parameter: str
    """The arguments that differ."""

    def summary(self) -> str:
        return f"`{self.tool}` was called before with the same key and another {self.parameter}; nothing was done"


class EffectKeyInvalid(Fault, kind="tool.input_invalid"):
    """The arguments give no key."""

    tool: str
    parameter: str
    reason: str

    def summary(self) -> str:
        return f"`{self.tool}` was not called: its key needs `{self.parameter}`, {self.reason}"


class EffectResultLost(Fault, kind="tool.output_malformed"):
    """The effect happened, and its result is not JSON, so it could not be stored."""

    tool: str
    claim: str
    reason: str

    def summary(self) -> str:
        return f"`{self.tool}` did its work, and its result could not be stored: {self.reason}"


class UnknownEffect(Session, kind="session.no_snapshot"):
    """No effect with this id is recorded here."""

    effect: str
    near: list[str] | None = None

    def summary(self) -> str:
        return f"no effect `{self.effect}` is recorded here"


def unclear_fault(claim: Claim) -> EffectUnclear:
    """The fault for a claim of which nobody knows whether its effect happened."""
    reason = "its process died" if claim.kind is None else f"failed with {claim.kind}"
    return EffectUnclear(
        tool=claim.effect.name,
        claim=claim.id,
        reason=reason,
        certainty=Certainty.UNKNOWN,
        user_action=UserAction(
            ActionKind.CHECK_OUTCOME,
            f"check whether it happened, then run `failwell effects settle {claim.id} --result JSON` if it did, "
            f"or `failwell effects release {claim.id}` if it did not",
        ),
    )


def busy_fault(claim: Claim) -> EffectBusy:
    """The fault for a claim whose holder has not ended in time."""
    return EffectBusy(tool=claim.effect.name, claim=claim.id, certainty=Certainty.NOT_SENT)


def lost_fault(claim: Claim, reason: str) -> EffectResultLost:
    """The fault for an effect that happened and whose result is gone."""
    return EffectResultLost(
        tool=claim.effect.name,
        claim=claim.id,
        reason=reason,
        certainty=Certainty.DONE_BUT_LOST,
        user_action=UserAction(
            ActionKind.CONTACT_SUPPORT,
            "return JSON values from the function: dictionaries with texts as keys, lists, texts, numbers, booleans or None",
        ),
    )


def mismatch_fault(claim: Claim, names: Sequence[str]) -> EffectMismatch:
    """The fault for a key that was used before with other arguments."""
    return EffectMismatch(
        tool=claim.effect.name,
        claim=claim.id,
        parameter=", ".join(names),
        certainty=Certainty.NOT_SENT,
        user_action=UserAction(
            ActionKind.CHANGE_INPUT,
            "repeat the call with the same arguments, or use another key for another effect",
        ),
    )


def claim_dict(claim: Claim) -> dict[str, Any]:
    """A claim as JSON-safe values for a listing, without digests and without the result."""
    from datetime import UTC, datetime

    def time(seconds: float | None) -> str | None:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")

    effect = claim.effect
    values = {
        "id": claim.id,
        "tool": effect.name,
        "scope": effect.scope or None,
        "key": effect.key,
        "status": claim.status,
        "started": time(claim.started),
        "ended": time(claim.ended),
        "expires": time(claim.expires),
        "kind": claim.kind,
        "pid": claim.pid,
    }
    return {name: value for name, value in values.items() if value is not None}
