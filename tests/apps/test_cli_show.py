"""`failwell show` as a person or a program runs it."""

import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from failwell.apps.cli.exit_codes import Exit
from tests.apps.running import failwell

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

    assert "| fetch | reset | error | external.drift |" in done.out


def test_mermaid_is_printed(flow: str) -> None:
    assert "flowchart TD" in failwell("show", flow, "--picture", "mermaid").out


def test_an_svg_is_written_where_the_name_says_so(flow: str, tmp_path: Path) -> None:
    done = failwell("show", flow, "-o", str(tmp_path / "flow.svg"))

    assert (done.code, done.out) == (Exit.DONE, "")
    assert ET.parse(tmp_path / "flow.svg").getroot().tag.endswith("svg")


@pytest.mark.skipif(shutil.which("rsvg-convert") is None, reason="nothing here draws a PNG")
def test_a_png_is_drawn(flow: str, tmp_path: Path) -> None:
    assert failwell("show", flow, "--picture", "png", "-o", str(tmp_path / "flow.png")).code == Exit.DONE

    assert (tmp_path / "flow.png").read_bytes().startswith(b"\x89PNG")


def test_a_png_needs_a_file(flow: str) -> None:
    done = failwell("show", flow, "--picture", "png")

    assert (done.code, done.out) == (Exit.INVALID_USAGE, "")
    assert "add `-o picture.png`" in done.err


def test_without_a_program_that_draws_a_png_the_choices_are_named(flow: str, tmp_path: Path) -> None:
    bare = {"PATH": str(tmp_path / "nothing")}

    done = failwell("show", flow, "-o", str(tmp_path / "flow.png"), env=bare)

    assert done.code == Exit.INVALID_USAGE
    assert "nothing here turns an SVG into a PNG" in done.err
    assert "rsvg-convert" in done.err
    assert "cairosvg" in done.err


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
