"""A file whose shape is broken is told of its loose ends in the same pass."""

from pathlib import Path

from failwell.workflow.check.workflow_tree import check_file
from failwell.workflow.compile.compiler import compile_text

BROKEN = """\
workflow:
  name: x
  entry_point: strat
agents:
  - name: start
    type: script
    comand: echo
    routes:
      - {to: nowhere}
      - {to: gate}
      - {to: $end}
  - name: gate
    type: human_gate
    prompt: go?
    options: [{label: a, value: a, route: missing}]
"""


def test_targets_that_do_not_exist_are_named_beside_mistakes_of_shape() -> None:
    compiled = compile_text(BROKEN)

    told = {mistake.path: mistake for mistake in compiled.loose_ends}
    assert compiled.plan is None
    assert [mistake.path for mistake in compiled.mistakes][-1] == "agents[0].comand"
    assert told["workflow.entry_point"].hint == "did you mean `start`?"
    assert told["agents[0].routes[0].to"].message.endswith("leads to `nowhere`, and no step has that name")
    assert told["agents[1].options[0].route"].place is not None
    assert "agents[0].routes[1].to" not in told


def test_a_file_of_good_shape_is_left_to_the_checks_of_the_whole() -> None:
    compiled = compile_text(BROKEN.replace("comand", "command"))

    assert compiled.plan is not None
    assert compiled.loose_ends == ()


def test_everything_is_said_of_a_broken_file_at_once(tmp_path: Path) -> None:
    file = tmp_path / "flow.yaml"
    file.write_text(BROKEN)

    paths = {mistake.path for mistake in check_file(str(file), environ={}).mistakes}

    assert {"agents[0].comand", "workflow.entry_point", "agents[0].routes[0].to"} <= paths
