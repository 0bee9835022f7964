"""A plan as a graph: its edges, and the data of it."""

from failwell.errors.axes import Category
from failwell.workflows.graph.model import CALLER, HALT, Edge, graph
from failwell.workflows.machine.retry_policy import route_retry
from failwell.workflows.plan import END, Plan
from tests.workflows.plans import (
    a_for_each,
    a_gate,
    a_parallel,
    a_place,
    a_plan,
    a_script,
    a_set,
    a_terminate,
    on_error,
    some_questions,
    to,
)


def ways(plan: Plan) -> list[tuple[str, str, str, str]]:
    return [(edge.source, edge.target, edge.way, edge.label) for edge in graph(plan).edges]


def test_each_route_is_an_edge_that_says_what_it_is_for() -> None:
    plan = a_plan(
        a_script(
            "build",
            to("build", when="{{ output.again }}"),
            to(),
            on_error("x.y", "x.z", to="build"),
            on_error(prefixes=["provider."], retry=route_retry(max_retries=2)),
            on_error(categories=[Category.LIMIT], halt="no"),
            on_error(propagate=True),
        )
    )

    assert ways(plan) == [
        ("build", "build", "when", "when output.again"),
        ("build", END, "success", ""),
        ("build", "build", "error", "x.y | x.z"),
        ("build", "build", "retry", "provider.*, retry ×2 after 5 s"),
        ("build", HALT, "halt", "limit, halt"),
        ("build", CALLER, "propagate", "any error, propagate"),
    ]
    assert [edge.is_failing for edge in graph(plan).edges] == [False, False, True, True, True, True]


def test_a_node_without_a_way_out_of_success_ends_the_run() -> None:
    plan = a_plan(a_script("build", on_error(to="build")))

    assert Edge(source="build", target=END, way="success") in graph(plan).edges


def test_options_aborts_and_ends_are_edges_too() -> None:
    plan = a_plan(
        a_gate("approve", options={"yes": "ask", "no": "stop"}),
        some_questions("ask", to(), abort_route="stop"),
        a_terminate("stop"),
    )

    assert ways(plan) == [
        ("approve", "ask", "option", "yes"),
        ("approve", "stop", "option", "no"),
        ("ask", END, "success", ""),
        ("ask", "stop", "option", "abort"),
        ("stop", HALT, "success", "failed"),
    ]


def test_members_and_bodies_lie_in_their_groups() -> None:
    plan = a_plan(a_parallel("both", to("fan")), a_set("left"), a_set("right"), a_for_each("fan"))

    spots = [(spot.id, spot.group, spot.note) for spot in graph(plan).spots]

    assert spots == [
        ("both", None, ""),
        ("left", "both", ""),
        ("right", "both", ""),
        ("fan", None, "item in workflow.input.items"),
        ("fan/one", "fan", ""),
    ]


def test_a_listed_step_that_a_loop_runs_stands_in_the_loop_alone() -> None:
    listed = a_script("one", place=a_place(9))

    spots = [spot.id for spot in graph(a_plan(a_for_each("fan", body=listed), listed)).spots]

    assert spots == ["fan", "fan/one"]


def test_a_target_that_does_not_exist_is_left_out() -> None:
    assert ways(a_plan(a_script("build", to("nowhere")))) == []


def test_the_data_have_ids_that_are_unique() -> None:
    data = graph(a_plan(a_script("build", to(when="a"), to(when="b"), to()))).to_dict()

    ids = [one["id"] for one in data["nodes"] + data["edges"]]

    assert len(set(ids)) == len(ids) == 4
