"""Which failures a rule is about: kind, prefix, category, certainty, blame, status, or a predicate."""

from collections.abc import Callable

from failwell.fault.axes import Blame, Category, Certainty
from failwell.fault.frozen import frozen
from failwell.report.record import ErrorReport


@frozen
class Match:
    """Everything that is set must hold; nothing set matches every failure."""

    kinds: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()
    """Beginnings of kinds, with their dot: `provider.`."""
    categories: frozenset[Category] = frozenset()
    certainties: frozenset[Certainty] = frozenset()
    blames: frozenset[Blame] = frozenset()
    statuses: frozenset[int] = frozenset()
    """HTTP statuses the provider answered with."""
    predicate: Callable[[ErrorReport], bool] | None = None

    def fits(self, report: ErrorReport) -> bool:
        """Whether `report` is one of these failures."""
        metadata = report.provider_metadata
        return (
            (not self.kinds or report.kind in self.kinds)
            and (not self.prefixes or report.kind.startswith(self.prefixes))
            and (not self.categories or report.category in self.categories)
            and (not self.certainties or report.certainty in self.certainties)
            and (not self.blames or report.blame in self.blames)
            and (not self.statuses or (metadata is not None and metadata.status_code in self.statuses))
            and (self.predicate is None or _holds(self.predicate, report))
        )

    @classmethod
    def of(
        cls,
        *kinds: str,
        category: Category | str | None = None,
        certainty: Certainty | str | None = None,
        blame: Blame | str | None = None,
        status: int | None = None,
        when: Callable[[ErrorReport], bool] | None = None,
    ) -> "Match":
        """A match written briefly; a kind that ends in a dot is a prefix."""
        return cls(
            kinds=frozenset(kind for kind in kinds if not kind.endswith(".")),
            prefixes=tuple(kind for kind in kinds if kind.endswith(".")),
            categories=frozenset() if category is None else frozenset({Category(category)}),
            certainties=frozenset() if certainty is None else frozenset({Certainty(certainty)}),
            blames=frozenset() if blame is None else frozenset({Blame(blame)}),
            statuses=frozenset() if status is None else frozenset({status}),
            predicate=when,
        )

    def __str__(self) -> str:
        parts = [*sorted(self.kinds), *(f"{prefix}*" for prefix in self.prefixes)]
        parts += [f"{name} {', '.join(sorted(map(str, held)))}" for name, held in (
            ("category", self.categories), ("certainty", self.certainties), ("blame", self.blames), ("status", self.statuses),
        ) if held]  # fmt: skip
        if self.predicate is not None:
            parts.append("a predicate")
        return " and ".join(parts) if parts else "anything"


def _holds(predicate: Callable[[ErrorReport], bool], report: ErrorReport) -> bool:
    try:
        return bool(predicate(report))
    except Exception:  # noqa: BLE001  (a predicate that fails must not hide the failure it was asked about)
        return False
