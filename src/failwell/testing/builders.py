"""Reports and faults for tests: everything has a default, so a test names only what it is about.

Such as `make_report(kind="provider.auth", provider="acme")`, or `make_fault(kind="tool.timeout")`.
"""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from failwell.adapters.describe import describe
from failwell.errors.fault import Fault
from failwell.errors.report import NOWHERE, ErrorReport, TracebackPolicy

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
"""When every built report happened, unless it says otherwise."""


def make_fault(**changes: Any) -> Fault:
    """A rate limit, or whatever `changes` make of it: any field of `Fault`, its kind included."""
    return Fault(**{"kind": "provider.rate_limited", **changes})


def make_report(**changes: Any) -> ErrorReport:
    """The report of a rate limit at noon, or whatever `changes` make of it.

    Any field of `ErrorReport` may be changed. A changed `kind` brings everything that follows from
    it (category, certainty, blame, words, next step) unless that is changed too, so a report
    cannot contradict itself by accident. Nothing in it depends on the clock, on chance or on the
    scene and the environment that the test runs in.
    """
    kind = changes.pop("kind", "provider.rate_limited")
    described = describe(make_fault(kind=kind), at=NOON, policy=TracebackPolicy.STRICT)
    report = replace(described, id="err_00000000001", scene=NOWHERE, evidence=())
    return replace(report, **changes)
