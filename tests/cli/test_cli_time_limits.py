"""`timeout_seconds` of groups and sub-workflows, through the command: processes end, routes take it, `validate` knows it."""

import json
import os
import select
from pathlib import Path

import pytest

from tests.cli.running import Done, failwell

TREE = "sh -c 'trap \\\"\\\" TERM; echo $$ >>pids; exec sleep 1000' & echo $$ >>pids; echo half; wait"
GROUP = f"""
workflow: {{name: flow, entry_point: both, input: {{items: {{type: array, default: [1, 2]}}}}}}
%s
agents:
  - {{name: slow, type: script, command: sh, args: ["-c", "{TREE}"]}}
  - {{name: quick, type: script, command: echo, args: [done]}}
  - {{name: late, type: set, value: "{{{{ both.error.kind }}}} after {{{{ both.error.details.timeout_seconds }}}} s"}}
  %s
"""
ROUTES = "routes: [{to: $end}, {on_error: limit.step_timeout, to: late}]"
PARALLEL = f"""
parallel:
  - {{name: both, agents: [slow, quick], timeout_seconds: 1.5, {ROUTES}}}
"""
FOR_EACH = f"""
for_each:
  - {{name: both, source: workflow.input.items, as: it, agent: slow, timeout_seconds: 1500ms, {ROUTES}}}
"""
CHILD = f"- {{name: both, type: workflow, workflow: child.yaml, timeout_seconds: 1.5, {ROUTES}}}"


def run(folder: Path, text: str) -> Done:
    (folder / "flow.yaml").write_text(text)
    (folder / "child.yaml").write_text(
        f"workflow: {{name: child, entry_point: leaf}}\nagents:\n"
        f'  - {{name: leaf, type: script, command: sh, args: ["-c", "{TREE}"]}}\n'
    )
    return failwell("run", "flow.yaml", "--store", str(folder / "store"), cwd=folder)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="looks for processes by their descriptors")
@pytest.mark.parametrize(
    ("groups", "step"),
    [(PARALLEL, ""), (FOR_EACH, ""), ("", CHILD)],
    ids=["parallel", "for_each", "workflow"],
)
def test_what_is_late_ends_with_its_processes_and_its_route_is_taken(
    groups: str, step: str, tmp_path: Path
) -> None:
    done = run(tmp_path, GROUP % (groups, step))

    assert (done.code, done.data) == (0, {"result": "limit.step_timeout after 1.5 s"})
    assert "both: failed with limit.step_timeout" in done.err
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert len(pids) >= 2
    assert not any(_is_alive(pid) for pid in pids)


def _is_alive(pid: int) -> bool:
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        return not select.select([handle], [], [], 0)[0]
    finally:
        os.close(handle)


@pytest.mark.slow
def test_each_item_of_a_loop_has_the_time_of_its_own_sub_workflow(tmp_path: Path) -> None:
    loop = """
for_each:
  - name: both
    source: workflow.input.items
    as: it
    key_by: id
    failure_mode: continue_on_error
    agent: {name: one, type: workflow, workflow: "{{ it.file }}", timeout_seconds: 0.5, input_mapping: {}}
    routes: [{to: sum}]
"""
    (tmp_path / "quick.yaml").write_text(
        "workflow: {name: quick, entry_point: leaf}\nagents: [{name: leaf, type: set, value: 1}]\n"
    )
    text = (
        GROUP % (loop, '- {name: sum, type: set, value: "{{ both.errors.slow.envelope.kind }}"}')
    ).replace("default: [1, 2]", "default: [{id: slow, file: child.yaml}, {id: quick, file: quick.yaml}]")

    done = run(tmp_path, text.replace("both.error.", "both.errors.slow."))

    assert done.data == {"result": "limit.step_timeout"}
    assert "both[1] (quick): done in" in done.err


@pytest.mark.slow
def test_without_a_route_the_run_fails_and_names_what_was_running(tmp_path: Path) -> None:
    done = run(tmp_path, GROUP % (PARALLEL.replace(ROUTES, "routes: [{to: $end}]"), ""))
    shown = failwell("runs", "show", "last", "--json", "--store", str(tmp_path / "store")).data

    assert done.code == 1
    assert "`both` reached its time limit of 1.5 s; still running: `both/slow`" in done.err
    assert shown["failure"]["envelope"]["kind"] == "limit.step_timeout"
    line = json.loads((tmp_path / "store/runs" / shown["id"] / "errors.jsonl").read_text())
    assert [frame["node"] for frame in line["frames"]] == ["both"]


def test_validate_knows_which_steps_can_raise_it(tmp_path: Path) -> None:
    (tmp_path / "with.yaml").write_text(GROUP % (PARALLEL, ""))
    (tmp_path / "without.yaml").write_text(GROUP % (PARALLEL.replace("timeout_seconds: 1.5, ", ""), ""))
    (tmp_path / "wrong.yaml").write_text(GROUP % (PARALLEL.replace("1.5", "soon"), ""))

    limited, unlimited, wrong = (
        failwell("validate", str(tmp_path / f"{name}.yaml")) for name in ("with", "without", "wrong")
    )

    assert "limit.step_timeout" not in limited.out
    assert "limit.step_timeout" in unlimited.out
    assert wrong.code == 2
    assert "timeout_seconds" in wrong.err


def test_the_schema_of_the_file_has_the_key() -> None:
    definitions = failwell("schema", "workflow").data["$defs"]

    for name in ("parallel", "for_each"):
        assert "timeout_seconds" in definitions[name]["properties"]
    assert "timeout_seconds" in json.dumps(definitions["step_workflow"])
