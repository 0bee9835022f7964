"""Whatever a vendor's own client makes of a failure, failwell names it as what it is."""

import os
from collections.abc import Iterator

import pytest

from failwell.adapters.describe import describe
from failwell.testing.laboratory.server import Lab
from tests.sdks.matrix import Case, caller, caller_names, cases, forms, is_installed, judge, make, note

# SDKs and the libraries below them warn about themselves; only what they raise is looked at here.
pytestmark = pytest.mark.filterwarnings("ignore")

_NAMES = [name for name in caller_names() if is_installed(caller(name))]
_ABSENT = [name for name in caller_names() if name not in _NAMES]
_CASES = [case for name in _NAMES for case in cases(name)]
_FORMS = [case for name in _NAMES for case in forms(name)]
_UNSURE = [
    case
    for case in _CASES
    if case.scenario in ("slow_headers", "reset_after_read", "gateway_timeout") and not case.streams
]
_TOLERANCE = 3.0
"""Seconds by which a wait told as a time of day may have shrunk on the way."""


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab() as opened:
        yield opened


@pytest.mark.parametrize("name", _ABSENT)
def test_an_sdk_that_is_not_installed_is_skipped_by_name(name: str) -> None:
    pytest.skip(f"{caller(name).DISTRIBUTION} is not installed here; `make test-sdks` runs it")


@pytest.mark.parametrize("case", _CASES, ids=str)
@pytest.mark.acceptance("pipelex 37", "relavium 5")
def test_a_failure_is_named_as_what_it_is(lab: Lab, case: Case) -> None:
    dialect = caller(case.caller).DIALECT
    truth = lab.truth(dialect, case.scenario, stream=case.streams)

    reply, error = make(case, lab.url(dialect, case.scenario))
    report = judge(case, reply, error)

    if file := os.environ.get("FAILWELL_MATRIX"):
        note(file, case, truth.kind, None if report is None else report.kind)
    raised = "" if error is None else f"{type(error).__module__}.{type(error).__name__}: {error}"
    if report is None:
        assert truth.kind is None, f"nothing was found wrong with {reply!r}"
        return
    told = (report.kind, report.category, report.certainty, report.retryable)
    assert told == (truth.kind, truth.category, truth.certainty, truth.retryable), (raised, report.evidence)


@pytest.mark.parametrize("case", _FORMS, ids=str)
def test_a_wait_is_understood_in_whatever_form_it_is_told(lab: Lab, case: Case) -> None:
    dialect = caller(case.caller).DIALECT
    truth = lab.truth(dialect, case.scenario)

    reply, error = make(case, lab.url(dialect, case.scenario))
    report = judge(case, reply, error)

    assert report is not None
    assert report.kind == truth.kind
    told = None if report.not_before is None else report.not_before.after
    if truth.wait is None:
        assert told is None
    else:
        assert told == pytest.approx(truth.wait, abs=_TOLERANCE)


@pytest.mark.parametrize("case", _UNSURE, ids=str)
def test_a_lost_reply_to_a_call_that_may_be_repeated_is_a_passing_failure(lab: Lab, case: Case) -> None:
    dialect = caller(case.caller).DIALECT

    _, error = make(case, lab.url(dialect, case.scenario))
    assert error is not None
    report = describe(error, idempotent=True)

    assert (report.kind, report.retryable) == ("provider.timeout", True)
