"""`describe`: any exception becomes one report, whatever the exception is up to."""

from collections import UserDict
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

import failwell
from failwell import Fault, adapters, errors
from failwell.capability import ResourceShortfall
from failwell.errors import NotBefore, ProviderMetadata, UserAction
from failwell.errors.axes import ActionKind
from failwell.errors.explanations import translate_name
from failwell.errors.report import Attempt
from failwell.testing.builders import NOON, make_fault, make_report


class Hostile(Exception):
    """Every question is answered with an exception."""

    def __str__(self) -> str:
        raise GeneratorExit("str")

    def __repr__(self) -> str:
        raise GeneratorExit("repr")

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")

    def __hash__(self) -> int:
        raise RuntimeError("hash")


class Grumpy(Fault, kind="provider.auth"):
    """A fault of an author who made a mistake."""

    def summary(self) -> str:
        raise ZeroDivisionError("in the summary itself")


def test_a_fault_says_what_it_is_and_everything_follows() -> None:
    report = failwell.describe(make_fault(message="slow down"), at=NOON)

    kind = errors.kind("provider.rate_limited")
    assert (report.kind, report.category, report.certainty, report.blame) == (
        kind.name,
        kind.category,
        kind.certainty,
        kind.blame,
    )
    assert (report.message, report.title, report.error_type) == ("slow down", kind.title, "Fault")
    assert report.user_action == UserAction(kind.action, kind.advice)
    assert (report.http_status, report.domain, report.resubmit) == (429, "runtime", True)
    assert (report.occurred_at, report.caller_facing) == (NOON, True)


def test_a_fault_without_a_kind_is_unclassified() -> None:
    report = failwell.describe(Fault(message="odd"))

    assert (report.kind, report.category, report.message) == ("internal.unknown", "unknown", "odd")


def test_an_authors_unregistered_kind_is_kept_and_never_retried() -> None:
    report = failwell.describe(make_fault(kind="external.git.drift", message="drifted"))

    assert (report.kind, report.category, report.title) == (
        "external.git.drift",
        "unknown",
        "external.git.drift",
    )
    assert (report.retryable, report.resubmit, report.http_status) == (False, False, 500)
    assert report.user_action == UserAction(ActionKind.UNKNOWN, "")


def test_an_authors_registered_kind_gets_what_was_registered() -> None:
    errors.register_kind(
        "external.git.drift", category="configuration", title="Drifted", advice="Check out the commit."
    )

    report = failwell.describe(Fault(kind="external.git.drift"))

    assert (report.category, report.domain, report.title) == ("configuration", "config", "Drifted")
    assert report.user_action.detail == "Check out the commit."


@pytest.mark.parametrize("policy", ["full", "repr_only", "none", "strict"])
def test_an_exception_that_bites_is_described_all_the_same(policy: str) -> None:
    report = failwell.describe(Hostile("x"), policy=policy)

    assert (report.error_type, report.retryable) == ("Hostile", False)
    assert failwell.ErrorReport.from_json(report.to_json()) == report


def test_an_author_whose_summary_fails_still_gets_the_classification() -> None:
    report = failwell.describe(Grumpy())
    wrapped = failwell.describe(Fault.wrap(Grumpy(), "outside"))

    assert (report.kind, report.message) == ("provider.auth", errors.kind("provider.auth").summary)
    assert (wrapped.kind, wrapped.causes[0].message) == ("provider.auth", None)


@pytest.mark.parametrize(
    "name",
    [
        "not_before",
        "provider_metadata",
        "resource_shortfall",
        "fields_invalid",
        "details",
        "user_action",
        "provider",
        "model",
    ],
)
def test_a_field_that_holds_nonsense_costs_nothing_but_itself(name: str) -> None:
    fault = make_fault(message="slow down")
    setattr(fault, name, object())

    report = failwell.describe(fault)

    assert (report.kind, report.message, report.retryable) == ("provider.rate_limited", "slow down", True)
    assert failwell.ErrorReport.from_json(report.to_json()) == report


@pytest.mark.acceptance("stud-cli 6")
def test_values_that_cannot_be_stored_are_named_by_their_type() -> None:
    class Handle:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    class Unreadable(UserDict[str, str]):
        def items(self) -> Any:
            raise OSError("gone")

    circle: list[Any] = []
    circle.append(circle)
    fault = make_fault(
        details={"handle": Handle(), "map": Unreadable(a="b"), "circle": circle, "set": {1}, 5: "five"}
    )

    report = failwell.describe(fault)

    assert (report.details["handle"], report.details["map"]) == ("<Handle>", "<Unreadable>")
    assert (report.details["set"], report.details["5"]) == ([1], "five")
    assert "… [cut]" in report.to_json()
    assert report.kind == "provider.rate_limited"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (datetime(2026, 3, 1, 12, tzinfo=UTC), datetime(2026, 3, 1, 12, tzinfo=UTC)),
        (datetime(2026, 3, 1, 14, tzinfo=timezone(timedelta(hours=2))), datetime(2026, 3, 1, 12, tzinfo=UTC)),
        (datetime(2026, 3, 1, 12), datetime(2026, 3, 1, 12, tzinfo=UTC)),  # noqa: DTZ001
    ],
    ids=["UTC", "elsewhere", "naive"],
)
def test_the_time_is_always_aware_and_always_utc(given: datetime, kept: datetime) -> None:
    report = failwell.describe(ValueError(), at=given)

    assert (report.occurred_at, report.occurred_at.tzinfo) == (kept, UTC)


def test_without_a_time_it_happened_now() -> None:
    before = datetime.now(UTC)

    report = failwell.describe(ValueError())

    assert before <= report.occurred_at <= datetime.now(UTC)


@pytest.mark.parametrize(
    ("after", "kept"),
    [(7, 7.0), (0, 0.0), (-3, 0.0), (float("nan"), None), (float("inf"), None), (1e9, None)],
)
def test_only_a_credible_wait_is_kept(after: float, kept: float | None) -> None:
    report = failwell.describe(make_fault(not_before=NotBefore(after=after)), at=NOON)

    assert (None if report.not_before is None else report.not_before.after) == kept
    if report.not_before is not None:
        assert report.not_before.at == NOON + timedelta(seconds=report.not_before.after)


def test_a_told_time_is_kept_in_utc() -> None:
    at = datetime(2026, 3, 1, 14, 30, tzinfo=timezone(timedelta(hours=2)))

    report = failwell.describe(make_fault(not_before=NotBefore(after=1800, at=at)), at=NOON)

    assert report.not_before is not None
    assert report.to_dict()["not_before"]["at"] == "2026-03-01T12:30:00+00:00"


def test_the_advice_says_how_long_to_wait_where_that_is_known() -> None:
    report = failwell.describe(make_fault(not_before=NotBefore(after=3.2)))

    assert report.user_action == UserAction(ActionKind.WAIT_AND_RETRY, "Wait 4 s, then repeat the call.")


def test_an_authors_advice_beats_the_kinds() -> None:
    told = UserAction(ActionKind.DECIDE, "Ask Ada; password=hunter2hunter2.")

    report = failwell.describe(make_fault(user_action=told))

    assert report.user_action.kind is ActionKind.DECIDE
    assert report.user_action.detail == "Ask Ada; password=[redacted]"


def test_a_shortfall_without_a_number_is_not_kept() -> None:
    known = ResourceShortfall("disk_mb", needed=2, available=1)
    endless = ResourceShortfall("disk_mb", needed=float("inf"), available=1)

    assert failwell.describe(make_fault(resource_shortfall=known)).resource_shortfall == known
    assert failwell.describe(make_fault(resource_shortfall=endless)).resource_shortfall is None


def test_what_the_provider_said_is_filtered() -> None:
    said = ProviderMetadata(
        sdk="acme",
        code="slow_down",
        request_id="sk-live-0123456789abcdef",
        retry_after=float("nan"),
        headers={"Retry-After": "7", "Set-Cookie": "session=abc", "x-ratelimit-limit-requests": "100"},
    )

    report = failwell.describe(make_fault(provider_metadata=said))

    assert report.provider_metadata == ProviderMetadata(
        sdk="acme",
        code="slow_down",
        request_id="[redacted]",
        headers={"retry-after": "7", "x-ratelimit-limit-requests": "100"},
    )


def test_a_provider_that_said_nothing_is_not_kept() -> None:
    assert failwell.describe(make_fault(provider_metadata=ProviderMetadata())).provider_metadata is None


def test_the_tries_that_led_here_are_kept() -> None:
    tries = [Attempt(number=1, kind="provider.timeout", wait=1.0), Attempt(number=2)]

    assert failwell.describe(make_fault(), attempts=tries).attempts == tuple(tries)


@pytest.mark.parametrize("names", [None, [], ["size"]])
def test_an_empty_list_of_fields_differs_from_none(names: list[str] | None) -> None:
    report = failwell.describe(make_fault(fields_invalid=names))

    assert report.fields_invalid == (None if names is None else tuple(names))
    assert failwell.ErrorReport.from_json(report.to_json()).fields_invalid == report.fields_invalid


def test_fields_are_bounded_in_number_and_length() -> None:
    report = failwell.describe(make_fault(fields_invalid=["f" * 1_000] * 500))

    assert report.fields_invalid is not None
    assert len(report.fields_invalid) == 50
    assert all(len(name) <= 200 and name.endswith("cut]") for name in report.fields_invalid)


def test_provider_and_model_are_bounded() -> None:
    report = failwell.describe(make_fault(provider="p" * 10_000), model="m" * 10_000)

    for name in (report.provider, report.model):
        assert name is not None
        assert len(name) <= 200
        assert name.endswith("characters cut]")


@pytest.mark.acceptance("stud-cli 7")
def test_an_untyped_exception_from_a_tool_becomes_a_typed_failure_with_its_cause() -> None:
    original = ValueError("whatever the tool does inside")

    fault = adapters.translate(original, origin="tool")
    report = failwell.describe(fault)

    assert isinstance(fault, errors.ToolTerminal)
    assert (fault.kind, fault.__cause__) == ("tool.failed", original)
    # `tool.failed` is what that system calls `ToolExecutionFailed`.
    assert ("stud-cli", "tool.failed") in translate_name("ToolTerminal/ToolExecutionFailed")
    assert (report.kind, report.error_type) == ("tool.failed", "ValueError")
    assert failwell.describe(original, origin="tool").kind == "tool.failed"


@pytest.mark.acceptance("stud-cli 7")
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (KeyError("x"), "tool.failed"),
        (RuntimeError("x"), "tool.failed"),
        (type("Odd", (Exception,), {})("x"), "tool.failed"),
        (TimeoutError("x"), "provider.outcome_unknown"),
        (MemoryError("x"), "resource.system_memory"),
        (KeyboardInterrupt(), "cancel.run"),
        (make_fault(kind="tool.denied"), "tool.denied"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_only_errors_that_say_nothing_are_given_the_kind_of_the_edge(error: BaseException, kind: str) -> None:
    assert failwell.describe(error, origin="tool").kind == kind


@pytest.mark.acceptance("stud-cli 8")
def test_behaviour_follows_the_kind_and_never_the_words() -> None:
    words = "429 rate limited, please retry"
    denied, limited = make_fault(kind="tool.denied", message=words), make_fault(message=words)
    other = make_fault(message="401 invalid key: fatal, do not retry")

    one, two, three = (failwell.describe(fault) for fault in (denied, limited, other))

    assert one.message == two.message
    assert (one.retryable, one.category, one.http_status) == (False, "denied", 403)
    assert (two.retryable, two.category, two.http_status) == (True, "transient", 429)
    same = {"message": two.message, "id": two.id, "occurred_at": two.occurred_at}
    assert replace(three, **same) == two


def test_the_builders_make_the_same_report_every_time() -> None:
    with errors.scene(run="r1"):
        inside = make_report()

    assert inside == make_report()
    assert make_report(kind="tool.denied", model="m").category == "denied"
    assert make_report(kind="tool.denied", model="m").model == "m"
    with pytest.raises(ValueError, match="the kind decides"):
        make_report(category="fatal")
