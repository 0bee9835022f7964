"""Classified once: a wrapper adds its words and inherits the rest, field by field."""

from dataclasses import fields
from typing import Any

import pytest

import failwell
from failwell import Fault, adapters, errors
from failwell.capability import ResourceShortfall
from failwell.errors import NotBefore, ProviderMetadata, UserAction
from failwell.errors.axes import ActionKind
from failwell.testing.builders import make_fault

LEAF: dict[str, Any] = {
    "kind": "provider.rate_limited",
    "certainty": "partial",
    "blame": "model",
    "user_action": UserAction(ActionKind.CHANGE_MODEL, "Use the small one."),
    "provider": "acme",
    "model": "large",
    "provider_metadata": ProviderMetadata(sdk="acme", status_code=429, code="slow_down", request_id="r1"),
    "not_before": NotBefore(after=7.0, source="retry-after"),
    "fields_invalid": ["size"],
    "resource_shortfall": ResourceShortfall("disk_mb", 2, 1),
}
INHERITED = ("certainty", "blame", "user_action", "provider", "model", "resource_shortfall")


class PipeRun(Fault):
    """One pipe failed."""


class Router(Fault):
    """The router failed."""


class Pipeline(Fault):
    """The pipeline failed."""


def a_pipeline(leaf: BaseException, **on_router: Any) -> Fault:
    pipe = PipeRun.wrap(leaf, "pipe `summarise` failed")
    router = Router.wrap(pipe, "routing failed", **on_router)
    return Pipeline.wrap(router, "the pipeline stopped")


@pytest.mark.acceptance("pipelex 6")
def test_type_and_message_are_the_wrappers_and_everything_else_is_the_leafs() -> None:
    leaf = make_fault(**LEAF)
    alone = failwell.describe(leaf)

    report = failwell.describe(a_pipeline(leaf))

    assert (report.error_type, report.message) == ("Pipeline", "the pipeline stopped")
    assert (report.kind, report.category, report.domain, report.retryable) == (
        "provider.rate_limited",
        "transient",
        "runtime",
        True,
    )
    assert {name: getattr(report, name) for name in INHERITED} == {
        name: getattr(alone, name) for name in INHERITED
    }
    assert report.provider_metadata == alone.provider_metadata
    assert (report.fields_invalid, report.title) == (("size",), alone.title)
    assert report.not_before is not None
    assert (report.not_before.after, report.not_before.source) == (7.0, "retry-after")


@pytest.mark.acceptance("pipelex 6")
def test_a_veto_anywhere_in_the_line_beats_a_retryable_cause() -> None:
    assert failwell.describe(a_pipeline(make_fault())).retryable
    assert not failwell.describe(a_pipeline(make_fault(), retryable=False)).retryable
    assert not failwell.describe(a_pipeline(make_fault(retryable=False))).retryable


def test_nobody_can_grant_a_repeat_that_the_category_does_not() -> None:
    report = failwell.describe(make_fault(kind="provider.auth", retryable=True))

    assert not report.retryable


@pytest.mark.acceptance("pipelex 8")
def test_nothing_is_inherited_through_a_foreign_exception() -> None:
    foreign = RuntimeError("somebody else's story")
    foreign.__cause__ = make_fault(**LEAF)

    report = failwell.describe(Pipeline.wrap(foreign, "stopped"))

    assert report.kind == "internal.bug"
    assert (report.provider, report.model, report.provider_metadata, report.not_before) == (None,) * 4
    assert (report.fields_invalid, report.resource_shortfall) == (None, None)


def test_the_foreign_exception_itself_still_classifies_its_wrapper() -> None:
    report = failwell.describe(a_pipeline(ConnectionRefusedError("x")))

    assert (report.kind, report.certainty) == ("provider.connection", "not_sent")
    assert [(e.rule, e.basis, e.saw) for e in report.evidence] == [
        ("python.ConnectionRefusedError", "type", "ConnectionRefusedError"),
        ("inherited", "cause", "ConnectionRefusedError"),
    ]


def test_an_implicit_context_classifies_nothing() -> None:
    try:
        try:
            raise make_fault(**LEAF)
        except Fault:
            raise Pipeline(message="while cleaning up")
    except Fault as error:
        report = failwell.describe(error)

    assert report.kind == "internal.unknown"
    assert [cause.via for cause in report.causes] == ["context"]


@pytest.mark.acceptance("pipelex 9")
def test_a_chain_that_classifies_nothing_still_has_a_domain_and_an_action() -> None:
    report = failwell.describe(Pipeline.wrap(Router.wrap(PipeRun(message="odd"), "odder"), "oddest"))

    assert (report.kind, report.category, report.domain) == ("internal.unknown", "unknown", "runtime")
    assert report.user_action.kind is ActionKind.UNKNOWN
    assert not report.retryable


@pytest.mark.acceptance("pipelex 10")
def test_metadata_is_inherited_member_by_member() -> None:
    leaf = make_fault(
        provider_metadata=ProviderMetadata(
            status_code=429, retry_after=3.2, request_id="leaf", headers={"retry-after": "4", "date": "today"}
        )
    )
    wrapper = Fault.wrap(
        leaf,
        provider_metadata=ProviderMetadata(sdk="acme", request_id="wrapper", headers={"date": "tomorrow"}),
    )

    metadata = failwell.describe(wrapper).provider_metadata

    assert metadata == ProviderMetadata(
        sdk="acme",
        status_code=429,
        request_id="wrapper",
        retry_after=3.2,
        headers={"retry-after": "4", "date": "tomorrow"},
    )


@pytest.mark.parametrize("name", [f.name for f in fields(ProviderMetadata) if f.name != "headers"])
def test_no_member_of_the_metadata_is_hidden_by_a_wrapper_that_does_not_know_it(name: str) -> None:
    known: dict[str, Any] = {
        "sdk": "acme",
        "exception_type": "ApiError",
        "status_code": 503,
        "code": "odd",
        "request_id": "r1",
        "retry_after": 1.5,
    }
    others = {other: value for other, value in known.items() if other != name}
    leaf = make_fault(provider_metadata=ProviderMetadata(**{name: known[name]}))

    metadata = failwell.describe(
        Fault.wrap(leaf, provider_metadata=ProviderMetadata(**others))
    ).provider_metadata

    assert metadata == ProviderMetadata(**known)


def test_a_wait_of_zero_is_something_that_was_said() -> None:
    leaf = make_fault(provider_metadata=ProviderMetadata(retry_after=5.0))

    report = failwell.describe(Fault.wrap(leaf, provider_metadata=ProviderMetadata(retry_after=0.0)))

    assert report.provider_metadata == ProviderMetadata(retry_after=0.0)


@pytest.mark.acceptance("pipelex 11")
def test_a_callers_fault_gives_its_domain_but_does_not_vouch_for_the_wrappers_words() -> None:
    leaf = make_fault(kind="validation.input_invalid", message="`size` must be positive")

    inner, outer = failwell.describe(leaf), failwell.describe(Pipeline.wrap(leaf, "engine 7 tripped"))

    assert (inner.domain, inner.caller_facing) == ("input", True)
    assert (outer.domain, outer.caller_facing) == ("input", False)
    assert outer.view("user")["message"] == errors.kind("validation.input_invalid").summary


def test_a_wrapper_may_vouch_for_its_words_itself() -> None:
    wrapper = Pipeline.wrap(make_fault(), "please come back later", caller_facing=True)

    assert failwell.describe(wrapper).view("user")["message"] == "please come back later"


@pytest.mark.acceptance("pipelex 12")
def test_describing_fills_in_a_model_only_where_nobody_named_one() -> None:
    named = failwell.describe(Pipeline.wrap(make_fault(model="leaf")), provider="acme", model="outer")
    unnamed = failwell.describe(Pipeline.wrap(make_fault()), provider="acme", model="outer")

    assert (named.provider, named.model) == ("acme", "leaf")
    assert (unnamed.provider, unnamed.model) == ("acme", "outer")


@pytest.mark.acceptance("pipelex 12")
def test_translating_fills_in_a_model_only_where_nobody_named_one() -> None:
    wrapper = Pipeline.wrap(make_fault(model="leaf"))

    translated = adapters.translate(wrapper, provider="acme", model="outer")

    assert translated is wrapper
    assert (failwell.describe(wrapper).provider, failwell.describe(wrapper).model) == ("acme", "leaf")
    assert failwell.describe(adapters.translate(ValueError(), model="outer")).model == "outer"


@pytest.mark.acceptance("pipelex 12")
@pytest.mark.parametrize("placeholder", ["unknown", "", "  ", None])
def test_a_placeholder_is_never_stored_as_a_name(placeholder: str | None) -> None:
    fault = make_fault(provider=placeholder, model=placeholder)

    nothing = failwell.describe(fault, provider=placeholder, model=placeholder)
    filled = failwell.describe(adapters.translate(fault, provider="acme", model="large"))

    assert (nothing.provider, nothing.model) == (None, None)
    assert (filled.provider, filled.model) == ("acme", "large")


def test_details_of_the_whole_line_are_joined_and_the_nearest_wins() -> None:
    class Step(Fault):
        """A step failed."""

        step: str

    leaf = make_fault(details={"batch": 1, "shard": 4})

    report = failwell.describe(Step.wrap(leaf, step="summarise", details={"batch": 2}))

    assert report.details == {"step": "summarise", "batch": 2, "shard": 4}


def test_a_wrapper_that_names_its_kind_keeps_the_facts_and_drops_the_judgement() -> None:
    leaf = make_fault(**LEAF)

    report = failwell.describe(Fault.wrap(leaf, kind="tool.failed"))

    assert (report.kind, report.category, report.retryable) == ("tool.failed", "unknown", False)
    assert (report.provider, report.fields_invalid) == ("acme", ("size",))
    assert report.evidence[0].rule == "declared"


def test_a_wrapper_that_renames_a_foreign_cause_does_not_keep_its_judgement() -> None:
    wrapper = Fault.wrap(ConnectionRefusedError("x"), kind="tool.failed")

    report = failwell.describe(wrapper)

    assert (report.certainty, report.blame) == ("unknown", "tool")


def test_evidence_says_who_declared_the_kind_and_that_it_was_inherited() -> None:
    report = failwell.describe(a_pipeline(make_fault()))

    assert [(e.rule, e.saw) for e in report.evidence] == [("declared", "Fault"), ("inherited", "Fault")]
