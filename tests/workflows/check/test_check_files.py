"""A workflow file and what lies below it."""

import os
from pathlib import Path

import pytest

from failwell.errors.faults import Validation
from failwell.workflows.check.workflow_tree import Checked, check_file

HEAD = "workflow: {name: flow, entry_point: a}\n"


def a_file(folder: Path, name: str, steps: str, head: str = HEAD) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{head}agents:\n{steps}", encoding="utf-8")
    return str(path)


def a_caller(folder: Path, name: str, child: str) -> str:
    return a_file(folder, name, f"  - {{name: a, type: workflow, workflow: '{child}'}}\n")


def a_leaf(folder: Path, name: str = "leaf.yaml") -> str:
    return a_file(folder, name, "  - {name: a, type: script, command: 'true'}\n")


def checked(path: str, *, allow_outside: bool = False, **environ: str) -> Checked:
    return check_file(path, environ=environ, allow_outside=allow_outside)


def messages(path: str, *, allow_outside: bool = False, **environ: str) -> list[str]:
    return [one.message for one in checked(path, allow_outside=allow_outside, **environ).mistakes]


def test_a_good_file_is_usable_and_its_children_come_with_it(tmp_path: Path) -> None:
    leaf = a_leaf(tmp_path, "below/leaf.yaml")

    done = checked(a_caller(tmp_path, "root.yaml", "below/leaf.yaml"))

    assert done.is_usable
    assert list(done.children) == [leaf]
    assert len(done.files) == 2


def test_mistakes_have_their_place_their_line_and_a_hint(tmp_path: Path) -> None:
    path = a_file(
        tmp_path,
        "root.yaml",
        "  - name: a\n    type: script\n    command: go\n    routes:\n      - to: nowhere\n",
    )

    [mistake] = checked(path).mistakes

    assert mistake.place is not None
    assert (mistake.place.file, mistake.place.line) == (path, 7)
    assert mistake.line == "      - to: nowhere"
    assert mistake.hint


def test_mistakes_of_shape_end_the_check_of_that_file_and_not_of_the_others(tmp_path: Path) -> None:
    a_file(tmp_path, "child.yaml", "  - {name: a, type: script, comand: 'true'}\n")
    path = a_file(
        tmp_path,
        "root.yaml",
        "  - {name: a, type: workflow, workflow: child.yaml, routes: [{to: b}]}\n"
        "  - {name: b, type: script, command: 'true', routes: [{to: nowhere}]}\n",
    )

    done = checked(path)

    files = {mistake.place.file for mistake in done.mistakes if mistake.place is not None}
    assert files == {path, str(tmp_path / "child.yaml")}
    assert not done.is_usable


def test_a_missing_child_is_named_with_the_near_one(tmp_path: Path) -> None:
    a_leaf(tmp_path, "leaf.yaml")

    [mistake] = checked(a_caller(tmp_path, "root.yaml", "laef.yaml")).mistakes

    assert (mistake.message, mistake.hint) == ("there is no file `laef.yaml`", "did you mean `leaf.yaml`?")


def test_a_child_that_is_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()

    assert messages(a_caller(tmp_path, "root.yaml", "below")) == ["`below` is not a file"]


def test_a_file_that_runs_itself_is_found_by_what_it_is_and_not_by_its_name(tmp_path: Path) -> None:
    path = a_caller(tmp_path, "root.yaml", "alias.yaml")
    os.link(path, tmp_path / "alias.yaml")

    assert messages(path) == [f"`{path}` would run itself without end: `{path}` → `{path}`"]


def test_a_longer_circle_is_told_in_full(tmp_path: Path) -> None:
    path = a_caller(tmp_path, "root.yaml", "one.yaml")
    one = a_caller(tmp_path, "one.yaml", "two.yaml")
    two = a_caller(tmp_path, "two.yaml", "one.yaml")

    assert messages(path) == [f"`{one}` would run itself without end: `{one}` → `{two}` → `{one}`"]


@pytest.mark.parametrize(
    "step",
    [
        "routes: [{to: $end}, {on_error: true, to: $end}]",
        "routes: [{to: $end}, {on_error: subworkflow.failed, to: stop}]",
    ],
)
def test_a_circle_that_an_error_route_leaves_is_allowed(tmp_path: Path, step: str) -> None:
    path = a_file(
        tmp_path,
        "root.yaml",
        f"  - {{name: a, type: workflow, workflow: root.yaml, {step}}}\n"
        "  - {name: stop, type: terminate, status: success, reason: deep enough}\n",
    )

    assert not any("run itself" in message for message in messages(path))


@pytest.mark.parametrize(
    ("first", "is_endless"),
    [
        ("type: set, value: 1, routes: [{to: again}]", True),
        ("type: set, value: 1, routes: [{to: again, when: '{{ output }}'}, {to: $end}]", False),
        ("type: set, value: 1, routes: [{to: $end, when: '{{ output }}', output: {x: 1}}, {to: again}]", False),
        ("type: set, value: 1, routes: [{to: stop, when: '{{ output }}'}, {to: again}]", False),
        ("type: human_gate, prompt: more?, options: [{label: y, value: y, route: again}, {label: n, value: n, route: $end}]", False),
    ],
)  # fmt: skip
def test_a_circle_is_refused_if_no_route_leaves_it(tmp_path: Path, first: str, is_endless: bool) -> None:
    path = a_file(
        tmp_path,
        "root.yaml",
        f"  - {{name: a, {first}}}\n"
        "  - {name: again, type: workflow, workflow: root.yaml}\n"
        "  - {name: stop, type: terminate, status: failed, reason: no}\n",
    )

    assert any("would run itself without end" in message for message in messages(path)) == is_endless


def test_ten_workflows_may_lie_inside_each_other_and_no_more(tmp_path: Path) -> None:
    a_leaf(tmp_path, "12.yaml")
    for number in range(12):
        a_caller(tmp_path, f"{number}.yaml", f"{number + 1}.yaml")

    assert messages(str(tmp_path / "2.yaml")) == []
    assert messages(str(tmp_path / "1.yaml")) == [
        f"`{tmp_path / '12.yaml'}` is nested 11 levels deep; the limit is 10"
    ]


def test_a_child_that_two_steps_run_is_checked_once(tmp_path: Path) -> None:
    a_file(tmp_path, "child.yaml", "  - {name: a, type: script, command: x, routes: [{to: nowhere}]}\n")
    path = a_file(
        tmp_path,
        "root.yaml",
        "  - {name: a, type: workflow, workflow: child.yaml, routes: [{to: b}]}\n"
        "  - {name: b, type: workflow, workflow: ./child.yaml}\n",
    )

    assert messages(path) == ["a route of `a` leads to `nowhere`, and no step has that name"]


def test_a_child_chosen_by_a_template_is_not_followed(tmp_path: Path) -> None:
    path = a_file(
        tmp_path, "root.yaml", "  - {name: a, type: workflow, workflow: '{{ workflow.name }}.yaml'}\n"
    )

    assert messages(path) == []


def test_only_the_root_may_not_propagate(tmp_path: Path) -> None:
    step = (
        "  - {name: a, type: script, command: x, routes: [{on_error: true, propagate: true}, {to: $end}]}\n"
    )
    child = a_file(tmp_path, "child.yaml", step)

    assert messages(a_caller(tmp_path, "root.yaml", "child.yaml")) == []
    assert messages(child) == ["`a` propagates a failure, but this workflow has no caller"]


def test_a_child_outside_of_the_project_needs_leave(tmp_path: Path) -> None:
    a_leaf(tmp_path / "elsewhere", "leaf.yaml")
    (tmp_path / "project" / ".git").mkdir(parents=True)
    path = a_caller(tmp_path / "project", "root.yaml", "../elsewhere/leaf.yaml")

    assert messages(path) == ["`../elsewhere/leaf.yaml` lies outside the project"]
    assert messages(path, allow_outside=True) == []


def test_a_value_of_the_environment_is_never_told(tmp_path: Path) -> None:
    path = a_file(
        tmp_path, "root.yaml", "  - {name: a, type: script, command: x, routes: [{to: '${TARGET}'}]}\n"
    )

    [mistake] = checked(path, TARGET="hunter2-and-more").mistakes

    assert "hunter2" not in repr(mistake)
    assert mistake.message == "a route of `a` leads to `${TARGET}`, and no step has that name"


def test_a_root_that_is_not_there_is_a_typed_error(tmp_path: Path) -> None:
    with pytest.raises(Validation, match="there is no such file"):
        checked(str(tmp_path / "none.yaml"))


def test_what_is_printed_of_a_check_holds_no_value_of_the_environment(tmp_path: Path) -> None:
    done = checked(a_leaf(tmp_path), API_KEY="correct-horse-battery")

    assert "correct-horse-battery" not in repr(done)
