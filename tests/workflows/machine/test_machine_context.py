"""What templates and conditions see, in every context mode, and how waits are spread."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failwell.calls.backoff import Backoff
from failwell.workflows.machine.messages import Failed
from failwell.workflows.machine.retry_policy import route_retry
from tests.workflows.machine.stage import Stage, fails
from tests.workflows.plans import a_plan, a_script, a_set, on_error, to

DETAILS = {"branch": "main", "depth": {"n": 2}}


@pytest.mark.acceptance("conductor 26")
@pytest.mark.parametrize(
    ("when", "holds"),
    [
        ("{{ error.details.branch == 'main' }}", True),
        ("{{ error.details.branch == 'dev' }}", False),
        ("error_kind == 'external.x'", True),
        ("kind == 'external.x'", True),
        ("kind == 'external.y'", False),
        ("error.message == 'm' and details.branch == 'main'", True),
        ("error_details.depth.n > 1 and output.half == 1", True),
        ("a.error.kind == 'external.x'", True),
    ],
)
def test_a_condition_of_an_error_route_sees_the_error_in_every_form(when: str, holds: bool) -> None:
    node = a_script("a", on_error("external.x", to="taken", when=when), on_error(to="other"))
    answers = {"a": [fails("external.x", details=DETAILS, output={"half": 1})]}

    stage = Stage(a_plan(node, a_script("taken"), a_script("other")), answers).begin()

    assert stage.ran == ["a", "taken" if holds else "other"]


@pytest.mark.acceptance("conductor 26")
def test_the_kind_is_asked_before_the_condition() -> None:
    broken = on_error("external.y", to="b", when="{{ no.such.thing }}")

    stage = Stage(
        a_plan(a_script("a", broken, on_error(to="b")), a_script("b")), {"a": [fails("external.x")]}
    ).begin()

    assert stage.ran == ["a", "b"]


@pytest.mark.acceptance("conductor 30")
@pytest.mark.parametrize(
    ("mode", "inputs"),
    [("accumulate", ()), ("last_only", ()), ("explicit", ("a.error",)), ("explicit", ("a.error.kind",))],
)
def test_an_error_is_readable_in_every_context_mode(mode: Any, inputs: tuple[str, ...]) -> None:
    text = "{{ a.error.kind }} {{ a.error.message }} {{ a.error.details.depth.n }}"
    plan = a_plan(
        a_script("a", on_error(to="b")),
        a_set("b", value=text, input=inputs),
        context_mode=mode,
        output={"x": "{{ b.output }}"},
    )

    stage = Stage(plan, {"a": [fails("external.x", details=DETAILS)]}).begin()

    assert stage.state.outputs == {"x": "external.x m 2"}


@pytest.mark.acceptance("conductor 31")
def test_an_optional_error_that_never_was_is_left_out() -> None:
    plan = a_plan(
        a_script("a", to("b")),
        a_set("b", value="{{ a.error.kind | default('none') }}", input=("a.error?", "a.output")),
        context_mode="explicit",
        output={"x": "{{ b.output }}"},
    )

    assert Stage(plan).begin().state.outputs == {"x": "none"}


@pytest.mark.parametrize("reference", ["b.output?", "b.output.x?", "b.error?", "b.output"])
def test_a_declared_input_of_a_step_that_never_ran_is_not_defined(reference: str) -> None:
    plan = a_plan(
        a_script("a", to("c", when="{{ true }}"), to("b")),
        a_script("b", to("c")),
        a_set("c", value="{{ b is defined }} {{ b.output.x | default('none') }}", input=(reference,)),
        context_mode="explicit",
    )

    assert Stage(plan).begin().state.outputs == {"result": "False none"}


def test_an_optional_error_of_a_step_that_did_not_fail_is_null() -> None:
    plan = a_plan(
        a_script("a", to("b"), on_error(to="b")),
        a_set("b", value="{{ a.error is none }} {{ a.output is defined }}", input=("a.error?",)),
        context_mode="explicit",
    )

    assert Stage(plan).begin().state.outputs == {"result": "True False"}


def test_explicit_mode_grants_nothing_else() -> None:
    plan = a_plan(
        a_script("a", to("b")), a_set("b", value="{{ a | default('hidden') }}"), context_mode="explicit"
    )

    assert Stage(plan).begin().state.outputs == {"result": "hidden"}


@pytest.mark.parametrize("output_type", ["auto", "string", "list"])
def test_a_secret_that_a_step_passes_on_is_a_secret_still(output_type: str) -> None:
    mark = {"secret": True, "ref": "workflow.input.token"}
    plan = a_plan(
        a_set("alias", to("call"), value="{{ workflow.input.token }}", output_type=output_type),
        a_script("call", env_from={"TOKEN": "alias.output"}),
    )

    stage = Stage(plan).begin(token=mark)

    assert stage.of("node:completed")[0]["output"] == mark
    assert stage.started[0].call["env_from"] == {"TOKEN": "workflow.input.token"}
    assert stage.started[0].call["env"] == {}


@pytest.mark.acceptance("conductor 51")
@given(st.floats(0.0, 1.0, exclude_max=True), st.sampled_from([0.0, 0.25, 1.0]))
def test_jitter_keeps_each_wait_within_its_share(draw: float, jitter: float) -> None:
    again = route_retry(max_retries=3, backoff=Backoff(first=4.0, jitter=jitter))
    stage = Stage(a_plan(a_script("a", on_error(retry=again))), {"a": ["never"]}, is_careful=False).begin()
    failed = stage._event(stage.started[0], fails(), stage.now)  # pyright: ignore[reportPrivateUsage]
    assert isinstance(failed, Failed)

    stage.feed(Failed(at=stage.now, path="a", failure=failed.failure, jitter=draw))

    (retrying,) = stage.of("node:retrying")
    assert 4.0 * (1 - jitter) - 0.001 <= retrying["delay"] <= 4.0 * (1 + jitter) + 0.001


def test_the_iteration_is_the_number_of_steps_that_have_ended() -> None:
    plan = a_plan(
        a_set("a", to("b"), value="{{ context.iteration }}"),
        a_script("b", to("c", when="context.iteration == 2"), args=("{{ context.iteration }}",)),
        a_script("c", on_error(to="d"), args=("{{ context.history | join }}",)),
        a_set("d", value="{{ context.iteration }}"),
        output={"a": "{{ a.output }}", "d": "{{ d.output }}", "end": "{{ context.iteration }}"},
    )

    stage = Stage(plan, {"c": [fails()]}).begin()

    assert stage.state.outputs == {"a": 0, "d": 3, "end": 4}
    assert [request.call["args"] for request in stage.started] == [["1"], ["ab"]]
