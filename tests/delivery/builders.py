"""Reports and foreign exceptions for the tests of this room."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from failwell.adapters.describe import describe
from failwell.errors.axes import Certainty
from failwell.errors.facts import NotBefore, ProviderMetadata
from failwell.errors.fault import Fault
from failwell.errors.kind_registry import kind
from failwell.errors.report import Attempt, Cause, ErrorReport, Evidence, Frame, Scene

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def make_fault(name: str = "provider.rate_limited", **fields: Any) -> Fault:
    return Fault(**{"kind": name, **fields})


def make_report(
    name: str = "provider.rate_limited", *, scene: Scene | None = None, **fields: Any
) -> ErrorReport:
    """The report of a fault of that kind, at noon, with a fixed id and fingerprint."""
    report = describe(make_fault(name, **fields), at=NOON, scene=scene)
    return replace(report, id="err_1", fingerprint="f1-0011223344556677")


def a_wait(seconds: float, source: str = "retry-after") -> NotBefore:
    return NotBefore(after=seconds, source=source)


def a_full_report() -> ErrorReport:
    """Everything that a report can hold, in recognisable values."""
    report = make_report(
        provider="acme",
        model="acme/large[preview]",
        not_before=a_wait(7.5),
        provider_metadata=ProviderMetadata(
            sdk="acme", status_code=429, code="rate_limit_exceeded", request_id="req_77", retry_after=7.5
        ),
        details={"batch": 3, "names": ["a", "b"]},
    )
    tried = Attempt(
        number=1,
        kind="provider.rate_limited",
        certainty=Certainty.REJECTED,
        provider="acme",
        model="large",
        wait=5.0,
        cost=120_000,
        usage={"input": 1200},
    )
    return replace(
        report,
        error_type="RateLimitError",
        scene=Scene(run="r1", node="summarise", attempt=2),
        causes=(
            Cause(type="RateLimitError", kind="provider.rate_limited"),
            Cause(
                type="ConnectError", kind="provider.connection", via="context", level=2, notes=("on port 9",)
            ),
        ),
        attempts=(
            tried,
            replace(tried, number=2, wait=None, cost=None, usage={}, reason="attempts spent"),
        ),
        frames=(Frame(boundary="node", name="summarise", workflow="daily", iteration=2),),
        evidence=(Evidence(rule="openai.RateLimitError", basis="type", saw="RateLimitError"),),
    )


def summary_of(name: str) -> str:
    return kind(name).summary
