"""The pictures of a graph: text, Mermaid, SVG."""

from time import process_time
from xml.etree import ElementTree as ET

import pytest

from failwell.workflows.graph.boxes import Box
from failwell.workflows.graph.layout import layout
from failwell.workflows.graph.mermaid import as_mermaid
from failwell.workflows.graph.model import Graph, graph
from failwell.workflows.graph.svg import as_svg
from failwell.workflows.graph.text import as_text
from failwell.workflows.machine.retry_policy import route_retry
from tests.workflows.plans import (
    a_for_each,
    a_gate,
    a_parallel,
    a_plan,
    a_script,
    a_set,
    a_terminate,
    a_workflow,
    on_error,
    to,
)

SVG = "{http://www.w3.org/2000/svg}"


def a_graph() -> Graph:
    return graph(
        a_plan(
            a_script(
                "fetch", on_error("external.drift", to="reset"), on_error(retry=route_retry()), to("both")
            ),
            a_script("reset", to("fetch")),
            a_parallel("both", to("approve"), on_error(to="stop"), on_error(retry=route_retry())),
            a_set("left"),
            a_set("right"),
            a_gate("approve", options={"ship": "fan", "change": "fetch"}),
            a_for_each("fan", on_error(halt="no"), to(), body=a_workflow("deploy")),
            a_terminate("stop"),
            name="release",
        )
    )


def test_the_tree_shows_every_node_once_with_its_ways_out() -> None:
    assert as_text(a_graph()) == (
        "release\n"
        "├── fetch [script] (entry)\n"
        "│   ├─✗ external.drift: reset\n"
        "│   ├─↻ any error, retry ×3 after 5 s\n"
        "│   └─→ both\n"
        "├── reset [script]\n"
        "│   └─→ fetch\n"
        "├── both [parallel]\n"
        "│   ├── left [set]\n"
        "│   ├── right [set]\n"
        "│   ├─→ approve\n"
        "│   ├─✗ any error: stop\n"
        "│   └─↻ any error, retry ×3 after 5 s\n"
        "├── approve [human_gate]\n"
        "│   ├─→ ship: fan\n"
        "│   └─→ change: fetch\n"
        "├── fan [for_each, item in workflow.input.items]\n"
        "│   ├── deploy [workflow, child.yaml]\n"
        "│   ├─■ any error, halt\n"
        "│   └─→ (end)\n"
        "└── stop [terminate, failed]\n"
        "    └─→ failed: (halt)\n"
    )


def test_mermaid_draws_groups_as_subgraphs_and_errors_as_dotted_lines() -> None:
    text = as_mermaid(a_graph())

    assert text.startswith('---\ntitle: "release"\n---\nflowchart TD\n')
    assert 'subgraph n2 ["both: parallel"]' in text
    assert '    n0 -.->|"external.drift"| n1\n' in text
    assert "    n1 --> n0\n" in text
    # A subgraph cannot have a loop, so its repeat leads to a mark of its own.
    assert 'n2 -.->|"any error, retry ×3 after 5 s"| again' in text


def test_nothing_in_a_name_can_break_out_of_a_mermaid_label() -> None:
    text = as_mermaid(graph(a_plan(a_script("a", to(when='x == "]" | <b> #1')))))

    assert 'n0 -->|"when x == #quot;]#quot; | #lt;b#gt; #35;1"| end_' in text


def test_the_svg_is_well_formed_and_shows_every_node_and_label() -> None:
    root = ET.fromstring(as_svg(a_graph()))

    words = {text.text for text in root.iter(f"{SVG}text")}

    assert {"fetch", "reset", "both", "left", "right", "approve", "fan", "deploy", "stop", "release"} <= words
    assert {"external.drift", "any error", "ship", "change", "error", "retry", "end"} <= words


def test_text_of_a_file_cannot_become_markup_in_the_svg() -> None:
    evil = "<script>alert(1)</script>&\x00\x1b]"

    root = ET.fromstring(as_svg(graph(a_plan(a_script("a", to(when=evil), to()), name=evil))))

    assert not list(root.iter(f"{SVG}script"))


def boxes_of(plan_graph: Graph) -> list[Box]:
    return layout(plan_graph).boxes


def overlaps(one: Box, other: Box) -> bool:
    return (
        one.x < other.x + other.width
        and other.x < one.x + one.width
        and one.y < other.y + other.height
        and other.y < one.y + one.height
    )


def test_no_box_lies_on_another_and_all_lie_in_the_picture() -> None:
    made = layout(a_graph())

    for number, one in enumerate(made.boxes):
        assert one.x >= 0
        assert one.x + one.width <= made.width + 0.01
        assert one.y >= 0
        assert one.y + one.height <= made.height + 0.01
        assert not any(overlaps(one, other) for other in made.boxes[number + 1 :])


def test_labels_lie_beside_the_boxes() -> None:
    made = layout(a_graph())

    for line in made.lines:
        if line.label:
            x, y = line.label_at
            assert not any(
                box.x < x < box.x + box.width and box.y < y < box.y + box.height for box in made.boxes
            )


@pytest.mark.parametrize("members", [2, 40])
def test_a_group_holds_its_members(members: int) -> None:
    names = [f"m{number}" for number in range(members)]
    [group, *_] = boxes_of(graph(a_plan(a_parallel("g", members=names), *(a_set(name) for name in names))))

    assert all(
        one.x + one.width <= group.width and one.y + one.height <= group.height for one in group.inside
    )
    assert len(group.inside) == min(members, 13)


def a_chain(count: int) -> Graph:
    """Every node fails into the last one: as many long edges as there are nodes."""
    nodes = [
        a_script(f"n{number}", on_error(to=f"n{count - 1}"), to(f"n{number + 1}"))
        for number in range(count - 1)
    ]
    return graph(a_plan(*nodes, a_script(f"n{count - 1}")))


def test_a_picture_ten_times_as_large_takes_about_ten_times_as_long() -> None:
    small, large = a_chain(200), a_chain(2_000)
    as_svg(small)

    started = process_time()
    as_svg(small)
    middle = process_time()
    as_svg(large)
    ended = process_time()

    assert ended - middle < 40 * max(middle - started, 0.01)


def test_a_circle_of_groups_is_drawn_and_does_not_hang() -> None:
    plan = a_plan(
        a_script("a"),
        a_parallel("one", members=("two", "a")),
        a_parallel("two", members=("one", "a")),
        entry="a",
    )

    assert "a" in as_text(graph(plan))
    assert as_mermaid(graph(plan))
    assert as_svg(graph(plan))
