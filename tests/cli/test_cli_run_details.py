"""What a person sees of a run: exit codes, stderr, keys, outputs, and what a time limit stopped."""

from pathlib import Path

from tests.cli.running import Done, failwell

FLOW = """
workflow:
  name: flow
  input:
    regions: {type: array, default: [{id: eu}, {id: us}]}
  entry_point: lint
agents:
  - name: lint
    type: script
    command: sh
    args: ["-c", "echo '{\\"warnings\\": 2}'; exit 3"]
    routes: [{to: deploy}]
  - name: push
    type: script
    command: sh
    args: ["-c", "echo first >&2; echo \\"no route to {{ region.id }}\\" >&2; test {{ region.id }} = eu || exit 7"]
    raises: [external.push]
for_each:
  - name: deploy
    source: workflow.input.regions
    as: region
    key_by: id
    agent: push
    max_concurrent: 1
    routes: [{to: $end}]
"""


def run(folder: Path, text: str, *options: str, **env: str) -> Done:
    (folder / "flow.yaml").write_text(text)
    return failwell("run", str(folder / "flow.yaml"), *options, "--store", str(folder / "store"), env=env)


def runs(folder: Path, *arguments: str) -> Done:
    return failwell("runs", *arguments, "--store", str(folder / "store"))


def test_progress_names_exit_codes_and_the_keys_of_items(tmp_path: Path) -> None:
    lines = run(tmp_path, FLOW).err.splitlines()

    assert any(line.startswith("lint: done in ") and line.endswith(", exit code 3") for line in lines)
    assert any(line.startswith("deploy[0] (eu): done in ") and line.endswith("exit code 0") for line in lines)
    assert "deploy[1] (us): failed with internal.script_error, exit code 7" in lines


def test_a_retried_attempt_and_a_signal_are_named_too(tmp_path: Path) -> None:
    text = """
workflow: {name: flow, entry_point: try}
agents:
  - name: try
    type: script
    command: sh
    args: ["-c", "test $FAILWELL_RETRY_ATTEMPT = 1 && kill -9 $$; exit 5"]
    routes:
      - {on_error: internal.script_error, retry: {max: 1, initial_seconds: 0.01}}
      - {to: $end}
"""

    done = run(tmp_path, text)

    assert "try: failed with internal.script_error, exit code 5 (attempt 1); again in" in done.err
    assert "try: failed with internal.script_error, ended by SIGKILL" in done.err


def test_runs_show_has_exit_codes_keys_and_the_end_of_stderr_as_lines(tmp_path: Path) -> None:
    run(tmp_path, FLOW)

    shown = runs(tmp_path, "show", "last").out
    markdown = runs(tmp_path, "show", "last", "--format", "markdown").out

    for text in (shown, markdown):
        assert "exit code 3" in text
        assert "exit code 7; internal.script_error" in text
        assert "deploy[1] (us)" in text
        assert "first\n" in text
        assert "no route to us\n" in text
    assert "\n  first\n  no route to us\n" in shown


def test_the_data_of_a_run_has_the_output_of_each_step(tmp_path: Path) -> None:
    run(tmp_path, FLOW)

    nodes = {node["id"]: node for node in runs(tmp_path, "show", "last", "--json").data["nodes"]}

    assert nodes["lint"]["output"] == {
        "warnings": 2,
        "stdout": '{"warnings": 2}\n',
        "stderr": "",
        "exit_code": 3,
    }
    assert (nodes["lint"]["exit_code"], nodes["deploy[1]"]["exit_code"]) == (3, 7)
    assert (nodes["deploy[0]"]["item"], nodes["deploy[1]"]["item"]) == ("eu", "us")
    assert nodes["deploy[1]"]["stderr_tail"] == "first\nno route to us\n"


def test_the_end_of_stderr_is_printed_as_text_where_the_record_keeps_it_in_the_details(
    tmp_path: Path,
) -> None:
    done = run(tmp_path, FLOW, FAILWELL_TRACEBACK="full")

    assert "stderr:\n  first\n  no route to us\n" in done.err
    assert "stderr_tail" not in done.err


def test_a_typed_error_shows_the_stderr_of_its_script(tmp_path: Path) -> None:
    text = """
workflow: {name: flow, entry_point: check}
agents:
  - name: check
    type: script
    command: sh
    args: ["-c", "echo diagnosis >&2; echo '{\\"kind\\": \\"external.x\\", \\"message\\": \\"m\\"}' > $FAILWELL_ERROR_OUT"]
"""

    done = run(tmp_path, text)

    assert done.code == 3
    assert "stderr:\n  diagnosis\n" in done.err
    assert "\n  diagnosis\n" in runs(tmp_path, "show", "last").out


def test_a_run_that_reached_its_time_limit_names_what_was_running(tmp_path: Path) -> None:
    text = """
workflow:
  name: flow
  entry_point: both
  limits: {timeout_seconds: 0.3}
parallel:
  - name: both
    agents: [left, right]
agents:
  - {name: left, type: script, command: sleep, args: ["30"]}
  - {name: right, type: wait, duration: 30s}
"""

    done = run(tmp_path, text)
    data = runs(tmp_path, "show", "last", "--json").data

    assert "the run reached its time limit of 0.3 s; still running: `both/left`, `both/right`" in done.err
    running = data["failure"]["envelope"]["details"]["running"]
    assert [(entry["path"], entry["status"]) for entry in running] == [
        ("both/left", "running"),
        ("both/right", "waiting"),
    ]
