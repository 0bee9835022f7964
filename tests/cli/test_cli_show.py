"""`failwell show` as a person or a program runs it."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from failwell.cli.exit_codes import Exit
from tests.cli.running import failwell

FLOW = """\
workflow: {name: release, entry_point: fetch}
agents:
  - name: fetch
    type: script
    command: git
    routes:
      - {on_error: external.drift, to: reset}
      - {on_error: true, retry: {max: 2}}
      - {to: $end}
  - {name: reset, type: script, command: git, routes: [{to: fetch}]}
"""


@pytest.fixture
def flow(tmp_path: Path) -> str:
    path = tmp_path / "flow.yaml"
    path.write_text(FLOW, encoding="utf-8")
    return str(path)


def test_a_person_sees_a_tree(flow: str) -> None:
    done = failwell("show", flow)

    assert done.code == Exit.DONE
    assert done.out == (
        "release\n"
        "├── fetch [script] (entry)\n"
        "│   ├─✗ external.drift: reset\n"
        "│   ├─↻ any error, retry ×2 after 5 s\n"
        "│   └─→ (end)\n"
        "└── reset [script]\n"
        "    └─→ fetch\n"
    )


def test_a_program_gets_nodes_and_edges_with_ids(flow: str) -> None:
    data = failwell("show", flow, "--json").data

    assert [(one["sort"], one["id"]) for one in data] == [
        ("node", "fetch"),
        ("node", "reset"),
        ("edge", "fetch#0"),
        ("edge", "fetch#1"),
        ("edge", "fetch#2"),
        ("edge", "reset#3"),
    ]
    assert data[2]["label"] == "external.drift"
    assert data[2]["on_error"]


def test_an_agent_gets_tables(flow: str) -> None:
    done = failwell("show", flow, "--agent")

    assert "| `fetch` | reset | error | external.drift |" in done.out


def test_mermaid_is_printed(flow: str) -> None:
    assert "flowchart TD" in failwell("show", flow, "--picture", "mermaid").out


def test_an_svg_is_written_where_the_name_says_so(flow: str, tmp_path: Path) -> None:
    done = failwell("show", flow, "-o", str(tmp_path / "flow.svg"))

    assert (done.code, done.out) == (Exit.DONE, "")
    assert ET.parse(tmp_path / "flow.svg").getroot().tag.endswith("svg")


def test_a_place_that_cannot_be_written_is_told(flow: str, tmp_path: Path) -> None:
    done = failwell("show", flow, "-o", str(tmp_path / "none" / "flow.svg"))

    assert (done.code, done.out) == (Exit.INVALID_USAGE, "")
    assert "cannot write" in done.err


def test_a_file_with_mistakes_of_shape_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(FLOW.replace("command: git\n", "comand: git\n"), encoding="utf-8")

    done = failwell("show", str(path))

    assert (done.code, done.out) == (Exit.INVALID_USAGE, "")
    assert "comand" in done.err


def test_a_file_with_other_mistakes_is_drawn_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "flow.yaml"
    path.write_text(FLOW.replace("to: reset", "to: nowhere"), encoding="utf-8")

    assert failwell("show", str(path)).code == Exit.DONE


PARENT = """\
workflow: {name: release, entry_point: build}
agents:
  - {name: build, type: workflow, workflow: build.yaml, routes: [{on_error: true, to: clean}, {to: both}]}
  - {name: clean, type: script, command: "true"}
parallel:
  - {name: both, agents: [left, right]}
"""
MEMBERS = """\
  - {name: left, type: workflow, workflow: build.yaml}
  - {name: right, type: script, command: "true"}
"""
CHILD = """\
workflow: {name: build, entry_point: compile}
agents:
  - {name: compile, type: script, command: make, routes: [{on_error: true, retry: {max: 2}}, {to: check}]}
  - {name: check, type: workflow, workflow: check.yaml}
"""
GRANDCHILD = """\
workflow: {name: check, entry_point: lint}
agents:
  - {name: lint, type: script, command: ruff, routes: [{to: test}]}
  - {name: test, type: script, command: pytest}
"""


def rectangles(root: ET.Element) -> dict[str, tuple[float, float, float, float]]:
    """The box of every step: id → left, top, right, bottom in the whole picture."""
    boxes: dict[str, tuple[float, float, float, float]] = {}

    def walk(element: ET.Element, x: float, y: float) -> None:
        for child in element:
            move = re.fullmatch(r"translate\((\S+) (\S+)\)", child.get("transform", ""))
            left, top = (x + float(move[1]), y + float(move[2])) if move else (x, y)
            title, box = child.find("{*}title"), child.find("{*}rect")
            if title is not None and box is not None and title.text and "(" in title.text:
                at_x, at_y, width, height = (
                    float(box.get(name, 0)) for name in ("x", "y", "width", "height")
                )
                name = title.text.partition(" ")[0]
                boxes[name] = (left + at_x, top + at_y, left + at_x + width, top + at_y + height)
            walk(child, left, top)

    walk(root, 0, 0)
    return boxes


def test_an_svg_unfolds_sub_workflows_as_the_text_does(tmp_path: Path) -> None:
    (tmp_path / "flow.yaml").write_text(PARENT.replace("parallel:", f"{MEMBERS}parallel:"))
    (tmp_path / "build.yaml").write_text(CHILD)
    (tmp_path / "check.yaml").write_text(GRANDCHILD)

    done = failwell("show", str(tmp_path / "flow.yaml"), "--picture", "svg")
    nodes = [
        one["id"]
        for one in failwell("show", str(tmp_path / "flow.yaml"), "--json").data
        if one["sort"] == "node"
    ]

    assert done.code == Exit.DONE, done.err
    boxes = rectangles(ET.fromstring(done.out))
    assert set(boxes) == set(nodes)
    assert {"build/check/test", "left/compile"} <= set(boxes)
    for inner, (left, top, right, bottom) in boxes.items():
        around = boxes.get(inner.rpartition("/")[0])
        if around is not None:
            assert (around[0], around[1]) < (left, top), inner
            assert (around[2], around[3]) > (right, bottom), inner
            assert around[1] < top < bottom < around[3], inner
    # A step is below the one that leads to it, and no two steps of one workflow overlap.
    assert boxes["build/compile"][3] < boxes["build/check"][1]
    assert boxes["build/check/lint"][3] < boxes["build/check/test"][1]
