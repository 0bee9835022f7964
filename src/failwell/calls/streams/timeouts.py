"""How long a stream may take, and the fault of one that takes longer."""

from failwell.calls.argument_checks import check_number
from failwell.calls.clock import Clock
from failwell.errors.axes import Certainty
from failwell.errors.faults import ProviderTransient
from failwell.errors.frozen import frozen


@frozen
class StreamTimeouts:
    """How many seconds a stream may take. At least one of them is set.

    Raises:
        ValueError: none is set, or one is not a positive number.
    """

    first: float | None = None
    """Until the first chunk, opening the stream included."""
    idle: float | None = None
    """Until the next chunk, from the moment it is requested. The time that the reader of the stream spends does not count."""
    total: float | None = None
    """Until the end, from the moment the first chunk is requested. The time that the reader spends counts."""

    def __post_init__(self) -> None:
        limits = [(name, getattr(self, name)) for name in ("first", "idle", "total")]
        for name, seconds in limits:
            if seconds is not None:
                check_number(name, seconds)
                if not seconds:
                    raise ValueError(f"`{name}` must be more than 0 seconds; leave it out for no limit")
        if all(seconds is None for _, seconds in limits):
            raise ValueError("`StreamTimeouts` needs at least one of `first`, `idle` and `total`")


class StreamTimedOut(ProviderTransient):
    """A stream took longer than its `StreamTimeouts` allow."""

    phase: str
    """Which limit it was: `first`, `idle` or `total`."""
    seconds: float
    """The limit."""
    chunks: int
    """Chunks that had arrived."""

    def summary(self) -> str:
        seconds = f"{self.seconds:g} s"
        if self.phase == "first":
            return f"the stream sent nothing for {seconds}"
        after = f"after {self.chunks} chunk{'' if self.chunks == 1 else 's'}"
        if self.phase == "idle":
            return f"the stream sent nothing more for {seconds}, {after}"
        return f"the stream was not complete within {seconds}, {after}"


class StreamProgress:
    """How far a stream has come, and when it must have come further."""

    __slots__ = ("_end", "_phase", "_seconds", "_timeouts", "chunks", "clock")

    def __init__(self, timeouts: StreamTimeouts, clock: Clock) -> None:
        self.clock = clock
        self.chunks = 0
        self._timeouts = timeouts
        self._end: float | None = None
        self._phase = "first"
        self._seconds: float | None = None

    def deadline(self) -> float | None:
        """The time on the clock at which the next chunk must have arrived; `None` if it may take any time."""
        timeouts = self._timeouts
        now = self.clock.monotonic()
        if self._end is None:
            self._end = float("inf") if timeouts.total is None else now + timeouts.total
        self._phase, self._seconds = (
            ("idle", timeouts.idle) if self.chunks else ("first", timeouts.first)
        )  # fmt: skip
        when = float("inf") if self._seconds is None else now + self._seconds
        if self._end < when:
            self._phase, self._seconds, when = "total", timeouts.total, self._end
        return None if when == float("inf") else when

    def fault(self) -> StreamTimedOut:
        """The fault of a stream that missed the latest deadline."""
        begun = self.chunks > 0
        return StreamTimedOut(
            kind="provider.stream_interrupted" if begun else "provider.timeout",
            certainty=Certainty.PARTIAL if begun else Certainty.UNKNOWN,
            phase=self._phase,
            seconds=self._seconds or 0.0,
            chunks=self.chunks,
        )
