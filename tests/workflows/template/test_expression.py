"""Conditions of routes and members."""

from typing import Any

import pytest

from failwell.errors.fault import Fault
from failwell.workflows.plan import Template
from failwell.workflows.template.names import MISSING, FlatNames
from failwell.workflows.template.render import holds, read_truth
from tests.workflows.template.rendering import NamesFrom

ERROR = {"kind": "x.y", "message": "m", "details": {"branch": "main"}}


def some_names(**more: Any) -> NamesFrom:
    context = {"finder": {"output": {"count": 3, "files": ["a"]}}, "workflow": {"input": {"mode": "fast"}}}
    return NamesFrom({**context, "output": {"ok": True, "count": 5, "finder": "key"}, **more})


def is_held(text: str, **more: Any) -> bool:
    return holds(Template(text=text), some_names(**more))


@pytest.mark.acceptance("conductor 26")
@pytest.mark.parametrize(
    "text",
    [
        "{{ error.details.branch == 'main' }}",
        "error_kind == 'x.y'",
        "kind == 'x.y'",
        "error.kind == 'x.y'",
        "error_message == 'm' and message == 'm'",
        "error_details.branch == 'main' and details.branch == 'main'",
    ],
)
def test_an_error_is_seen_dotted_flattened_and_bare(text: str) -> None:
    assert is_held(text, error=ERROR)
    assert not is_held(text, error={"kind": "a.b", "message": "n", "details": {"branch": "dev"}})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("count > 4", True),
        ("output.count == 5 and ok", True),
        ("finder_output.count == 3", True),
        ("finder.output.count == 3", True),
        ("finder == 'key'", True),
        ("workflow_input.mode == 'fast'", True),
        ("workflow.input.mode in ['slow', 'fast']", True),
        ("not ok or 1 < count < 3", False),
        ("ok is True and finder_output is not None", True),
        ("len(finder_output.files) + int('2') == 3", True),
        ("str(count) == '5' and float('1.5') < 2", True),
        ("'yes' if count == 5 else ''", True),
        ("(count - 1) * 2 % 3 == 2", True),
        ("None", False),
        ("[]", False),
        ("''", False),
    ],
)
def test_an_expression_is_python_like(text: str, expected: bool) -> None:
    assert is_held(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("true", True), ("True", True), ("1", True), ("yes", True), ("anything", True), ("false", False), ("FALSE", False),
     ("0", False), ("no", False), ("", False), ("  \n", False)],
)  # fmt: skip
def test_rendered_text_is_read_as_truth(text: str, expected: bool) -> None:
    assert read_truth(text) is expected
    assert is_held("{{ '" + text.strip() + "' }}") is expected


@pytest.mark.parametrize(
    "text", ["absent", "absent == 1", "finder.absent.x", "output.nothing", "{{ absent }}", ""]
)
def test_what_is_not_there_is_a_fault_and_not_false(text: str) -> None:
    with pytest.raises(Fault):
        is_held(text)


def test_flat_names_are_made_without_looking_at_every_node() -> None:
    asked: list[str] = []

    class Watched:
        def get(self, name: str, /) -> object:
            asked.append(name)
            return {"output": 1} if name == "my_node" else MISSING

    found = FlatNames(Watched()).get("my_node_output")

    assert found == 1
    assert len(asked) < 8
