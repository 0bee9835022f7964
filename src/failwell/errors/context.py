"""What a failure carries with it: the place of the work, and the attempts that were made.

`with scene(run=…, node=…):` names the place for everything inside, across awaits and tasks. A failure that
leaves the block is stamped with the place, so it can be described outside. A loop attaches its ledger: what was
tried, what it cost, how long it waited, and why it stopped.
"""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import fields
from functools import wraps
from math import prod
from threading import Lock
from types import TracebackType
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast

from failwell.errors.causes import LEDGER_STAMP, cause_of, instance_dict, links, stands_alone
from failwell.errors.fault import is_fault, lineage
from failwell.errors.frozen import frozen
from failwell.errors.report import NOWHERE, Attempt, Frame, Scene

_P = ParamSpec("_P")
_R = TypeVar("_R")

_PLACES = tuple(field.name for field in fields(Scene))
_BOUNDARIES = ("tool", "item", "node", "job", "turn", "workflow", "session", "capability", "run")
"""Most telling first: what a frame is named after when a block names several places."""
_SCENE_STAMP = "__failwell_stamp__"
_MOST_FRAMES = 32
_LONGEST_NAME = 200


class _Entered(NamedTuple):
    """The scene of a block that was entered, and what to go back to when it is left."""

    scene: Scene
    outside: "_Entered | None" = None


# The way back is kept in the context itself and not on the block, so tasks may share one block.
_OUTSIDE = _Entered(NOWHERE)
_current: ContextVar[_Entered] = ContextVar("failwell_scene", default=_OUTSIDE)


class Stamp:
    """What a failure carries with it: the innermost scene, and the boundaries it crossed."""

    __slots__ = ("frames", "scene")

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.frames: list[Frame] = []


def current_scene() -> Scene:
    """The scene that the running task is in."""
    return _current.get().scene


def stamps_of(error: BaseException) -> list[Stamp]:
    """What `error` carries from the scenes it left, innermost first.

    A fault has passed on what the faults below it, and the foreign exception at their end, carry too.
    """
    if not is_fault(error):
        stamp = instance_dict(error).get(_SCENE_STAMP)
        return [stamp] if stamp is not None and isinstance(stamp, Stamp) else []
    line = lineage(error)
    end = cause_of(line[-1])
    links = [*line] if end is None or is_fault(end) else [*line, end]
    stamps = [instance_dict(link).get(_SCENE_STAMP) for link in reversed(links)]
    return [stamp for stamp in stamps if isinstance(stamp, Stamp)]


def merge(nearer: Scene, farther: Scene) -> Scene:
    """The places of `nearer`, completed by those of `farther`."""
    if farther is NOWHERE or nearer is farther:
        return nearer
    if nearer is NOWHERE:
        return farther
    known = {
        name: value if (value := getattr(nearer, name)) is not None else getattr(farther, name)
        for name in _PLACES
    }
    return Scene(**known)


class _Block:
    """One `with scene(...)`: reusable, re-entrant, and a decorator for plain and async functions."""

    def __init__(self, places: dict[str, Any]) -> None:
        self._places = places

    def __enter__(self) -> Scene:
        outside = _current.get()
        entered = merge(Scene(**self._places), outside.scene)
        _current.set(_Entered(entered, outside))
        return entered

    def __exit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        left = _current.get()
        if left.outside is not None:
            _current.set(left.outside)
        if error is not None:
            _stamp(error, left.scene, self._frame(left.scene))

    def _frame(self, left: Scene) -> Frame | None:
        boundary = next((place for place in _BOUNDARIES if place in self._places), None)
        if boundary is None:
            return None
        return Frame(
            boundary=boundary,
            name=self._places[boundary],
            workflow=left.workflow,
            iteration=left.attempt,
            item=left.item,
        )

    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, _R]:
        from inspect import iscoroutinefunction

        if iscoroutinefunction(function):

            @wraps(function)
            async def entered_async(*args: Any, **kwargs: Any) -> Any:
                with _Block(self._places):
                    return await cast("Any", function)(*args, **kwargs)

            return cast("Callable[_P, _R]", entered_async)

        @wraps(function)
        def entered(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            with _Block(self._places):
                return function(*args, **kwargs)

        return entered


def scene(
    *,
    run: str | None = None,
    workflow: str | None = None,
    node: str | None = None,
    item: str | None = None,
    job: str | None = None,
    capability: str | None = None,
    instance: str | None = None,
    session: str | None = None,
    turn: str | None = None,
    tool: str | None = None,
    attempt: int | None = None,
) -> _Block:
    """Name the place that the block (or the decorated function) works in."""
    places: dict[str, Any] = {
        "run": run, "workflow": workflow, "node": node, "item": item, "job": job, "capability": capability,
        "instance": instance, "session": session, "turn": turn, "tool": tool, "attempt": attempt,
    }  # fmt: skip
    return _Block(
        {
            name: value if name == "attempt" else str(value)[:_LONGEST_NAME]
            for name, value in places.items()
            if value is not None
        }
    )


def _stamp(error: BaseException, left: Scene, frame: Frame | None) -> None:
    stamp = instance_dict(error).get(_SCENE_STAMP)
    if not isinstance(stamp, Stamp):
        stamp = instance_dict(error)[_SCENE_STAMP] = Stamp(left)
    else:
        stamp.scene = merge(stamp.scene, left)
    if frame is not None and len(stamp.frames) < _MOST_FRAMES:
        stamp.frames.append(frame)


_DEEPEST_CAUSE = 12
_UNSURE = ("unknown", "partial", "done_but_lost")
_LOCK = Lock()
ledgers_attached = [0]
"""How many ledgers were attached so far: an exception that is raised again later carries an old one."""


@frozen
class Skipped:
    """An entry that was passed over without a call."""

    before: int
    """The number of the attempt that came next."""
    provider: str
    model: str
    reason: str


class Layer(NamedTuple):
    """One of several loops inside each other."""

    name: str
    calls: int
    """Calls that it makes at most, each of which may be a whole loop of the next layer."""
    is_sdk: bool = False
    """Whether a vendor's client makes them by itself."""


@frozen
class Ledger:
    """The calls of one operation, in order, those of the loops inside it included, and why it stopped."""

    layer: str
    """The name of the loop."""
    attempts: tuple[Attempt, ...] = ()
    stopped: str = ""
    """Why no further attempt was made."""
    skipped: tuple[Skipped, ...] = ()
    """Entries that were not called at all; they spend no attempt."""
    most: int = 0
    """Calls that the loop itself makes at most."""
    inside: tuple[Layer, ...] = ()
    """The loops inside this one, the outermost first."""
    delivered: bool = False
    """Whether the caller had received part of the result when it failed, so that no loop may repeat it."""

    @property
    def layers(self) -> tuple[Layer, ...]:
        """This loop and those inside it, the outermost first: their calls multiply."""
        return (Layer(self.layer, self.most), *self.inside)

    @property
    def exhausted(self) -> bool:
        """Whether a limit ended it, so that a loop around it should not begin again."""
        return bool(self.attempts) and self.attempts[-1].exhausted is True

    @property
    def nested(self) -> tuple[str, ...]:
        """The product of loops inside each other: ``("`node` × `ask`: 3 × 3 = up to 9 calls",)``."""
        return (product(self.layers),) if self.inside else ()

    @property
    def waited(self) -> float:
        """Seconds waited between attempts."""
        return sum(attempt.wait or 0.0 for attempt in self.attempts)

    @property
    def cost(self) -> int:
        """Micro-cents of all priced attempts, failed ones included."""
        return sum(attempt.cost or 0 for attempt in self.attempts)

    @property
    def usd(self) -> float:
        """The cost in US dollars."""
        return self.cost / 100_000_000

    @property
    def may_have_been_billed(self) -> int:
        """How many attempts may have been billed: their outcome is unknown."""
        return sum(1 for attempt in self.attempts if attempt.certainty in _UNSURE and attempt.cost is None)

    @property
    def unpriced(self) -> int:
        """How many attempts reported tokens for which no price is known."""
        return sum(1 for attempt in self.attempts if attempt.usage and attempt.cost is None)

    def table(self) -> str:
        """The ledger as lines of text."""
        with_layers = len({attempt.layer for attempt in self.attempts}) > 1
        rows = [("#", "layer" if with_layers else "", "kind", "provider", "model", "waited", "cost", "")]
        left = list(self.skipped)
        for attempt in self.attempts:
            rows += [
                _skip_row(left.pop(0)) for skip in self.skipped if left and skip.before <= attempt.number
            ]
            rows.append(_row(attempt, attempt.layer if with_layers else None))
        rows += [_skip_row(skip) for skip in left]
        from failwell.errors.text_table import aligned

        return "\n".join([*aligned(rows), *self._footer()])

    def _footer(self) -> list[str]:
        lines = [f"stopped: {self.stopped}"] if self.stopped else []
        if self.may_have_been_billed:
            lines.append(f"may have been billed: {self.may_have_been_billed} without a known outcome")
        lines += [f"nested loops: {text}" for text in self.nested]
        return lines


def product(layers: Sequence[Layer]) -> str:
    """What the ledger says that loops inside each other add up to, for people."""
    names = " × ".join(f"`{layer.name}`" for layer in layers)
    factors = " × ".join(str(layer.calls) for layer in layers)
    return f"{names}: {factors} = up to {prod(layer.calls for layer in layers)} calls"


def _row(attempt: Attempt, layer: str | None) -> tuple[str, ...]:
    cost = "" if attempt.cost is None else f"{attempt.cost / 1e8:.6f} $"
    return (
        str(attempt.number),
        layer or "",
        attempt.kind or "ok",
        attempt.provider or "",
        attempt.model or "",
        "" if attempt.wait is None else f"{attempt.wait:.1f} s",
        "no price" if attempt.usage and attempt.cost is None else cost,
        attempt.reason or "",
    )


def _skip_row(skipped: Skipped) -> tuple[str, ...]:
    return ("-", "", "skipped", skipped.provider, skipped.model, "", "", skipped.reason)


class _Attached:
    """A ledger on an exception, and when it was put there. It travels with the exception that carries it."""

    __slots__ = ("ledger", "order")

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        with _LOCK:
            ledgers_attached[0] += 1
            self.order = ledgers_attached[0]

    def __reduce__(self) -> tuple[type["_Attached"], tuple[Ledger]]:
        # Made again where it arrives: the order of another process means nothing here.
        return _Attached, (self.ledger,)


def attach(error: BaseException, ledger: Ledger) -> None:
    """Let `error` carry its ledger, so that `describe` finds the attempts."""
    instance_dict(error)[LEDGER_STAMP] = _Attached(ledger)


def ledger_of(error: BaseException) -> Ledger | None:
    """The ledger that a loop attached to `error`, if any."""
    attached = instance_dict(error).get(LEDGER_STAMP)
    return attached.ledger if isinstance(attached, _Attached) else None


def inner_ledger(error: BaseException, since: int) -> Ledger | None:
    """The ledger of a loop that ended in `error`, or in what led to it, after `since` ledgers were attached."""
    ledger = _attached_after(error, since)
    if ledger is not None or stands_alone(error):
        return ledger
    below = (_attached_after(link.error, since) for link in links(error)[0])
    ledger = next((ledger for ledger in below if ledger is not None), None)
    return _handled_ledger(error, since) if ledger is None else ledger


def _handled_ledger(error: BaseException, since: int) -> Ledger | None:
    """The ledger on a failure that was being handled when `error` was raised, also by `raise … from None`."""
    link: BaseException | None = error
    for _ in range(_DEEPEST_CAUSE):
        link = link.__cause__ or link.__context__
        if link is None:
            return None
        ledger = _attached_after(link, since)
        if ledger is not None:
            return ledger
    return None


def _attached_after(error: BaseException, since: int) -> Ledger | None:
    attached = instance_dict(error).get(LEDGER_STAMP)
    return attached.ledger if isinstance(attached, _Attached) and attached.order > since else None


def attempts_of(error: BaseException) -> tuple[Attempt, ...]:
    """The attempts that led to `error`: a loop left them on it, or on what it was raised from."""
    ledger = nearest_ledger(error)
    return () if ledger is None else ledger.attempts


def nearest_ledger(error: BaseException) -> Ledger | None:
    """The ledger that a loop attached to `error`, or to what it was raised from."""
    link = error
    for _ in range(_DEEPEST_CAUSE):
        attached = instance_dict(link).get(LEDGER_STAMP)
        if attached is not None and isinstance(attached, _Attached):
            return attached.ledger
        cause = cause_of(link)
        if cause is None:
            return None
        link = cause
    return None
