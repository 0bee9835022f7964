"""Computes the waits between attempts. Jitter is passed in, so nothing here is random."""

from typing import Literal

from failwell.calls.argument_checks import check_number
from failwell.errors.frozen import frozen

Curve = Literal["fixed", "linear", "exponential"]


@frozen
class Backoff:
    """How the waits grow. Step *k* comes before call *k + 1*."""

    curve: Curve = "exponential"
    first: float = 1.0
    """Seconds before the second call."""
    longest: float = 300.0
    jitter: float = 0.0
    """Each wait is spread evenly over ±this share of itself."""

    def __post_init__(self) -> None:
        if self.curve not in ("fixed", "linear", "exponential"):
            raise ValueError(f"`curve` must be fixed, linear or exponential, not {self.curve!r}")
        check_number("first", self.first)
        check_number("longest", self.longest, endless=True)
        check_number("jitter", self.jitter, most=1)

    def wait(self, step: int, jitter: float = 0.5) -> float:
        """Seconds of step `step` (1 is the first); `jitter` in [0, 1) is drawn by the caller."""
        if self.curve == "exponential":
            # Beyond any cap that makes sense the power would only overflow.
            seconds = self.first * 2.0 ** min(step - 1, 60)
        elif self.curve == "linear":
            seconds = self.first * step
        else:
            seconds = self.first
        limited = min(seconds, self.longest)
        return limited * (1 + self.jitter * (2 * jitter - 1))
