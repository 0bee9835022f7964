"""A result that may be incomplete: what worked, what failed and why, and what is still to be done."""

from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

from failwell.report.record import ErrorReport

T = TypeVar("T")


class Partial(Generic[T]):
    """The outcome of a batch, item by item. Errors never pass for results.

    Results and errors are kept by the place of their item. What is neither was not started.
    """

    __slots__ = ("errors", "raised", "results", "total", "usage")

    def __init__(
        self,
        total: int,
        results: Mapping[int, T],
        errors: Mapping[int, ErrorReport],
        raised: Mapping[int, Exception] | None = None,
        usage: Mapping[str, int] | None = None,
    ) -> None:
        self.total = total
        self.results: dict[int, T] = dict(sorted(results.items()))
        self.errors: dict[int, ErrorReport] = dict(sorted(errors.items()))
        self.raised: dict[int, Exception] = dict(raised or {})
        """The exceptions behind the errors, in this process only."""
        self.usage: dict[str, int] = dict(usage or {})
        """Tokens of all items that reported some, failed ones included."""

    @property
    def complete(self) -> bool:
        """Whether every item worked."""
        return len(self.results) == self.total

    @property
    def cursor(self) -> list[int]:
        """The places still to be done: failed or not started. Hand it to `gather(only=...)` to resume."""
        return [place for place in range(self.total) if place not in self.results]

    @property
    def not_started(self) -> list[int]:
        """The places that nobody got to."""
        return [place for place in self.cursor if place not in self.errors]

    def values(self) -> list[T]:
        """Every result in the order of the items.

        Raises:
            Exception: an item failed. It is the error of the first such item, in the order of the
                items and not of the failures, so the same input always raises the same.
        """
        for place in self.errors:
            raise self._error(place)
        return list(self.results.values())

    def merged(self, later: "Partial[T]") -> "Partial[T]":
        """This outcome with what a resumed run added."""
        results = {**self.results, **later.results}
        errors = {
            place: report for place, report in {**self.errors, **later.errors}.items() if place not in results
        }
        raised = {place: error for place, error in {**self.raised, **later.raised}.items() if place in errors}
        usage = dict(self.usage)
        for name, count in later.usage.items():
            usage[name] = usage.get(name, 0) + count
        return Partial(max(self.total, later.total), results, errors, raised, usage)

    def to_dict(self) -> dict[str, Any]:
        """The outcome as JSON-safe values, as far as the results are; no `errors` if nothing failed."""
        made: dict[str, Any] = {
            "total": self.total,
            "items": [{"index": place, "value": value} for place, value in self.results.items()],
        }
        if self.errors:
            made["errors"] = [
                {"index": place, "error": report.to_dict()} for place, report in self.errors.items()
            ]
        if self.cursor:
            made["cursor"] = self.cursor
        if self.usage:
            made["usage"] = self.usage
        return made

    def __iter__(self) -> Iterator[T]:
        return iter(self.results.values())

    def __len__(self) -> int:
        return self.total

    def __repr__(self) -> str:
        return f"Partial({len(self.results)} of {self.total} done, {len(self.errors)} failed)"

    def _error(self, place: int) -> Exception:
        if place in self.raised:
            return self.raised[place]
        from failwell.report.revive import revive

        return revive(self.errors[place])
