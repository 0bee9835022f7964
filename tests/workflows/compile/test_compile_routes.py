"""Routes: exactly one action each, and what the actions say."""

import pytest

from failwell.calls.backoff import Backoff
from failwell.files.item_tree import Place
from failwell.workflows.machine.retry_policy import node_retry, route_retry
from failwell.workflows.plan import Route, Template
from tests.specimens import each
from tests.workflows.compile.writing import (
    mistakes_in,
    node_of,
    plan_of,
    the_mistake,
    wait_of,
    with_route,
    with_step,
)


def route(written: str) -> Route:
    return plan_of(with_route(written)).nodes["work"].routes[0]


def test_a_route_of_success_keeps_its_condition_and_its_place() -> None:
    found = route('{to: next, when: "{{ output.ok }}", output: {x: "{{ 1 }}", n: 3}}')

    assert found.to == "next"
    assert found.on_error is None
    assert found.when == Template(text="{{ output.ok }}", place=Place(file="flow.yaml", line=7, column=26))
    assert found.output["n"] == 3
    assert found.output["x"].text == "{{ 1 }}"
    assert found.place == Place(file="flow.yaml", line=7, column=9)


def test_a_retry_has_its_defaults() -> None:
    assert route("{on_error: true, retry: {}}").retry == route_retry(
        max_retries=3, backoff=Backoff(curve="exponential", first=5.0, longest=86_400.0, jitter=0.25)
    )


def test_a_retry_says_how_often_and_how_long() -> None:
    found = route("{on_error: true, retry: {max: 10, backoff: linear, initial_seconds: 0.5, jitter: 0}}")

    assert found.retry == route_retry(
        max_retries=10, backoff=Backoff(curve="linear", first=0.5, longest=86_400.0, jitter=0.0)
    )


def test_halt_and_propagate() -> None:
    halted = route('{halt: {message: "m {{ error.kind }}"}}')

    assert halted.halt is not None
    assert halted.halt.text == "m {{ error.kind }}"
    assert route("{on_error: true, propagate: true}").propagate


@pytest.mark.acceptance("conductor 56")
@pytest.mark.parametrize(
    ("written", "said", "key"),
    [
        ("{on_error: true, to: a, retry: {}}", "cannot have `to` and `retry` together", ".retry"),
        ("{to: a, halt: {message: m}}", "cannot have `to` and `halt` together", ".halt"),
        (
            "{on_error: true, to: a, propagate: true}",
            "cannot have `to` and `propagate` together",
            ".propagate",
        ),
        ("{on_error: true, retry: {}, halt: {message: m}}", "`retry` and `halt` together", ".halt"),
        ("{on_error: true}", "exactly one of `to`, `retry`, `halt`, `propagate`", ""),
        ("{when: x}", "exactly one of `to`, `retry`, `halt`, `propagate`", ""),
        ("{retry: {max: 2}}", "`retry` needs a failure", ".retry"),
        ("{propagate: true}", "`propagate` needs a failure", ".propagate"),
    ],
)
def test_a_route_has_exactly_one_action_that_fits_it(written: str, said: str, key: str) -> None:
    mistake = the_mistake(with_route(written))

    assert said in mistake.message
    assert mistake.path == f"agents[0].routes[0]{key}"
    assert mistake.place is not None
    assert mistake.place.line == 7


@each(
    ("written", "path"),
    [
        ("{on_error: true, retry: {max: 0}}", "retry.max"),
        ("{on_error: true, retry: {max: 11}}", "retry.max"),
        ("{on_error: true, retry: {max: true}}", "retry.max"),
        ("{on_error: true, retry: {max: 1.5}}", "retry.max"),
        ('{on_error: true, retry: {max: "3"}}', "retry.max"),
        ("{on_error: true, retry: {backoff: none}}", "retry.backoff"),
        ("{on_error: true, retry: {initial_seconds: 301}}", "retry.initial_seconds"),
        ("{on_error: true, retry: {initial_seconds: -1}}", "retry.initial_seconds"),
        ("{on_error: true, retry: {jitter: 1.1}}", "retry.jitter"),
        ("{on_error: true, retry: {jitter: false}}", "retry.jitter"),
        ("{on_error: true, retry: {max_attempts: 3}}", "retry.max_attempts"),
        ("{on_error: true, retry: 3}", "retry"),
        ("{halt: stop}", "halt"),
        ("{halt: {}}", "halt"),
        ('{halt: {message: ""}}', "halt.message"),
        ("{on_error: true, propagate: false}", "propagate"),
        ('{on_error: true, propagate: "yes"}', "propagate"),
        ("{to: a, when: true}", "when"),
        ('{to: ""}', "to"),
        ("{to: [a]}", "to"),
        ("{to: a, output: [x]}", "output"),
    ],
)
def test_a_wrong_value_in_a_route_is_named(written: str, path: str) -> None:
    assert the_mistake(with_route(written)).path == f"agents[0].routes[0].{path}"


def test_a_node_retries_by_itself_with_its_own_names() -> None:
    node = node_of(
        "{name: work, type: script, command: x, retry: {max_attempts: 4, delay_seconds: 2, backoff: fixed}}"
    )

    backoff = Backoff(curve="fixed", first=2.0, longest=86_400.0)
    assert node.retry == node_retry(max_attempts=4, backoff=backoff)


@pytest.mark.acceptance("relavium 45")
def test_the_waits_of_a_node_are_one_two_and_four_seconds_unless_told() -> None:
    node = node_of("{name: work, retry: {max_attempts: 4}}")

    assert [wait_of(node, "provider.overloaded", calls) for calls in (1, 2, 3, 4)] == [1.0, 2.0, 4.0, None]


@pytest.mark.parametrize(
    ("key", "hint"),
    [("max", "max_attempts"), ("backoff_ms", "delay_seconds"), ("atempts", "max_attempts")],
)
def test_there_is_one_way_to_write_a_retry(key: str, hint: str) -> None:
    mistake = the_mistake(with_step(f"{{name: work, retry: {{{key}: 3}}}}"))

    assert mistake.path == f"agents[0].retry.{key}"
    assert hint in mistake.hint


def test_a_gate_leaves_by_its_options_and_can_only_route_failures() -> None:
    options = "prompt: p, options: [{label: l, value: v, route: $end}]"

    node = node_of(
        f"{{name: work, type: human_gate, {options}, routes: [{{on_error: true, propagate: true}}]}}"
    )
    retried = the_mistake(
        with_step(f"{{name: work, type: human_gate, {options}, routes: [{{on_error: true, retry: {{}}}}]}}")
    )

    assert len(node.routes) == 1
    assert "cannot be retried" in retried.message


def test_all_mistakes_of_all_routes_are_found_in_one_pass() -> None:
    text = with_step(
        """
        name: work
        type: script
        command: x
        routes:
          - {on_error: false, to: a}
          - {too: a}
          - {on_error: a.b, to: a, retry: {}}
          - {to: fine}
          - 3
        """
    )

    found = mistakes_in(text)

    assert [(mistake.path, mistake.place.line if mistake.place else 0) for mistake in found] == [
        ("agents[0].routes[0].on_error", 7),
        ("agents[0].routes[1]", 8),
        ("agents[0].routes[1].too", 8),
        ("agents[0].routes[2].retry", 9),
        ("agents[0].routes[4]", 11),
    ]
