"""What was tried, what it cost, what was waited, and why it stopped: kept by every loop."""

from failwell.fault.frozen import frozen
from failwell.fault.links import cause_of, instance_dict
from failwell.report.record import Attempt

_STAMP = "__failwell_ledger__"
_DEEPEST = 12
_UNSURE = ("unknown", "partial", "done_but_lost")


@frozen
class Skipped:
    """An entry that was passed over without a call."""

    before: int
    """The number of the attempt that came next."""
    provider: str
    model: str
    reason: str


@frozen
class Ledger:
    """The attempts of one operation, in order, with the reason for stopping."""

    layer: str
    attempts: tuple[Attempt, ...] = ()
    stopped: str = ""
    """Why no further attempt was made."""
    skipped: tuple[Skipped, ...] = ()
    """Entries that were not called at all; they spend no attempt."""
    nested: tuple[str, ...] = ()
    """Loops found inside this one, each with how often it tried: they multiply."""

    @property
    def waited(self) -> float:
        """Seconds waited between attempts."""
        return sum(attempt.wait or 0.0 for attempt in self.attempts)

    @property
    def cost(self) -> int:
        """Micro-cents of all priced attempts, failed ones included."""
        return sum(attempt.cost or 0 for attempt in self.attempts)

    @property
    def may_have_been_billed(self) -> int:
        """How many attempts ended without anybody knowing whether they were billed."""
        return sum(1 for attempt in self.attempts if attempt.certainty in _UNSURE and attempt.cost is None)

    @property
    def unpriced(self) -> int:
        """How many attempts reported tokens for which no price is known."""
        return sum(1 for attempt in self.attempts if attempt.usage and attempt.cost is None)

    def table(self) -> str:
        """The ledger as lines of text."""
        rows = [("#", "kind", "provider", "model", "waited", "cost", "")]
        left = list(self.skipped)
        for attempt in self.attempts:
            rows += [
                _skip_row(left.pop(0)) for skip in self.skipped if left and skip.before <= attempt.number
            ]
            rows.append(_row(attempt))
        rows += [_skip_row(skip) for skip in left]
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        return "\n".join([*lines, *self._footer()])

    def _footer(self) -> list[str]:
        lines = [f"stopped: {self.stopped}"] if self.stopped else []
        if self.may_have_been_billed:
            lines.append(f"may have been billed: {self.may_have_been_billed} without a known outcome")
        if self.nested:
            lines.append(f"nested loops, which multiply: {', '.join(self.nested)}")
        return lines


def _row(attempt: Attempt) -> tuple[str, ...]:
    cost = "" if attempt.cost is None else f"{attempt.cost / 1e8:.6f} $"
    return (
        str(attempt.number),
        attempt.kind or "ok",
        attempt.provider or "",
        attempt.model or "",
        "" if attempt.wait is None else f"{attempt.wait:.1f} s",
        "no price" if attempt.usage and attempt.cost is None else cost,
        attempt.reason or "",
    )


def _skip_row(skipped: Skipped) -> tuple[str, ...]:
    return ("-", "skipped", skipped.provider, skipped.model, "", "", skipped.reason)


def attach(error: BaseException, ledger: Ledger) -> None:
    """Let `error` carry its ledger, so that whoever describes it finds the attempts."""
    instance_dict(error)[_STAMP] = ledger


def ledger_of(error: BaseException) -> Ledger | None:
    """The ledger that a loop below attached to `error`, if any."""
    ledger = instance_dict(error).get(_STAMP)
    return ledger if isinstance(ledger, Ledger) else None


def attempts_of(error: BaseException) -> tuple[Attempt, ...]:
    """The attempts that led to `error`: a loop left them on it, or on what it was raised from."""
    link: BaseException | None = error
    for _ in range(_DEEPEST):
        if link is None:
            break
        ledger = ledger_of(link)
        if ledger is not None:
            return ledger.attempts
        link = cause_of(link)
    return ()
