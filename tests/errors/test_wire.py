"""A report as JSON and back: nothing added, nothing lost, nothing null."""

import json
import pickle
from dataclasses import FrozenInstanceError, fields, replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, cast

import pytest
from hypothesis import given

import failwell
from failwell import ErrorReport, capability
from failwell.capability import TracebackPolicy
from failwell.errors import NotBefore, ProviderMetadata, Scene
from failwell.errors.axes import Category
from failwell.errors.wire import from_dict, from_json, to_dict, to_json
from failwell.testing.builders import NOON, make_fault, make_report
from tests.errors.strategies import reports
from tests.specimens import each

ALWAYS = {
    "schema",
    "id",
    "kind",
    "category",
    "domain",
    "certainty",
    "blame",
    "retryable",
    "message",
    "title",
    "error_type",
    "user_action",
    "fingerprint",
    "occurred_at",
}
BODY = "the raw body of the reply: Ada Lovelace, born 1815"


def nulls_in(value: object) -> bool:
    if isinstance(value, dict):
        return any(nulls_in(inner) for inner in cast("dict[str, object]", value).values())
    if isinstance(value, list):
        return any(nulls_in(inner) for inner in cast("list[object]", value))
    return value is None


class ApiError(Exception):
    """What an SDK raises: a message that quotes the reply, and the reply itself."""

    def __init__(self, body: str) -> None:
        super().__init__(f"Error code: 500 - {body}")
        self.body = body
        self.response = {"text": body}


@pytest.mark.acceptance("pipelex 1")
def test_a_minimal_report_writes_what_follows_from_its_kind_and_nothing_else() -> None:
    fault = failwell.Fault(kind="external.mail.bounced", message="The letter came back.")

    written = json.loads(failwell.describe(fault, scene=Scene()).to_json())

    assert set(written) == ALWAYS | {"caller_facing", "evidence", "origin"}
    assert (written["error_type"], written["message"]) == ("Fault", "The letter came back.")
    assert not nulls_in(written)


@pytest.mark.acceptance("pipelex 1")
def test_a_described_exception_writes_no_null_and_nothing_empty() -> None:
    written = failwell.describe(ValueError("x"), scene=Scene()).to_dict()

    assert set(written) == ALWAYS | {"evidence", "origin"}
    assert not nulls_in(written)
    assert [name for name, value in written.items() if value in ("", [], {})] == []


@given(reports())
@pytest.mark.acceptance("pipelex 2")
def test_any_report_reads_back_equal(report: ErrorReport) -> None:
    assert from_dict(json.loads(json.dumps(to_dict(report)))) == report
    assert from_json(to_json(report)) == report
    assert to_json(from_json(to_json(report))) == to_json(report)


@given(reports())
def test_the_tolerant_reader_reads_our_own_version_exactly(report: ErrorReport) -> None:
    assert ErrorReport.read(to_json(report)) == report
    assert ErrorReport.read(to_json(report).encode()) == report
    assert ErrorReport.read(to_dict(report)) == report


@pytest.mark.acceptance("pipelex 2")
@pytest.mark.parametrize("policy", list(TracebackPolicy))
def test_the_raw_body_of_a_provider_is_nowhere_in_a_report(policy: TracebackPolicy) -> None:
    try:
        try:
            raise ApiError(BODY)
        except ApiError as below:
            raise make_fault(message="the call failed") from below
    except failwell.Fault as error:
        report = failwell.describe(error, policy=policy)

    assert "Lovelace" not in report.to_json()
    assert "body" not in report.to_dict().get("provider_metadata", {})


@pytest.mark.acceptance("pipelex 2")
def test_a_full_report_reads_back_equal() -> None:
    report = failwell.describe(
        make_fault(
            provider="acme",
            model="large",
            provider_metadata=ProviderMetadata(sdk="acme", status_code=429, headers={"retry-after": "7"}),
            not_before=NotBefore(after=7, source="retry-after"),
            fields_invalid=[],
            resource_shortfall=capability.ResourceShortfall("disk_mb", 2.5, 1),
            details={"nested": {"list": [1, None, "x"]}},
        ),
        policy="full",
        scene=Scene(run="r1", attempt=2),
    )

    assert from_json(to_json(report)) == report


@pytest.mark.acceptance("pipelex 4")
@each("name", [field.name for field in fields(ErrorReport)])
def test_a_report_cannot_be_changed(name: str) -> None:
    report = make_report()

    with pytest.raises(FrozenInstanceError):
        setattr(report, name, "changed")
    with pytest.raises(FrozenInstanceError):
        delattr(report, name)


@pytest.mark.acceptance("pipelex 4")
def test_nothing_can_be_added_to_a_report() -> None:
    with pytest.raises((FrozenInstanceError, TypeError)):
        make_report().mood = "bad"  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.acceptance("pipelex 5")
@pytest.mark.parametrize("category", list(Category))
def test_a_category_is_a_plain_lower_case_string_in_json(category: Category) -> None:
    report = make_report(kind="external.some.failure", category=category, retryable=category.retryable)

    written = json.loads(report.to_json())

    assert written["category"] == category.value == category.value.lower()
    assert type(report.to_dict()["category"]) is str
    assert written["retryable"] is (category.value == "transient")


@pytest.mark.acceptance("pipelex 5")
@pytest.mark.parametrize(
    "category", [category for category in Category if category is not Category.TRANSIENT]
)
def test_no_other_category_can_be_made_retryable(category: Category) -> None:
    with pytest.raises(ValueError, match="cannot be retryable"):
        make_report(kind="external.some.failure", category=category, retryable=True)


def test_a_report_cannot_contradict_its_kind() -> None:
    with pytest.raises(ValueError, match=r"`provider\.auth` is configuration, not transient"):
        replace(make_report(kind="provider.auth"), category=Category.TRANSIENT)


@pytest.mark.parametrize("kind", ["nodot", "Upper.case", "", "a.b\n"])
def test_a_report_cannot_have_a_kind_that_is_none(kind: str) -> None:
    with pytest.raises(ValueError, match="is not a kind"):
        replace(make_report(), kind=kind, category=Category.UNKNOWN, retryable=False)


@pytest.mark.parametrize(
    "at",
    [datetime(2026, 3, 1), datetime(2026, 3, 1, tzinfo=timezone(timedelta(hours=1)))],  # noqa: DTZ001
    ids=["naive", "elsewhere"],
)
def test_a_report_cannot_happen_outside_utc(at: datetime) -> None:
    with pytest.raises(ValueError, match="aware time in UTC"):
        make_report(occurred_at=at)


def test_one_line_of_json_without_spaces_keeps_its_words_readable() -> None:
    text = make_report(message="zu groß für Ä").to_json()

    assert "\n" not in text
    assert '"message":"zu groß für Ä"' in text


def test_what_json_cannot_hold_is_named_and_not_fatal() -> None:
    report = make_report(details={"handle": object(), "set": {1}, "nan": float("nan")})

    written = json.loads(report.to_json())

    assert written["details"] == {"handle": "<object>", "set": [1], "nan": "nan"}


def test_a_report_built_around_nonsense_is_still_written() -> None:
    report = make_report(scene=Scene(run=object()), message=b"bytes")  # pyright: ignore[reportArgumentType]

    written = json.loads(report.to_json())

    assert (written["scene"]["run"], written["message"]) == ("<object>", "<5 bytes>")


def test_half_of_a_surrogate_pair_does_not_reach_the_wire() -> None:
    text = make_report(message="a\ud800b", details={"k\udfff": "v"}).to_json()

    assert text.encode("utf-8")
    assert json.loads(text)["message"] == "a?b"
    read = ErrorReport.read(text.replace("a?b", "a\\ud800b\\ud83d\\ude00"))
    assert read.message == "a?b😀"


def test_a_report_can_be_hashed_compared_and_pickled() -> None:
    one, other = make_report(details={"a": [1]}), make_report(details={"a": [1]})

    assert one == other
    assert len({one, other}) == 1
    assert pickle.loads(pickle.dumps(one)) == one


def test_the_methods_are_the_functions() -> None:
    report = make_report()

    assert (report.to_dict(), report.to_json()) == (to_dict(report), to_json(report))
    assert ErrorReport.from_dict(to_dict(report)) == ErrorReport.from_json(to_json(report)) == report


def test_times_are_written_in_utc_with_their_zone() -> None:
    assert make_report().to_dict()["occurred_at"] == "2026-03-01T12:00:00+00:00"
    assert NOON.tzinfo is UTC


def test_a_written_report_shares_nothing_that_could_change_it() -> None:
    report = make_report(fields_invalid=("a",), scene=Scene(run="r1"))
    written: dict[str, Any] = report.to_dict()

    written["fields_invalid"].append("b")
    written["scene"]["run"] = "r2"

    assert (report.fields_invalid, report.scene.run) == (("a",), "r1")
