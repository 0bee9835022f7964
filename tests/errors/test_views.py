"""Who sees what: written on the fields, so that nobody can show too much by accident."""

import json
from dataclasses import fields
from typing import Any

import pytest

import failwell
from failwell import ErrorReport, Fault, errors
from failwell.capability import ResourceShortfall
from failwell.errors import NotBefore, ProviderMetadata, Scene
from failwell.errors.report import Attempt, Cause, Evidence, Frame, Internal
from failwell.errors.views import AUDIENCES
from failwell.testing.builders import NOON, make_fault, make_report

USER = {
    "schema",
    "id",
    "kind",
    "category",
    "domain",
    "certainty",
    "retryable",
    "title",
    "message",
    "user_action",
    "not_before",
    "fields_invalid",
    "resource_shortfall",
    "scene",
    "occurred_at",
}
MODEL = {
    "kind",
    "title",
    "category",
    "retryable",
    "wait_seconds",
    "action",
    "advice",
    "fields_invalid",
    "context",
}


def a_full_report() -> ErrorReport:
    """Every field set; what only an operator may see is called `inside`."""
    return make_report(
        kind="tool.timeout",
        message="the search took too long",
        scene=Scene(
            run="r1", workflow="w", node="n", item="i", job="j", session="s", turn="t", tool="search",
            capability="inside", instance="inside", attempt=2,
        ),
        provider="inside",
        model="inside",
        provider_metadata=ProviderMetadata(sdk="inside"),
        not_before=NotBefore(after=3.5, at=NOON, source="retry-after"),
        fields_invalid=("query",),
        resource_shortfall=ResourceShortfall("disk_mb", 2, 1),
        details={"tool": "search", "query": "inside"},
        causes=(Cause(type="Inner", kind="tool.failed", message="inside"),),
        frames=(Frame(boundary="node", name="inside"),),
        attempts=(Attempt(number=1, reason="inside"), Attempt(number=2)),
        evidence=(Evidence(rule="inside", basis="type"),),
        internal=Internal(repr="inside", traceback="inside"),
    )  # fmt: skip


def test_every_field_of_a_report_has_its_audiences() -> None:
    assert set(AUDIENCES) == {field.name for field in fields(ErrorReport)} | {"domain"}


def test_the_user_sees_what_happened_and_the_next_step() -> None:
    shown = a_full_report().view("user")

    assert set(shown) == USER
    assert shown["message"] == "the search took too long"
    assert shown["scene"] == {
        "run": "r1",
        "workflow": "w",
        "node": "n",
        "item": "i",
        "job": "j",
        "session": "s",
        "turn": "t",
        "tool": "search",
    }
    assert "inside" not in json.dumps(shown)


def test_words_that_were_not_written_for_the_caller_are_replaced_by_the_kinds() -> None:
    report = make_report(message="engine 7 tripped", caller_facing=False)

    assert report.view("user")["message"] == errors.kind(report.kind).summary


def test_for_a_kind_that_nobody_registered_the_user_sees_the_title() -> None:
    report = make_report(kind="external.git.drift", message="engine 7 tripped", caller_facing=False)

    assert report.view("user")["message"] == "external.git.drift"


def test_a_scene_of_which_the_user_may_see_nothing_is_not_there() -> None:
    assert "scene" not in make_report(scene=Scene(capability="whisper")).view("user")


@pytest.mark.acceptance("stud-cli 4")
def test_a_model_sees_kind_action_and_allowed_context_and_nothing_else() -> None:
    shown = a_full_report().view("model")

    assert set(shown) == MODEL
    assert (shown["kind"], shown["category"], shown["retryable"]) == ("tool.timeout", "ambiguous", False)
    assert (shown["wait_seconds"], shown["context"]) == (3.5, {"tool": "search"})
    assert shown["action"] == "check_outcome"
    assert "inside" not in json.dumps(shown)


@pytest.mark.acceptance("stud-cli 4")
def test_a_model_sees_neither_stack_nor_cause_of_a_real_failure() -> None:
    try:
        try:
            raise KeyError("inside")
        except KeyError as below:
            raise make_fault(
                kind="tool.failed", message="inside", details={"tool": "search", "pw": "x"}
            ) from below
    except Fault as error:
        shown = failwell.describe(error, policy="full").view("model")

    assert shown["context"] == {"tool": "search"}
    assert "inside" not in json.dumps(shown)


def test_a_model_is_told_an_action_even_for_a_kind_that_nobody_registered() -> None:
    shown = make_report(kind="external.git.drift").view("model")

    assert shown == {
        "kind": "external.git.drift",
        "title": "external.git.drift",
        "category": "unknown",
        "retryable": False,
        "action": "unknown",
    }


def test_a_model_sees_more_only_where_that_was_allowed() -> None:
    report = a_full_report()

    plain, allowed = report.view("model"), report.view("model", debug=True)

    assert {"message", "causes"} & set(plain) == set()
    assert allowed["message"] == "the search took too long"
    assert allowed["causes"] == [{"type": "Inner", "kind": "tool.failed", "message": "inside"}]
    assert {name: allowed[name] for name in plain} == plain
    assert not {"internal", "evidence", "provider", "details"} & set(allowed)


@pytest.mark.parametrize("audience", ["user", "operator", "audit"])
def test_debugging_for_models_shows_nobody_else_more(audience: Any) -> None:
    report = a_full_report()

    assert report.view(audience, debug=True) == report.view(audience)


def test_an_operator_sees_every_field() -> None:
    assert a_full_report().view("operator") == a_full_report().to_dict()


@pytest.mark.acceptance("stud-cli 5")
def test_an_auditor_sees_kind_full_context_causes_and_the_number_of_attempts() -> None:
    shown = a_full_report().view("audit")

    assert shown == a_full_report().to_dict()
    assert (shown["kind"], shown["details"]) == ("tool.timeout", {"tool": "search", "query": "inside"})
    assert shown["error_type"] == a_full_report().error_type
    assert [cause["type"] for cause in shown["causes"]] == ["Inner"]
    assert len(shown["attempts"]) == 2


def test_keys_of_a_newer_peer_are_for_the_audit_alone() -> None:
    report = ErrorReport.read({**make_report().to_dict(), "weather": "rain"})

    seen = {
        audience: "weather" in report.view(audience) for audience in ("user", "model", "operator", "audit")
    }

    assert seen == {"user": False, "model": False, "operator": False, "audit": True}


@pytest.mark.parametrize("audience", ["user", "model", "operator", "audit"])
@pytest.mark.parametrize("report", [make_report(), a_full_report()], ids=["plain", "full"])
def test_every_view_is_json(report: ErrorReport, audience: Any) -> None:
    shown = report.view(audience)

    assert json.loads(json.dumps(shown)) == shown
