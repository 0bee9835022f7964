"""Tests under faults: each runs once per fault, and a table at the end says which faults it survives."""

import json
from collections.abc import Generator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from failwell.errors.text_table import aligned
from failwell.testing.fault_injection import FaultInjection, inject_fault, isolated_providers
from failwell.testing.faults_spec import FaultSpec, parse_fault, parse_faults

_PROPERTY = "failwell_fault"
_WIDEST_NAME = 72


@dataclass(frozen=True, slots=True)
class FaultOutcome:
    """How one test ended under one fault."""

    test: str
    fault: str
    outcome: str
    """`survived`, `failed`, `skipped`, or `not reached` if no call to a provider met the fault."""
    calls: int
    injected: int
    seconds: float
    kind: str | None
    """The kind of the error that the test failed with."""


class FaultRuns:
    """The part of the plugin that is loaded with `--failwell-faults`."""

    def __init__(self, config: pytest.Config, faults: str) -> None:
        try:
            self.faults = parse_faults(faults)
        except ValueError as error:
            raise pytest.UsageError(f"--failwell-faults: {error}") from None
        self.outcomes: list[FaultOutcome] = []
        self._config = config
        self._stack = ExitStack()
        self._options: dict[str, Any] = {
            "stall": config.getoption("--failwell-faults-stall"),
            "delay": config.getoption("--failwell-faults-delay"),
        }

    def pytest_sessionstart(self) -> None:
        """From here on no call to a provider leaves this machine."""
        self._stack.enter_context(isolated_providers(**self._options))

    def pytest_unconfigure(self) -> None:
        """Undo what was patched."""
        self._stack.close()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run a test once per fault."""
        faults = self.faults
        marker = metafunc.definition.get_closest_marker("failwell_faults")
        if marker is not None:
            faults = [self._parse(str(name), metafunc.definition.nodeid) for name in marker.args]
        if faults:
            metafunc.parametrize(
                "_failwell_fault", faults, ids=[fault.name for fault in faults], indirect=True
            )

    def _parse(self, name: str, test: str) -> FaultSpec:
        try:
            return parse_fault(name)
        except ValueError as error:
            raise pytest.UsageError(f"{test}: the marker `failwell_faults`: {error}") from None

    @pytest.fixture(autouse=True)
    def _failwell_fault(self, request: pytest.FixtureRequest) -> Generator[FaultInjection | None]:
        if not hasattr(request, "param"):
            # Marked to run without a fault, or of a kind that pytest does not repeat, such as a `unittest.TestCase`.
            yield None
            return
        with inject_fault(request.param) as injection:
            request.node.stash[_INJECTION] = injection
            yield injection

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Note how the test met its fault. The note travels with the report, also from a worker of xdist."""
        report = yield
        injection = item.stash.get(_INJECTION, None)
        if injection is not None and (call.when == "call" or (call.when == "setup" and not report.passed)):
            name, _, _ = item.nodeid.rpartition("[")
            callspec: Any = getattr(item, "callspec", None)
            rest = f"-{callspec.id}-".replace(f"-{injection.fault.name}-", "-").strip("-")
            note = {
                "test": f"{name}[{rest}]" if rest else name,
                "fault": injection.fault.name,
                "calls": injection.calls,
                "injected": injection.injected,
                "kind": None if call.excinfo is None else _kind(call.excinfo.value),
            }
            report.user_properties.append((_PROPERTY, note))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect the outcomes; with xdist, of all workers."""
        note: dict[str, Any] | None = dict(report.user_properties).get(_PROPERTY)  # type: ignore[assignment]
        if note is None or report.when == "teardown":
            return
        outcome = "survived" if report.passed else report.outcome
        if report.passed and not note["injected"]:
            outcome = "not reached"
        self.outcomes.append(FaultOutcome(outcome=outcome, seconds=round(report.duration, 3), **note))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the table, and write the file."""
        if hasattr(self._config, "workerinput"):
            return
        terminalreporter.section("failwell faults")
        for line in table(self.outcomes):
            terminalreporter.line(line)
        file = self._config.getoption("--failwell-faults-report")
        if file:
            Path(file).write_text(report_json(self.outcomes), encoding="utf-8")
            terminalreporter.line(f"written to {file}")


_INJECTION = pytest.StashKey[FaultInjection]()


def _kind(error: BaseException) -> str | None:
    """The kind of an error; none for what a test itself says."""
    if isinstance(error, (AssertionError, pytest.fail.Exception)):
        return None
    from failwell.adapters.describe import describe

    return describe(error).kind


def table(outcomes: list[FaultOutcome]) -> list[str]:
    """The outcomes as lines: one row a test, one column a fault."""
    if not outcomes:
        return ["no test ran under a fault"]
    faults = list(dict.fromkeys(outcome.fault for outcome in outcomes))
    tests = list(dict.fromkeys(outcome.test for outcome in outcomes))
    cells = {(outcome.test, outcome.fault): _cell(outcome) for outcome in outcomes}
    rows = [
        ["test", *faults],
        *([_short(test), *(cells.get((test, fault), "-") for fault in faults)] for test in tests),
    ]
    lines = aligned(rows)
    count = sum(outcome.outcome == "survived" for outcome in outcomes)
    idle = sum(outcome.outcome == "not reached" for outcome in outcomes)
    lines.append(
        f"{count} of {len(outcomes)} survived" + (f", {idle} made no call that could fail" if idle else "")
    )
    return lines


def report_json(outcomes: list[FaultOutcome]) -> str:
    """The outcomes as JSON."""
    rows = [asdict(outcome) for outcome in outcomes]
    counts = {
        name: sum(row["outcome"] == name for row in rows)
        for name in ("survived", "failed", "skipped", "not reached")
    }
    return json.dumps({"schema": "failwell.faults/1", "counts": counts, "outcomes": rows}, indent=2) + "\n"


def _cell(outcome: FaultOutcome) -> str:
    if outcome.outcome == "survived":
        plural = "" if outcome.calls == 1 else "s"
        return f"survived, {outcome.calls} call{plural}, {outcome.seconds:.1f} s"
    return (
        f"{outcome.outcome}: {outcome.kind}"
        if outcome.outcome == "failed" and outcome.kind
        else outcome.outcome
    )


def _short(test: str) -> str:
    return test if len(test) <= _WIDEST_NAME else f"…{test[-_WIDEST_NAME + 1 :]}"
