"""How a run moves: success and error routes, repeats, halts, limits, and what is on record."""

from dataclasses import replace

import pytest

from failwell.calls.backoff import Backoff
from failwell.errors.report import Attempt
from failwell.workflows.failure import Failure
from failwell.workflows.machine.messages import Begin, Failed, Stopped
from failwell.workflows.machine.retry_policy import node_retry, route_retry
from failwell.workflows.plan import Limits
from tests.workflows.machine.stage import Stage, cancel, fails
from tests.workflows.plans import a_parallel, a_plan, a_script, a_set, a_wait, on_error, to


def test_a_run_goes_from_node_to_node_and_puts_out_what_it_was_asked_for() -> None:
    plan = a_plan(
        a_script("build", to("shape")),
        a_set("shape", value="{{ build.output.ok }}!"),
        output={"x": "{{ shape.output }}"},
    )

    stage = Stage(plan).begin()

    assert stage.state.status == "completed"
    assert stage.state.outputs == {"x": "build!"}


@pytest.mark.acceptance("relavium 40")
def test_exactly_one_terminal_fact_is_the_last() -> None:
    stage = Stage(a_plan(a_script("a", to("b")), a_script("b"))).begin()

    ends = [name for name in stage.types if name in ("run:completed", "run:failed", "run:cancelled")]
    assert ends == ["run:completed"]
    assert stage.types[-1] == "run:completed"
    assert stage.state.seq == len(stage.facts)


@pytest.mark.acceptance("conductor 24")
def test_success_never_takes_an_error_route_and_a_failure_never_a_success_route() -> None:
    node = a_script("a", on_error(to="rescue"), to("fine"), on_error("external.x", to="never"))
    plan = a_plan(node, a_script("rescue"), a_script("fine"), a_script("never"))

    well = Stage(plan).begin()
    badly = Stage(plan, {"a": [fails()]}).begin()

    assert well.ran == ["a", "fine"]
    assert badly.ran == ["a", "rescue"]


@pytest.mark.acceptance("conductor 25")
def test_the_first_error_route_that_fits_wins_and_a_list_fits_its_members() -> None:
    node = a_script(
        "a", on_error("external.y", "external.x", to="first"), on_error("external.x", to="second")
    )
    plan = a_plan(node, a_script("first"), a_script("second"))

    stage = Stage(plan, {"a": [fails("external.x")]}).begin()

    assert stage.ran == ["a", "first"]


@pytest.mark.acceptance("conductor 28")
def test_a_failure_without_any_route_ends_the_run_and_is_not_an_end() -> None:
    stage = Stage(a_plan(a_script("a")), {"a": [fails(message="gone")]}).begin()

    ended = stage.of("run:failed")[0]
    assert ended["error_type"] == "UnhandledWorkflowError"
    assert ended["envelope"]["kind"] == "external.x"
    assert [frame["node"] for frame in ended["frames"]] == ["a"]


@pytest.mark.acceptance("conductor 29")
def test_a_kind_that_was_not_declared_is_wrapped() -> None:
    node = a_script("a", on_error("internal.undeclared_kind", to="rescue"), raises=("external.y",))
    stage = Stage(
        a_plan(
            node,
            a_set("rescue", value="{{ a.error.details.original_kind }}"),
            output={"k": "{{ rescue.output }}"},
        ),
        {"a": [fails("external.x", message="m", details={"n": 1})]},
    ).begin()

    details = stage.of("node:failed")[0]["failure"]["envelope"]["details"]
    assert stage.state.outputs == {"k": "external.x"}
    assert details == {
        "original_kind": "external.x",
        "original_message": "m",
        "original_details": {"n": 1},
        "declared": ["external.y"],
    }


@pytest.mark.acceptance("conductor 27")
def test_an_error_route_to_the_end_says_what_is_put_out() -> None:
    node = a_script("a", on_error(to="$end", k="{{ error.kind }}"))

    stage = Stage(a_plan(node), {"a": [fails("external.x")]}).begin()

    assert stage.state.outputs == {"k": "external.x"}


@pytest.mark.acceptance("conductor 49")
def test_a_retry_route_runs_the_node_again_after_growing_waits_and_leaves_by_success() -> None:
    again = route_retry(max_retries=3, backoff=Backoff(first=1.0, jitter=0.0))
    plan = a_plan(a_script("a", to("b"), on_error(retry=again)), a_script("b"))

    stage = Stage(plan, {"a": [fails(), fails()]}).begin()

    assert stage.ran == ["a", "a", "a", "b"]
    assert [one["delay"] for one in stage.of("node:retrying")] == [1.0, 2.0]


@pytest.mark.acceptance("conductor 50")
def test_a_used_up_retry_gives_way_to_the_next_route() -> None:
    again = route_retry(max_retries=3, backoff=Backoff(first=1.0, jitter=0.0))
    routed = a_plan(a_script("a", on_error(retry=again), on_error(to="rescue")), a_script("rescue"))
    bare = a_plan(a_script("a", on_error(retry=again)))

    taken = Stage(routed, {"a": [fails()] * 4}).begin()
    unhandled = Stage(bare, {"a": [fails()] * 4}).begin()

    assert taken.ran == ["a"] * 4 + ["rescue"]
    assert [one["delay"] for one in taken.of("node:retrying")] == [1.0, 2.0, 4.0]
    assert unhandled.of("run:failed")[0]["error_type"] == "UnhandledWorkflowError"


def test_each_retry_route_counts_its_own_retries_and_waits() -> None:
    again = route_retry(max_retries=2, backoff=Backoff(first=1.0, jitter=0.0))
    node = a_script(
        "a", on_error("external.x", retry=again), on_error("external.y", retry=again), on_error(to="rescue")
    )
    failures = [
        fails("external.x"),
        fails("external.y"),
        fails("external.x"),
        fails("external.y"),
        fails("external.x"),
    ]

    stage = Stage(a_plan(node, a_script("rescue")), {"a": failures}).begin()

    assert stage.ran == ["a"] * 5 + ["rescue"]
    assert [(one["route"], one["delay"]) for one in stage.of("node:retrying")] == [
        (0, 1.0),
        (1, 1.0),
        (0, 2.0),
        (1, 2.0),
    ]


@pytest.mark.acceptance("conductor 52")
def test_a_second_failure_of_another_kind_is_routed_anew() -> None:
    again = route_retry(max_retries=3, backoff=Backoff(first=1.0, jitter=0.0))
    node = a_script("a", on_error("external.x", retry=again), on_error("external.y", to="rescue"))

    stage = Stage(a_plan(node, a_script("rescue")), {"a": [fails("external.x"), fails("external.y")]}).begin()

    assert stage.ran == ["a", "a", "rescue"]


@pytest.mark.acceptance("conductor 53")
def test_templates_and_requests_agree_on_the_attempt() -> None:
    again = route_retry(max_retries=3, backoff=Backoff(first=1.0, jitter=0.0))
    node = a_script(
        "a", on_error(retry=again), args=("{{ failwell.retry_attempt }}", "{{ conductor.retry_attempt }}")
    )

    stage = Stage(a_plan(node), {"a": [fails(), fails()]}).begin()

    assert [request.attempt for request in stage.started] == [1, 2, 3]
    assert [request.call["args"] for request in stage.started] == [["0", "0"], ["1", "1"], ["2", "2"]]


@pytest.mark.acceptance("conductor 54")
def test_the_iteration_limit_stops_a_retry() -> None:
    again = route_retry(max_retries=10, backoff=Backoff(first=1.0, jitter=0.0))
    plan = a_plan(a_script("a", on_error(retry=again)), limits=Limits(max_iterations=3))

    stage = Stage(plan, {"a": [fails()] * 20}).begin()

    assert stage.ran == ["a"] * 3
    assert stage.of("run:failed")[0]["envelope"]["kind"] == "limit.iterations"


@pytest.mark.acceptance("conductor 57")
def test_halt_ends_the_run_with_its_own_message_and_the_cause() -> None:
    node = a_script("a", on_error(halt="stop {{ error.kind }}"))

    stage = Stage(a_plan(node), {"a": [fails("external.x")]}).begin()

    envelope = stage.of("run:failed")[0]["envelope"]
    assert envelope["kind"] == "halt.intentional"
    assert envelope["message"] == "stop external.x"
    assert envelope["details"]["cause"]["kind"] == "external.x"


@pytest.mark.acceptance("conductor 32")
def test_a_handled_error_is_cleared_by_the_next_success_of_its_node() -> None:
    plan = a_plan(
        a_script("a", to("b"), on_error(to="fix")),
        a_script("fix", to("a")),
        a_set("b", value="{{ 'error' in a }}"),
        output={"failed": "{{ b.output }}", "out": "{{ a.output.ok }}"},
    )

    stage = Stage(plan, {"a": [fails()]}).begin()

    assert stage.state.outputs == {"failed": False, "out": "a"}


@pytest.mark.acceptance("conductor 33")
def test_a_failed_node_keeps_its_partial_output_beside_its_error() -> None:
    plan = a_plan(
        a_script("a", on_error(to="b")),
        a_set("b", value="{{ a.output.half }}/{{ a.error.kind }}"),
        output={"x": "{{ b.output }}"},
    )

    stage = Stage(plan, {"a": [fails("external.x", output={"half": 1})]}).begin()

    assert stage.state.outputs == {"x": "1/external.x"}


@pytest.mark.acceptance("relavium 44")
def test_a_nodes_own_retries_are_told_one_by_one() -> None:
    retry = node_retry(max_attempts=3, backoff=Backoff(first=1.0, longest=86_400.0))
    plan = a_plan(a_script("a", retry=retry))

    stage = Stage(plan, {"a": [fails("internal.io_error"), fails("internal.io_error")]}).begin()

    assert [one["attempt"] for one in stage.of("node:started")] == [1, 2, 3]
    assert [one["attempt"] for one in stage.of("node:retrying")] == [1, 2]
    assert [one["attempt"] for one in stage.of("node:completed")] == [3]
    assert not stage.of("node:failed")


def test_a_node_does_not_repeat_what_a_loop_inside_it_has_exhausted_unless_it_says_so() -> None:
    rows = (Attempt(number=3, kind="internal.io_error", layer="job", exhausted=True),)
    failed = fails("internal.io_error", attempts=rows)
    backoff = Backoff(first=1.0)

    once = Stage(a_plan(a_script("a", retry=node_retry(3, backoff))), {"a": [failed]}).begin()
    twice = Stage(
        a_plan(a_script("a", retry=node_retry(3, backoff, repeat_exhausted=True))), {"a": [failed]}
    ).begin()
    routed = Stage(a_plan(a_script("a", on_error(retry=route_retry()))), {"a": [failed]}).begin()

    assert (once.ran, twice.ran, routed.ran) == (["a"], ["a", "a"], ["a", "a"])


@pytest.mark.acceptance("relavium 45")
def test_the_default_waits_of_a_node_double_from_one_second() -> None:
    retry = node_retry(max_attempts=4, backoff=Backoff(first=1.0, longest=86_400.0))

    stage = Stage(a_plan(a_script("a", retry=retry)), {"a": [fails("internal.io_error")] * 9}).begin()

    assert [one["delay"] for one in stage.of("node:retrying")] == [1.0, 2.0, 4.0]
    assert stage.of("node:failed")[0]["attempt"] == 4


@pytest.mark.acceptance("relavium 46")
def test_what_is_fatal_or_not_admitted_is_not_repeated() -> None:
    backoff = Backoff(first=1.0)
    narrow = node_retry(max_attempts=3, backoff=backoff, retry_on=("provider.overloaded",))

    fatal = Stage(
        a_plan(a_script("a", retry=node_retry(max_attempts=3, backoff=backoff))),
        {"a": [fails("internal.bug")]},
    )
    other = Stage(a_plan(a_script("a", retry=narrow)), {"a": [fails("internal.io_error")]})

    assert not fatal.begin().of("node:retrying")
    assert not other.begin().of("node:retrying")


@pytest.mark.acceptance("relavium 42")
def test_cancelling_beats_a_failure_that_races_with_it() -> None:
    plan = a_plan(a_script("a", on_error(to="b")), a_script("b"))
    failure = Failed(at=1_000_001.0, path="a", failure=Failure.of("external.x", "m", typed=True))
    begun = Begin(at=1_000_000.0, run="run1", file=plan.file, inputs={})

    before = Stage(plan, {"a": ["never"]})
    for event in (begun, cancel(1_000_001.0), failure):
        before.feed(event)
    # While the run fails: it waits for a sibling that has been told to stop.
    pair = a_plan(a_parallel("group", members=("a", "b")), a_script("a"), a_script("b"))
    during = Stage(pair)
    member = replace(failure, path="group/a")
    for event in (begun, member, cancel(1_000_001.0), Stopped(at=1_000_001.5, path="group/b")):
        during.feed(event)
    both = Stage(plan, {"a": [fails()]}).later(1.0, cancel).begin()

    for stage in (before, during, both):
        ends = [type_ for type_ in stage.types if type_ in ("run:completed", "run:failed", "run:cancelled")]
        assert ends == ["run:cancelled"]
        assert stage.types[-1] == "run:cancelled"
    assert before.of("node:failed")[0]["failure"]["envelope"]["kind"] == "external.x"
    assert "route:taken" not in before.types
    assert during.of("node:failed")[0]["failure"]["envelope"]["kind"] == "external.x"


@pytest.mark.acceptance("relavium 48")
def test_cancelling_a_wait_before_a_repeat_starts_nothing_more() -> None:
    again = route_retry(max_retries=3, backoff=Backoff(first=60.0, jitter=0.0))

    stage = Stage(a_plan(a_script("a", on_error(retry=again))), {"a": [fails()]}).later(10.0, cancel).begin()

    assert stage.ran == ["a"]
    assert stage.armed == []
    assert stage.types[-1] == "run:cancelled"
    assert stage.of("node:failed")[0]["failure"]["envelope"]["kind"] == "external.x"


@pytest.mark.acceptance("relavium 51")
def test_the_run_timeout_is_told_before_the_run_fails_of_it() -> None:
    plan = a_plan(a_script("a"), limits=Limits(timeout_seconds=10.0))

    stage = Stage(plan, {"a": ["never"]}).begin()

    assert stage.types[-4:] == ["run:timeout", "run:ending", "node:failed", "run:failed"]
    assert stage.of("run:failed")[0]["envelope"]["kind"] == "limit.run_timeout"


def test_a_wait_lasts_as_long_as_it_says() -> None:
    stage = Stage(a_plan(a_wait("pause", duration=90.0))).begin()

    assert stage.state.outputs == {"waited_seconds": 90.0}


def test_no_success_route_that_holds_is_a_failure_of_its_own() -> None:
    plan = a_plan(a_script("a", to("b", when="output.ok == 'z'")), a_script("b"))

    stage = Stage(plan).begin()

    assert stage.of("run:failed")[0]["envelope"]["kind"] == "internal.no_route"
    assert stage.of("run:failed")[0]["error_type"] == "ExecutionError"
