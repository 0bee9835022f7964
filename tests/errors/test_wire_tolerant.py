"""The tolerant reader: what is known is kept, what is not is set aside, and nothing unknown is retried."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failwell import Category, ErrorReport, describe, errors
from failwell.errors import Blame, Certainty, NotBefore
from failwell.errors.axes import ActionKind
from failwell.errors.facts import ProviderMetadata
from failwell.errors.faults import Validation
from failwell.errors.report import Attempt
from failwell.errors.wire import CAP
from failwell.testing.builders import make_fault, make_report
from tests.errors.strategies import json_values

NEWER: dict[str, Any] = {
    **make_report(provider="acme", details={"a": 1}).to_dict(),
    "schema": "failwell.error/7",
    "weather": "rain",
    "forecast": {"tomorrow": ["sun", None]},
}


def from_a_newer_peer(**changes: Any) -> ErrorReport:
    return ErrorReport.read({**NEWER, **changes})


def test_what_is_known_stays_and_what_is_not_is_set_aside() -> None:
    report = from_a_newer_peer()

    assert (report.kind, report.provider, report.details) == ("provider.rate_limited", "acme", {"a": 1})
    assert (report.category, report.retryable) == (Category.TRANSIENT, True)
    assert report.extra == {"weather": "rain", "forecast": {"tomorrow": ["sun", None]}}
    assert report.schema == "failwell.error/7"


def test_unknown_keys_survive_being_written_and_read_again() -> None:
    written = from_a_newer_peer().to_json()

    assert json.loads(written) == NEWER
    assert ErrorReport.read(written) == from_a_newer_peer()


def test_an_unknown_key_cannot_replace_a_known_one() -> None:
    report = from_a_newer_peer()

    written = ErrorReport.read({**report.to_dict(), "title": 7, "weather": "sun"}).to_dict()

    assert (written["title"], written["weather"]) == ("provider.rate_limited", "sun")


def test_what_a_newer_peer_adds_is_masked_like_everything_else() -> None:
    report = from_a_newer_peer(note="Bearer abcdef0123456789", password="hunter2")

    assert (report.extra["note"], report.extra["password"]) == ("Bearer [redacted]", "[redacted]")


@pytest.mark.parametrize(
    ("name", "value", "attribute", "kept"),
    [
        ("certainty", "perhaps", "certainty", Certainty.UNKNOWN),
        ("blame", "weather", "blame", Blame.OURSELVES),
        ("certainty", 7, "certainty", Certainty.UNKNOWN),
        ("user_action", {"kind": "pray", "detail": "hard"}, "user_action.kind", ActionKind.UNKNOWN),
        ("user_action", {"kind": "pray", "detail": "hard"}, "user_action.detail", "hard"),
    ],
)
def test_a_word_that_is_not_known_reads_as_unknown(name: str, value: Any, attribute: str, kept: Any) -> None:
    read: Any = from_a_newer_peer(**{name: value})
    for step in attribute.split("."):
        read = getattr(read, step)

    assert read == kept


def test_an_unknown_category_reads_as_unknown_and_is_never_retried() -> None:
    report = from_a_newer_peer(kind="external.a.b", category="quarantined", retryable=True)

    assert (report.category, report.retryable, report.domain) == (Category.UNKNOWN, False, "runtime")


def test_an_unknown_category_of_a_known_kind_is_the_kinds() -> None:
    report = from_a_newer_peer(category="quarantined")

    assert (report.category, report.retryable) == (Category.TRANSIENT, True)


def test_a_kind_of_the_runtime_that_is_not_known_is_never_retried() -> None:
    report = from_a_newer_peer(kind="provider.on_holiday")

    assert (report.kind, report.category) == ("provider.on_holiday", Category.TRANSIENT)
    assert not report.retryable


def test_an_authors_kind_that_is_not_registered_here_keeps_what_its_author_said() -> None:
    report = from_a_newer_peer(kind="external.git.busy")

    assert (report.kind, report.category, report.retryable) == (
        "external.git.busy",
        Category.TRANSIENT,
        True,
    )


@pytest.mark.parametrize("kind", [None, 7, "nodot", "a." + "b" * 500, ["a.b"]])
def test_a_kind_that_is_none_reads_as_unclassified(kind: Any) -> None:
    report = from_a_newer_peer(kind=kind)

    assert (report.kind, report.category, report.retryable) == ("internal.unknown", Category.UNKNOWN, False)


@pytest.mark.parametrize("retryable", [None, "yes", 1, [True]])
def test_a_repeat_that_was_not_clearly_allowed_is_not(retryable: Any) -> None:
    assert not from_a_newer_peer(retryable=retryable).retryable


def test_a_repeat_that_the_category_forbids_is_not_allowed() -> None:
    report = from_a_newer_peer(kind="external.a.b", category="fatal", retryable=True)

    assert not report.retryable


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("provider", 7),
        ("scene", "here"),
        ("details", [1]),
        ("causes", "many"),
        ("not_before", {"after": "soon"}),
        ("resource_shortfall", {"resource": "time", "needed": 1, "available": 0}),
        ("internal", {}),
        ("fields_invalid", {"a": 1}),
        ("caller_facing", "yes"),
    ],
)
def test_a_value_that_cannot_be_used_is_left_out(name: str, value: Any) -> None:
    report = from_a_newer_peer(**{name: value})

    assert getattr(report, name) == getattr(make_report(caller_facing=False), name)
    assert report.kind == "provider.rate_limited"


def test_one_entry_that_cannot_be_used_does_not_cost_the_others() -> None:
    report = from_a_newer_peer(causes=[{"type": "A"}, {"no": "type"}, 7, {"type": "B", "via": "magic"}])

    assert [cause.type for cause in report.causes] == ["A", "B"]


def test_an_unknown_key_inside_a_part_does_not_cost_the_part() -> None:
    report = from_a_newer_peer(scene={"run": "r1", "planet": "mars"})

    assert report.scene == errors.Scene(run="r1")


def test_the_least_that_is_a_report() -> None:
    report = ErrorReport.read({"schema": "failwell.error/1"})

    assert (report.kind, report.category, report.retryable) == ("internal.unknown", Category.UNKNOWN, False)
    assert (report.message, report.error_type, report.fingerprint) == ("internal.unknown", "unknown", "")
    assert report.id.startswith("err_")
    assert report.occurred_at.isoformat() == "1970-01-01T00:00:00+00:00"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("2026-03-01T12:00:00Z", "2026-03-01T12:00:00+00:00"),
        ("2026-03-01T14:00:00+02:00", "2026-03-01T12:00:00+00:00"),
        ("0001-01-01T00:00:00+14:00", "1970-01-01T00:00:00+00:00"),
        ("2026-03-01T12:00:00", "1970-01-01T00:00:00+00:00"),
    ],
)
def test_times_of_other_peers_are_brought_to_utc(text: str, kept: str) -> None:
    assert from_a_newer_peer(occurred_at=text).to_dict()["occurred_at"] == kept


@pytest.mark.parametrize("schema", [None, 7, "", "failwell.problem/1", "error/1"])
def test_what_is_no_report_at_all_is_refused(schema: Any) -> None:
    with pytest.raises(Validation, match="this is not an error report") as caught:
        from_a_newer_peer(schema=schema)

    assert caught.value.fields_invalid == ["schema"]


@given(
    st.dictionaries(
        st.one_of(
            st.sampled_from(list(NEWER)), st.sampled_from(["scene", "causes", "not_before"]), st.text()
        ),
        json_values,
        max_size=8,
    )
)
def test_whatever_calls_itself_a_report_can_be_read_and_written(data: dict[str, Any]) -> None:
    report = ErrorReport.read({**data, "schema": "failwell.error/7"})

    text = report.to_json()

    assert len(text.encode()) <= CAP
    again = ErrorReport.read(text)
    assert (again.kind, again.category, again.retryable) == (report.kind, report.category, report.retryable)
    assert not report.retryable or report.category is Category.TRANSIENT


@pytest.mark.parametrize(
    "seconds", [-1, 366 * 86_400 + 1, 1e300, 10**400, float("inf"), float("nan"), True, "5"]
)
def test_seconds_that_no_clock_can_add_are_not_read(seconds: Any) -> None:
    report = from_a_newer_peer(
        not_before={"after": seconds},
        provider_metadata={"retry_after": seconds, "status_code": 10**30, "sdk": "acme"},
        attempts=[{"number": 1, "wait": seconds, "cost": 2**63, "usage": {"input": 10**30}}],
    )

    assert report.not_before is None
    assert report.provider_metadata is not None
    assert (report.provider_metadata.retry_after, report.provider_metadata.status_code) == (None, None)
    assert report.provider_metadata.sdk == "acme"
    attempt = report.attempts[0]
    assert (attempt.wait, attempt.cost, attempt.usage) == (None, None, {})


@pytest.mark.parametrize("seconds", [-1.0, 1e300, float("inf"), float("nan")])
def test_a_fault_with_such_seconds_gives_a_report_that_reads_back(seconds: float) -> None:
    fault = make_fault(
        not_before=NotBefore(after=seconds),
        provider_metadata=ProviderMetadata(retry_after=seconds, sdk="acme"),
    )

    report = describe(fault, attempts=[Attempt(number=1, wait=seconds)])

    assert ErrorReport.from_json(report.to_json()) == report
    assert report.provider_metadata == ProviderMetadata(sdk="acme")
    assert report.attempts[0].wait is None
