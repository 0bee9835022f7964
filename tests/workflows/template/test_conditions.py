"""Conditions: rendered ones are read as words, the others are expressions over flattened names."""

from typing import Any

import pytest

from tests.specimens import each
from tests.workflows.template.rendering import true

CONTEXT: dict[str, Any] = {
    "finder": {"output": {"count": 3, "files": ["a"]}},
    "workflow": {"input": {"mode": "fast"}, "name": "w"},
    "output": {"ok": True, "score": 0.75, "finder": "shadow"},
}
ERROR: dict[str, Any] = {
    "error": {"kind": "git.conflict", "message": "no", "details": {"branch": "main"}, "category": "blocked"}
}


@each(
    ("text", "expected"),
    [
        ("{{ true }}", True), ("{{ 1 }}", True), ("{{ 'YES' }}", True), ("{{ 'anything' }}", True),
        ("{{ false }}", False), ("{{ 0 }}", False), ("{{ 'No' }}", False), ("{{ '' }}", False), (" {{ 'FALSE ' }}", False),
        ("{{ finder.output.count > 2 }}", True),
        ("finder_output.count > 2", True), ("finder.output.count == 4", False), ("'a' in finder_output.files", True),
        ("workflow_input.mode == 'fast'", True), ("workflow.name == 'w'", True),
        ("ok", True), ("ok and score >= 0.75", True), ("not ok", False), ("output.score * 2 > 1", True),
        ("len(finder_output.files) == 1", True), ("int('3') == finder_output['count']", True),
        ("finder == 'shadow'", True), ("'finder.' != finder", True), ("str(score) == '0.75'", True),
        ("none", False), ("[]", False), ("{}", False), ("finder_output.files", True),
    ],
)  # fmt: skip
def test_a_condition_is_read_over_flat_and_dotted_names(text: str, expected: bool) -> None:
    assert true(text, **CONTEXT) is expected


@pytest.mark.acceptance("conductor 26")
@pytest.mark.parametrize(
    "text",
    [
        "{{ error.details.branch == 'main' }}", "error_kind == 'git.conflict'", "kind == 'git.conflict'",
        "details.branch == 'main'", "error_details.branch == 'main'", "error.category == 'blocked'",
    ],
)  # fmt: skip
def test_an_error_route_sees_the_error_under_each_of_its_names(text: str) -> None:
    assert true(text, **CONTEXT, **ERROR)
    assert not true(text.replace("==", "!="), **CONTEXT, **ERROR)
