"""What to do about a failure: a closed set of decisions, each with its reason.

A decision is a value. Deciding is separate from acting, so a loop, a replayed workflow and a rehearsal get the
same decision from the same policy.
"""

from typing import TypeAlias, assert_never

from failwell.errors.frozen import frozen


@frozen
class Retry:
    """Make the same call again after `after` seconds."""

    after: float
    why: str
    charged: bool = True
    """Whether the failed attempt counts against those that the schedule allows."""


@frozen
class Fallback:
    """Leave this entry of a chain and try the next one, at once."""

    why: str


@frozen
class Evict:
    """Free the resource that is short, then make the same call again."""

    resource: str
    why: str


@frozen
class Shrink:
    """Shorten the messages, then make the call again, once."""

    why: str


@frozen
class Park:
    """Put the work aside until a time that is too far away to sleep for; no attempt is spent."""

    after: float
    why: str


@frozen
class Ask:
    """Only a person (or a reconcile hook) can say whether this may be repeated."""

    question: str
    why: str
    after: float = 0.0
    """Seconds to wait before the repeat, if the answer allows one."""


@frozen
class GiveUp:
    """Nothing that this policy allows would help."""

    why: str
    cancelled: bool = False
    """Whether the work was cancelled rather than failed."""
    exhausted: bool = False
    """Whether a repeat might have helped, and a limit ruled it out: attempts, seconds, money."""


Decision: TypeAlias = Retry | Fallback | Evict | Shrink | Park | Ask | GiveUp


def decision_text(decision: Decision) -> str:
    """One lower-case clause, to follow a colon."""
    match decision:
        case Retry(after=seconds, why=why):
            return f"retrying in {seconds:.1f} s, {why}" if seconds else f"retrying at once, {why}"
        case Fallback(why=why):
            return f"falling back, {why}"
        case Evict(resource=resource, why=why):
            return f"freeing {resource}, {why}"
        case Shrink(why=why):
            return f"shortening the messages, {why}"
        case Park(after=seconds, why=why):
            return f"parked for {seconds:.0f} s, {why}"
        case Ask(question=question, why=why):
            return f"asking: {question} {why}"
        case GiveUp(why=why):
            return f"giving up, {why}"
        case _:
            assert_never(decision)
