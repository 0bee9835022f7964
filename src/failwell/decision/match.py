"""Which failures a rule is about: kind, prefix, category, certainty, blame, status, or a predicate."""

from collections.abc import Callable, Mapping
from typing import Any, cast

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
            and (self.predicate is None or self.predicate(report))
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

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "Match":
        """A match as it is written in a policy file; unknown words are refused by name."""
        known = {"kind", "category", "certainty", "blame", "status"}
        unknown = sorted(set(data) - known)
        if unknown:
            raise ValueError(f"`{unknown[0]}` is not something to match on; use {', '.join(sorted(known))}")
        kinds = _list(data.get("kind"))
        return cls(
            kinds=frozenset(kind for kind in kinds if not kind.endswith(".")),
            prefixes=tuple(kind for kind in kinds if kind.endswith(".")),
            categories=frozenset(Category(one) for one in _list(data.get("category"))),
            certainties=frozenset(Certainty(one) for one in _list(data.get("certainty"))),
            blames=frozenset(Blame(one) for one in _list(data.get("blame"))),
            statuses=frozenset(int(one) for one in _list(data.get("status"))),
        )

    def __str__(self) -> str:
        parts = [*sorted(self.kinds), *(f"{prefix}*" for prefix in self.prefixes)]
        parts += [f"{name} {', '.join(sorted(map(str, held)))}" for name, held in (
            ("category", self.categories), ("certainty", self.certainties), ("blame", self.blames), ("status", self.statuses),
        ) if held]  # fmt: skip
        if self.predicate is not None:
            parts.append("a predicate")
        return " and ".join(parts) if parts else "anything"


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    return [*cast("list[Any]", value)] if isinstance(value, list | tuple) else [value]
