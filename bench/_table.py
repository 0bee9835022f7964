"""One table for every measurement: least and median, beside a baseline of the same run, beside the aim."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple


class Row(NamedTuple):
    """One thing that was measured."""

    section: str
    name: str
    unit: str
    least: float
    median: float
    against: tuple[tuple[str, float], ...] = ()
    """Baselines of the same run and how many times as much this took, by the least of each."""
    aim: float | None = None

    @property
    def verdict(self) -> str:
        """Whether the aim was met; a noisy machine only ever adds time, so the least counts too."""
        if self.aim is None:
            return ""
        if self.median <= self.aim:
            return "met"
        return "met at best" if self.least <= self.aim else "missed"


def row(
    section: str,
    name: str,
    unit: str,
    samples: Sequence[float],
    *,
    against: Mapping[str, Sequence[float]] | None = None,
    aim: float | None = None,
) -> Row:
    """A row of `samples`, with its ratio to the samples of each baseline."""
    ratios = tuple(
        (label, min(samples) / min(other)) for label, other in (against or {}).items() if min(other) > 0
    )
    return Row(section, name, unit, min(samples), median(samples), ratios, aim)


def lines(rows: Iterable[Row]) -> Iterable[str]:
    """The table, line by line."""
    yield f"{'':<9}{'what':<46}{'least':>10}{'median':>10}     {'beside':<38}{'aim':>9}"
    section = ""
    for one in rows:
        beside = ", ".join(f"{ratio:.1f} × {label}" for label, ratio in one.against)
        aim = "" if one.aim is None else f"≤ {one.aim:g}"
        first = one.section if one.section != section else ""
        section = one.section
        measured = f"{one.least:>10.2f}{one.median:>10.2f} {one.unit:<3}"
        yield f"{first:<9}{one.name:<46}{measured} {beside:<38}{aim:>9}  {one.verdict}".rstrip()


def as_json(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """The table as JSON-safe values."""
    return [{**one._asdict(), "against": dict(one.against), "verdict": one.verdict} for one in rows]
