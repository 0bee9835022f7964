"""Files that a run was validated with are not validated again, unless something may have changed."""

from pathlib import Path

from failwell.workflows.check.workflow_tree import Checked, check_file

LOST = """\
workflow: {name: demo, entry_point: work}
agents:
  - {name: work, type: script, command: "true", routes: [{to: nowhere}]}
"""
"""A file that no rule should pass: its route leads nowhere."""


def checked(
    file: Path, text: str, validated: str | None, available: tuple[str, ...] = ("script",)
) -> Checked:
    file.write_text(text)
    known = None if validated is None else {str(file): validated}
    return check_file(str(file), environ={"HOME": "/"}, available=available, validated=known)


def test_rules_are_applied_to_a_file_that_was_not_validated(tmp_path: Path) -> None:
    assert not checked(tmp_path / "flow.yaml", LOST, None).is_usable


def test_rules_are_not_applied_to_the_very_text_that_was_validated(tmp_path: Path) -> None:
    assert checked(tmp_path / "flow.yaml", LOST, LOST).is_usable


def test_rules_are_applied_when_one_byte_has_changed(tmp_path: Path) -> None:
    assert not checked(tmp_path / "flow.yaml", LOST + "\n", LOST).is_usable


def test_rules_are_applied_when_a_variable_can_change_the_file(tmp_path: Path) -> None:
    text = LOST.replace('"true"', "${HOME}")

    assert not checked(tmp_path / "flow.yaml", text, text).is_usable


def test_executors_are_always_checked(tmp_path: Path) -> None:
    text = LOST.replace('type: script, command: "true"', "prompt: hello")

    assert checked(tmp_path / "flow.yaml", text, text, available=("agent",)).is_usable
    assert not checked(tmp_path / "flow.yaml", text, text, available=()).is_usable
