"""Who served a reply of a chain, and why not the entries before it."""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from failwell.errors.frozen import frozen
from failwell.errors.report import ErrorReport

_T = TypeVar("_T")


@frozen
class PassedEntry:
    """An entry of a chain that did not serve the reply."""

    provider: str
    model: str
    reason: str
    """Why the chain went on to the next entry."""
    report: ErrorReport | None = None
    """Its latest failure; `None` if it was not called."""

    def to_dict(self) -> dict[str, Any]:
        """It as JSON-safe values."""
        data: dict[str, Any] = {"provider": self.provider, "model": self.model, "reason": self.reason}
        return data if self.report is None else {**data, "report": self.report.to_dict()}

    def __str__(self) -> str:
        kind = "" if self.report is None else f"{self.report.kind}, "
        return f"{self.provider}/{self.model} ({kind}{self.reason})"


@frozen
class ReplySource:
    """Who served a reply."""

    provider: str
    model: str
    is_primary: bool
    """Whether it is the first entry of the chain."""
    passed_over: tuple[PassedEntry, ...] = ()
    """The entries before it, in order, and why they did not serve it."""

    def to_dict(self) -> dict[str, Any]:
        """It as JSON-safe values."""
        data: dict[str, Any] = {
            "provider": self.provider,
            "model": self.model,
            "is_primary": self.is_primary,
        }
        if self.passed_over:
            data["passed_over"] = [entry.to_dict() for entry in self.passed_over]
        return data

    def __str__(self) -> str:
        served = f"served by {self.provider}/{self.model}"
        if not self.passed_over:
            return served
        return f"{served} instead of {', '.join(str(entry) for entry in self.passed_over)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainReply(Generic[_T]):
    """What a chain returned, and who served it."""

    value: _T
    source: ReplySource
