"""A report fits in 64 KiB, whatever was put into it; what is cut, is cut visibly and bulk first."""

import json
from dataclasses import fields
from typing import Any

import failwell
from failwell import ErrorReport, errors
from failwell.capability import TracebackPolicy
from failwell.errors import NotBefore, Scene
from failwell.errors.report import Attempt, Cause, Evidence, Frame, Internal
from failwell.errors.wire import CAP, fit
from failwell.testing.builders import make_fault, make_report
from tests.specimens import each

WIDE = "ü😀" * 12_000


def bulky(**changes: Any) -> ErrorReport:
    return make_report(
        **{
            "internal": Internal(repr="r", traceback="t" * 5_000),
            "details": {"a": "d" * 5_000},
            "causes": tuple(Cause(type=f"C{n}", message="c" * 100) for n in range(10)),
            "attempts": tuple(Attempt(number=n) for n in range(20)),
            **changes,
        }
    )


def size(report: ErrorReport) -> int:
    return len(report.to_json().encode("utf-8"))


def test_a_report_that_fits_is_left_as_it_is() -> None:
    report = bulky()

    assert fit(report) is report


def test_a_long_traceback_is_shortened_first() -> None:
    report = fit(bulky(internal=Internal(repr="r", traceback="t" * 60_000)))

    assert report.internal is not None
    assert (report.internal.traceback or "").endswith("more characters cut]")
    assert report.details == {"a": "d" * 5_000}


def test_large_details_go_next_and_say_how_large_they_were() -> None:
    report = fit(bulky(details={"a": "d" * 70_000}))

    assert report.details == {"…": "[details cut: 70008 bytes]"}
    assert len(report.causes) == 10


def test_long_lists_are_shortened_then_and_keep_what_matters_most() -> None:
    report = fit(bulky(causes=tuple(Cause(type=f"C{n}", message="c" * 5_000) for n in range(50))))

    assert [cause.type for cause in report.causes] == ["C0", "C1", "C2", "C3", "…"]
    assert [attempt.number for attempt in report.attempts] == list(range(12, 20))


def test_in_the_end_the_classification_is_what_stays() -> None:
    report = fit(bulky(message=WIDE, evidence=(Evidence(rule=WIDE, basis=WIDE, saw=WIDE),)))

    assert (report.kind, report.category, report.retryable) == ("provider.rate_limited", "transient", True)
    assert report.message.endswith("more characters cut]")
    assert size(report) <= CAP


TOO_LARGE: dict[str, Any] = {
    "id": WIDE,
    "message": WIDE,
    "title": WIDE,
    "error_type": WIDE,
    "fingerprint": WIDE,
    "schema": "failwell.error/" + WIDE,
    "user_action": errors.UserAction(errors.kind("tool.busy").action, WIDE),
    "scene": Scene(run=WIDE),
    "provider": WIDE,
    "model": WIDE,
    "provider_metadata": errors.ProviderMetadata(code=WIDE, headers={WIDE: WIDE}),
    "not_before": NotBefore(after=1, source=WIDE),
    "fields_invalid": (WIDE,) * 20,
    "details": {WIDE: WIDE},
    "causes": (Cause(type=WIDE, notes=(WIDE,)),) * 20,
    "frames": (Frame(boundary=WIDE, name=WIDE),) * 20,
    "attempts": (Attempt(number=1, reason=WIDE),) * 20,
    "evidence": (Evidence(rule=WIDE, basis=WIDE, saw=WIDE),) * 20,
    "internal": Internal(repr=WIDE, traceback=WIDE),
    "extra": {WIDE: WIDE},
}


def test_every_field_that_can_be_large_is_tried_below() -> None:
    fixed = {
        "kind",
        "category",
        "certainty",
        "blame",
        "retryable",
        "occurred_at",
        "caller_facing",
        "handled",
        "origin",
    }

    assert set(TOO_LARGE) | fixed | {"resource_shortfall"} == {field.name for field in fields(ErrorReport)}


@each("name", TOO_LARGE)
def test_no_single_field_can_make_a_report_too_large(name: str) -> None:
    report = make_report(**{name: TOO_LARGE[name]})

    text = report.to_json()

    assert len(text.encode("utf-8")) <= CAP
    assert json.loads(text)["kind"] == "provider.rate_limited"


def test_everything_at_once_cannot_either() -> None:
    report = make_report(**TOO_LARGE)

    assert size(report) <= CAP
    assert ErrorReport.read(report.to_json()).retryable


def test_what_arrives_too_large_is_cut_when_it_is_read() -> None:
    arrived = json.dumps({**make_report().to_dict(), "provider": WIDE, "weather": [WIDE] * 3})

    report = ErrorReport.read(arrived)

    assert size(report) <= CAP
    assert report.kind == "provider.rate_limited"


def test_an_exception_with_a_megabyte_of_everything_stays_small() -> None:
    error = ValueError("x" * 1_000_000)
    error.add_note("n" * 1_000_000)
    error.__cause__ = make_fault(message="y" * 1_000_000, details={"z": ["w" * 10_000] * 100})

    for policy in TracebackPolicy:
        assert size(failwell.describe(error, policy=policy)) <= CAP


def test_bytes_are_counted_and_not_characters() -> None:
    report = fit(make_report(details={"a": "😀" * 20_000}))

    assert report.details == {"…": "[details cut: 80008 bytes]"}
