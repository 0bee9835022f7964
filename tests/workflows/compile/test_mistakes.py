"""Mistakes as people, programs and models read them."""

from textwrap import dedent

from failwell.files.item_tree import Place
from failwell.files.mistakes import Mistake, in_order, render, to_json, to_markdown
from tests.workflows.compile.writing import mistakes_in, with_route

TEXT = with_route("{on_error: false, to: $end}")


def test_a_mistake_is_shown_with_its_line_and_a_caret() -> None:
    shown = render(mistakes_in(TEXT))

    assert shown == dedent("""\
        error: `on_error: false` has no meaning
         --> flow.yaml:7:20
          |
        7 |       - {on_error: false, to: $end}
          |                    ^
          = at: agents[0].routes[0].on_error
        hint: omit the field for a success route; write `true` to catch every kind""")


def test_both_places_of_a_double_key_are_shown() -> None:
    shown = render(mistakes_in("workflow: {name: a, name: b, entry_point: c}\nagents: [{name: c}]\n"))

    assert "--> flow.yaml:1:21" in shown
    assert "= also: flow.yaml:1:12" in shown


def test_the_caret_stays_in_sight_on_a_very_long_line() -> None:
    line = "x" * 5_000 + "HERE" + "y" * 5_000
    shown = render([Mistake(message="m", place=Place(file="f", line=3, column=5_001), line=line)])

    code, caret = shown.split("\n")[3:5]
    assert len(code) < 200
    assert code[caret.index("^") :].startswith("HERE")


def test_control_characters_do_not_reach_the_terminal() -> None:
    shown = render([Mistake(message="m", place=Place(file="f", line=1, column=1), line="a\x1b[31mb\x07")])

    assert "\x1b" not in shown
    assert "\x07" not in shown


def test_as_json_each_mistake_has_an_id_that_survives_a_move() -> None:
    first = to_json(mistakes_in(TEXT))[0]
    moved = to_json(mistakes_in("# a comment\n" + TEXT))[0]

    assert first["id"] == moved["id"]
    assert (first["line"], moved["line"]) == (7, 8)
    assert {key: first[key] for key in ("kind", "severity", "path", "file", "column", "source")} == {
        "kind": "validation.shape_invalid",
        "severity": "error",
        "path": "agents[0].routes[0].on_error",
        "file": "flow.yaml",
        "column": 20,
        "source": "      - {on_error: false, to: $end}",
    }


def test_as_markdown_no_backtick_of_the_file_ends_a_code_span() -> None:
    place = Place(file="f", line=1, column=1)

    shown = to_markdown([Mistake(message="m", place=place, line="a: ``x``", hint="h", path="a")])

    assert "- **error** (`f:1:1`): m" in shown
    assert "``` a: ``x`` ```" in shown
    assert "hint: h" in shown


def test_mistakes_come_in_the_order_of_the_file() -> None:
    def at(line: int, column: int) -> Mistake:
        return Mistake(message=f"{line}:{column}", place=Place(file="f", line=line, column=column))

    ordered = in_order([Mistake(message="nowhere"), at(9, 1), at(10, 1), at(2, 7), at(2, 3)])

    assert [mistake.message for mistake in ordered] == ["2:3", "2:7", "9:1", "10:1", "nowhere"]
