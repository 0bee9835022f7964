"""The lines that name the next command are complete: pasted into a shell, they do what they say."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import Done, environment, failwell

LOOP = """
workflow: {name: loop, entry_point: count, limits: {max_iterations: 3}}
agents:
  - name: count
    type: script
    command: sh
    args: ["-c", "echo x >> count; echo \\"{\\\\\\"n\\\\\\": $(wc -l < count)}\\""]
    routes: [{to: $end, when: "count.output.n >= 5"}, {to: count}]
output: {n: "{{ count.output.n }}"}
"""
SECRET = """
workflow: {name: secret, entry_point: use, input: {token: {type: string, secret: true}}}
agents:
  - name: use
    type: script
    command: sh
    env_from: {TOKEN: workflow.input.token}
    args: ["-c", "test -e fixed && test $TOKEN = s3cr3t-value-1"]
    raises: [external.x]
"""


def pasted(line: str, folder: Path) -> Done:
    """What a shell does with the line after its label."""
    words = shlex.split(line.partition(":")[2])
    assert words[0] == "failwell"
    return failwell(*words[1:], cwd=folder)


def line_of(done: Done, label: str) -> str:
    return next(line for line in done.err.splitlines() if line.startswith(label))


@pytest.mark.parametrize("name", ["last", "-x", "--help"])
def test_a_run_id_that_commands_read_as_something_else_is_refused(tmp_path: Path, name: str) -> None:
    file = tmp_path / "flow.yaml"
    file.write_text("workflow: {name: x, entry_point: a}\nagents: [{name: a, type: set, value: '1'}]\n")
    store = ("--store", str(tmp_path / "store"))

    done = failwell("run", str(file), f"--run-id={name}", *store)
    by_variable = failwell("run", str(file), *store, env={"FAILWELL_RUN_ID": name})

    assert (done.code, by_variable.code) == (2, 2)
    assert f"`{name}` is not a run id: commands read it as" in done.err
    assert failwell("runs", "list", *store, "--format", "json").data == []


def test_the_resume_line_of_a_run_at_its_iteration_limit_raises_it(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    (folder / "loop.yaml").write_text(LOOP)

    done = failwell("run", "loop.yaml", "-q", "--store", "my store", cwd=folder)
    line = line_of(done, "resume:")
    again = pasted(line, folder)

    assert done.code == 1
    assert "--raise-limit max_iterations=6 --store 'my store'" in line
    assert (again.code, again.data) == (0, {"n": 5}), again.err


def test_the_resume_line_of_a_run_at_its_time_limit_raises_it(tmp_path: Path) -> None:
    (tmp_path / "slow.yaml").write_text(
        "workflow: {name: slow, entry_point: a, limits: {timeout_seconds: 0.3}}\n"
        "agents: [{name: a, type: script, command: sh, args: ['-c', 'test -e fixed || sleep 9']}]\noutput: {x: '1'}\n"
    )

    done = failwell("run", "slow.yaml", "-q", "--store", "store", cwd=tmp_path)
    (tmp_path / "fixed").touch()
    again = pasted(line_of(done, "resume:"), tmp_path)

    assert "--raise-limit timeout_seconds=0.6" in line_of(done, "resume:")
    assert (again.code, again.data) == (0, {"x": 1}), again.err


def test_the_resume_line_passes_secrets_from_the_same_file_and_names_the_others(tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").write_text(SECRET)
    (tmp_path / "token").write_text("s3cr3t-value-1\n")

    done = failwell("run", "secret.yaml", "-q", "-i", "token=@token", "--store", "store", cwd=tmp_path)
    typed = failwell(
        "run", "secret.yaml", "-q", "-i", "token=s3cr3t-value-1", "--store", "store", cwd=tmp_path
    )
    (tmp_path / "fixed").touch()
    again = pasted(line_of(done, "resume:"), tmp_path)

    assert done.code == 3
    assert "-i token=@token" in line_of(done, "resume:")
    assert again.code == 0, again.err
    assert "-i token=VALUE" in line_of(typed, "resume:")
    assert "s3cr3t" not in typed.err


def test_the_command_that_accepts_changed_files_names_the_secrets_too(tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").write_text(SECRET)
    store = ("--store", str(tmp_path / "store"))
    failwell("run", "secret.yaml", "-q", "-i", "token=s3cr3t-value-1", "--run-id", "r1", *store, cwd=tmp_path)
    (tmp_path / "secret.yaml").write_text(SECRET + "# changed\n")
    (tmp_path / "fixed").touch()

    refused = failwell(
        "resume", "r1", "-q", "-i", "token=s3cr3t-value-1", "--format", "json", *store, cwd=tmp_path
    )
    command = refused.error["hint"].split("`")[1]
    again = failwell(*shlex.split(command.replace("VALUE", "s3cr3t-value-1"))[1:], "-q", cwd=tmp_path)

    assert refused.error["kind"] == "session.resume_mismatch"
    assert command == f"failwell resume r1 --accept-changes -i token=VALUE --store {tmp_path / 'store'}"
    assert again.code == 0, again.err


def test_the_resume_lines_of_a_run_with_accepted_changes_work(tmp_path: Path) -> None:
    text = """
workflow: {name: ask, entry_point: gate}
agents:
  - {name: gate, type: human_gate, prompt: "Go on?", options: [{label: "Yes", value: "yes", route: last}]}
  - {name: last, type: set, value: "OLD"}
output: {x: "{{ last.output }}"}
"""
    file, store = tmp_path / "ask.yaml", ("--store", "store")
    file.write_text(text)
    failwell("run", "ask.yaml", "-q", "--run-id", "r1", *store, cwd=tmp_path)
    file.write_text(text.replace("OLD", "new"))

    refused = failwell("resume", "r1", "-q", *store, cwd=tmp_path)
    waits = failwell("resume", "r1", "-q", "--accept-changes", *store, cwd=tmp_path)
    answered = failwell("gates", "answer", "r1", "gate", "yes", *store, cwd=tmp_path)
    file.write_text(text.replace("OLD", "newer"))
    changed_again = failwell("resume", "r1", "-q", *store, cwd=tmp_path)
    file.write_text(text.replace("OLD", "new"))
    shown = failwell("runs", "show", "r1", *store, "--json", cwd=tmp_path).data["next"][0]["command"]
    line = next(line for line in answered.out.splitlines() if "failwell resume" in line)
    again = pasted(line, tmp_path)

    assert (refused.code, waits.code, answered.code) == (2, 4, 0), answered.err
    assert "ask.yaml: +1 −1 lines" in changed_again.err
    assert shown == line.partition(": ")[2]
    assert (again.code, again.data) == (0, {"x": "new"}), again.err


def test_the_resume_line_allows_files_outside_again(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    (tmp_path / "outside.txt").write_text("test -e fixed")
    (project / "flow.yaml").write_text(
        "workflow: {name: flow, entry_point: a}\n"
        "agents: [{name: a, type: script, command: sh, args: ['-c', !file ../outside.txt], raises: [external.x]}]\n"
    )

    done = failwell("run", "flow.yaml", "-q", "--allow-outside", "--store", "store", cwd=project)
    (project / "fixed").touch()
    again = pasted(line_of(done, "resume:"), project)

    assert done.code == 3, done.err
    assert "--allow-outside" in line_of(done, "resume:")
    assert again.code == 0, again.err


def test_the_resume_lines_of_shown_and_listed_runs_are_the_same(tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").write_text(
        SECRET.replace("test -e fixed", "touch began; sleep 300; test -e fixed")
    )
    store = str(tmp_path / "store")
    process = subprocess.Popen(
        [sys.executable, "-m", "failwell", "run", "secret.yaml", "-i", "token=s3cr3t-value-1", "--run-id", "r1", "--store", store],
        cwd=tmp_path, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while not (tmp_path / "began").exists():
        assert process.poll() is None
    process.kill()
    process.wait()

    listed = failwell("runs", "list", "--format", "json", "--store", store).data[0]
    shown = failwell("runs", "show", "r1", "--format", "json", "--store", store).data

    assert listed["resume"] == f"failwell resume r1 -i token=VALUE --store {store}"
    assert shown["resume"] == shown["next"][0]["command"] == listed["resume"]


def test_the_gate_that_a_waiting_run_names_can_be_pasted_wherever_it_is(tmp_path: Path) -> None:
    (tmp_path / "inner.yaml").write_text(
        "workflow: {name: inner, entry_point: ask}\n"
        "agents: [{name: ask, type: human_gate, prompt: Go on?, options: [{label: a, value: a, route: $end}]}]\n"
    )
    (tmp_path / "flow.yaml").write_text(
        "workflow: {name: flow, entry_point: loop, input: {items: {type: array, default: [1]}}}\nagents: []\n"
        "for_each:\n  - {name: loop, type: for_each, source: workflow.input.items, as: item,"
        " agent: {name: each, type: workflow, workflow: inner.yaml}}\n"
        "output: {x: '1'}\n"
    )

    done = failwell("run", "flow.yaml", "-q", "--no-input", "--store", "store", cwd=tmp_path)
    line = line_of(done, "next:")
    answered = pasted(line.replace("VALUE", "a"), tmp_path)
    again = pasted(answered.out.splitlines()[-1], tmp_path)

    assert done.code == 4, done.err
    assert "'loop[0]/ask'" in line
    assert answered.code == 0, answered.err
    assert (again.code, again.data) == (0, {"x": 1}), again.err


def test_a_failed_run_and_the_run_that_continues_it_name_each_other(tmp_path: Path) -> None:
    (tmp_path / "flow.yaml").write_text(
        "workflow: {name: flow, entry_point: a}\n"
        "agents: [{name: a, type: script, command: sh, args: ['-c', 'test -e fixed'], raises: [external.x]}]\n"
    )
    store = ("--store", str(tmp_path / "store"))
    failwell("run", "flow.yaml", "-q", "--run-id", "first", *store, cwd=tmp_path)
    (tmp_path / "fixed").touch()
    assert failwell("resume", "first", "-q", *store, cwd=tmp_path).code == 0

    first = failwell("runs", "show", "first", "--format", "json", *store).data
    (second,) = first["continued_by"]
    text = failwell("runs", "show", "first", *store).out

    assert failwell("runs", "show", second, "--format", "json", *store).data["continues"] == "first"
    assert f"continued by  {second}" in text
    assert f"failwell runs show {second}" in text


def test_pruning_what_runs_says_why_nothing_is_deleted(tmp_path: Path) -> None:
    (tmp_path / "flow.yaml").write_text(
        "workflow: {name: flow, entry_point: a}\nagents: [{name: a, type: script, command: sh, args: ['-c', 'touch began; sleep 300']}]\n"
    )
    store = ("--store", str(tmp_path / "store"))
    process = subprocess.Popen(
        [sys.executable, "-m", "failwell", "run", "flow.yaml", "--run-id", "r1", *store],
        cwd=tmp_path, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while not (tmp_path / "began").exists():
        assert process.poll() is None

    live = failwell("runs", "prune", "--status", "running", "--yes", *store)
    nothing = failwell("runs", "prune", "--status", "failed", "--yes", *store)
    process.terminate()
    process.wait()

    assert (live.code, "left alone, because they are running: r1" in live.out) == (0, True), live.out
    assert "no recorded run matches" in nothing.out


def test_every_line_of_the_errors_file_has_all_frames(tmp_path: Path) -> None:
    raising = json.dumps('printf \'{"kind": "external.x", "message": "m"}\' > $FAILWELL_ERROR_OUT')
    steps = "\n".join(
        f'  - {{name: m{n}, type: script, command: sh, args: ["-c", {raising}]}}' for n in range(3)
    )
    (tmp_path / "inner.yaml").write_text(
        f"workflow: {{name: inner, entry_point: group}}\nagents:\n{steps}\n"
        "parallel: [{name: group, agents: [m0, m1, m2], failure_mode: all_or_nothing}]\n"
    )
    (tmp_path / "middle.yaml").write_text(
        "workflow: {name: middle, entry_point: call}\nagents: [{name: call, type: workflow, workflow: inner.yaml}]\n"
    )
    (tmp_path / "root.yaml").write_text(
        "workflow: {name: root, entry_point: top}\nagents: [{name: top, type: workflow, workflow: middle.yaml}]\n"
    )

    done = failwell("run", "root.yaml", "-q", "--run-id", "r1", "--store", "store", cwd=tmp_path)
    written = (tmp_path / "store/runs/r1/errors.jsonl").read_text().splitlines()
    lines = [json.loads(line) for line in written]

    assert done.code == 3
    assert len(lines) == 3
    for line in lines:
        assert [frame["node"] for frame in line["frames"]] == [line["node"], "call", "top"]
        assert [frame["workflow"] for frame in line["frames"]] == ["inner", "middle", "root"]
    assert sorted(line["node"] for line in lines) == ["m0", "m1", "m2"]
