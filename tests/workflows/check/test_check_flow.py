"""The control flow of a plan, and the dominators behind it."""

from time import process_time

from hypothesis import given
from hypothesis import strategies as st

from failwell.workflows.check.control_flow import Dominators, Flow
from failwell.workflows.check.rules import check
from failwell.workflows.machine.retry_policy import route_retry
from failwell.workflows.plan import Plan
from tests.workflows.plans import a_plan, a_script, an_input, on_error, some_inputs, to

GRAPHS = st.integers(1, 9).flatmap(
    lambda size: st.lists(st.lists(st.integers(0, size - 1), max_size=4), min_size=size, max_size=size)
)


def reached(successors: list[list[int]], without: int | None) -> set[int]:
    """What 0 leads to when one vertex is taken out."""
    seen: set[int] = set()
    waiting = [0] if without != 0 else []
    while waiting:
        vertex = waiting.pop()
        if vertex not in seen:
            seen.add(vertex)
            waiting += (one for one in successors[vertex] if one != without)
    return seen


@given(GRAPHS)
def test_a_vertex_dominates_another_if_that_cannot_be_reached_without_it(successors: list[list[int]]) -> None:
    tree = Dominators(successors, 0)
    all_of_them = reached(successors, None)

    for early in range(len(successors)):
        without = reached(successors, early)
        for late in range(len(successors)):
            expected = late in all_of_them and early in all_of_them and (late == early or late not in without)
            assert tree.dominates(early, late) == expected


def test_an_error_is_sure_where_only_the_failure_leads() -> None:
    flow = Flow(a_plan(a_script("a", on_error(to="b"), to("c")), a_script("b", to("c")), a_script("c")))

    assert flow.is_sure("a", "failure", "b")
    assert not flow.is_sure("a", "success", "b")
    assert not flow.is_sure("a", "failure", "c")
    assert flow.is_sure("a", "start", "c")


def test_a_later_failure_takes_the_certainty_of_a_success_away() -> None:
    flow = Flow(
        a_plan(
            a_script("a", on_error(to="handler"), to("b")),
            a_script("b", to("a", when="{{ output.again }}"), to()),
            a_script("handler"),
        )
    )

    assert not flow.is_sure("a", "success", "handler")
    assert not flow.is_sure("b", "success", "handler")
    assert flow.is_sure("a", "success", "b")


def a_long_plan(count: int) -> Plan:
    """A chain in which every node reads the one before and fails into one common place."""
    nodes = [
        a_script(
            f"n{number}",
            on_error("external.a.b", to="last"),
            on_error(retry=route_retry(max_retries=2)),
            on_error(to="last"),
            to(f"n{number + 1}" if number + 1 < count else "last"),
            args=[
                f"{{{{ n{max(0, number - 1)}.output.stdout | default('') }}}}",
                "{{ workflow.input.name }}",
            ],
        )
        for number in range(count)
    ]
    return a_plan(
        *nodes, a_script("last"), inputs=some_inputs(an_input("name"), an_input("key", secret=True))
    )


def test_checking_ten_times_as_many_nodes_takes_about_ten_times_as_long() -> None:
    small, large = a_long_plan(500), a_long_plan(5_000)
    check(small)

    started = process_time()
    assert check(small) == []
    middle = process_time()
    assert check(large) == []
    ended = process_time()

    # Squared growth would make it a hundred times.
    assert ended - middle < 40 * max(middle - started, 0.005)
