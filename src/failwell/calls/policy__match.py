"""Which failures a rule is about: kind, prefix, category, certainty, blame, status, or a predicate."""

from collections.abc import Callable

from failwell.errors.axes import Blame, Category, Certainty
from failwell.errors.frozen import frozen
from failwell.errors.kind_registry import check_kind, check_prefix
from failwell.errors.report import ErrorReport


@frozen
class Match:
    """Every field that is set must match; with none set, every failure does.

    `kinds` and `prefixes` together name the kinds: one of either is enough.
    """

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
        """Whether `report` is one of these failures. What the predicate raises is raised."""
        metadata = report.provider_metadata
        return (
            self.names(report.kind)
            and (not self.categories or report.category in self.categories)
            and (not self.certainties or report.certainty in self.certainties)
            and (not self.blames or report.blame in self.blames)
            and (not self.statuses or (metadata is not None and metadata.status_code in self.statuses))
            and (self.predicate is None or bool(self.predicate(report)))
        )

    def check_kinds(self) -> None:
        """Refuse kinds and prefixes that can only be misspelt.

        Raises:
            KindError: one is; the message names the nearest.
        """
        for kind in self.kinds:
            check_kind(kind)
        for prefix in self.prefixes:
            check_prefix(prefix)

    def names(self, kind: str) -> bool:
        """Whether `kinds` or `prefixes` cover `kind`; they do if neither is set."""
        if not self.kinds and not self.prefixes:
            return True
        return kind in self.kinds or kind.startswith(self.prefixes)

    @property
    def is_any(self) -> bool:
        """Whether every failure matches."""
        return not (
            self.kinds
            or self.prefixes
            or self.categories
            or self.certainties
            or self.blames
            or self.statuses
            or self.predicate is not None
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
        """A match written briefly; a kind that ends in a dot is a prefix.

        Raises:
            KindError: a kind can only be misspelt.
        """
        match = cls(
            kinds=frozenset(kind for kind in kinds if not kind.endswith(".")),
            prefixes=tuple(kind for kind in kinds if kind.endswith(".")),
            categories=frozenset() if category is None else frozenset({Category(category)}),
            certainties=frozenset() if certainty is None else frozenset({Certainty(certainty)}),
            blames=frozenset() if blame is None else frozenset({Blame(blame)}),
            statuses=frozenset() if status is None else frozenset({status}),
            predicate=when,
        )
        match.check_kinds()
        return match

    def __str__(self) -> str:
        kinds = [*sorted(self.kinds), *(f"{prefix}*" for prefix in self.prefixes)]
        parts = [" or ".join(kinds)] if kinds else []
        parts += [f"{name} {', '.join(sorted(map(str, values)))}" for name, values in (
            ("category", self.categories), ("certainty", self.certainties), ("blame", self.blames), ("status", self.statuses),
        ) if values]  # fmt: skip
        if self.predicate is not None:
            parts.append("a predicate")
        return " and ".join(parts) if parts else "anything"
