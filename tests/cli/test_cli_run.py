"""`failwell run` and `resume`, typed as a person types them: results, errors, exit codes, files."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Done, environment, failwell

RAISE = (
    'printf \'{"kind": "%s", "message": "it drifted", "details": {"branch": "main"}}\' > $FAILWELL_ERROR_OUT'
)


def a_file(folder: Path, text: str, name: str = "flow.yaml") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def a_raising_file(folder: Path, kind: str = "external.git.drift", routes: str = "") -> str:
    script = json.dumps(RAISE % kind)
    return a_file(
        folder,
        f"""
workflow: {{name: flow, entry_point: probe}}
agents:
  - name: before
    type: set
    value: 1
  - name: probe
    type: script
    command: sh
    args: ["-c", {script}]
    routes:
      - to: $end
{routes}
output: {{k: "{{{{ probe.error.kind | default('none') }}}}"}}
""".replace("  - name: before\n    type: set\n    value: 1\n", ""),
    )


def run(folder: Path, *arguments: str, **more: Any) -> Done:
    return failwell("run", *arguments, "--store", str(folder / "store"), **more)


def events(folder: Path, name: str = "last") -> list[dict[str, Any]]:
    out = failwell("runs", "export", name, "--store", str(folder / "store")).out
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.acceptance("conductor 35")
def test_an_unhandled_error_exits_3_with_a_full_account_on_stderr_and_no_result(tmp_path: Path) -> None:
    done = run(tmp_path, a_raising_file(tmp_path))

    assert done.code == 3
    assert done.out == ""
    for word in ("probe", "external.git.drift", "it drifted", '"branch": "main"', "errors.jsonl"):
        assert word in done.err


@pytest.mark.acceptance("pipelex 62")
def test_a_failed_run_for_an_agent_is_one_json_object_on_stderr(tmp_path: Path) -> None:
    text = "workflow: {name: x, entry_point: a}\nagents: [{name: a, type: script, command: no-such-program}]"

    done = run(tmp_path, a_file(tmp_path, text), "--format", "json")

    assert (done.code, done.out) == (1, "")
    error = json.loads(done.err)
    assert (error["error"], error["kind"]) == (True, "internal.spawn_failed")
    assert (error["error_category"], error["error_domain"]) == ("configuration", "config")
    assert error["error_source"][0] == "Fault @ internal.spawn_failed"


@pytest.mark.acceptance("conductor 28")
def test_an_error_of_a_step_without_any_route_is_unhandled(tmp_path: Path) -> None:
    step = {"name": "probe", "type": "script", "command": "sh", "args": ["-c", RAISE % "external.git.drift"]}
    file = a_file(tmp_path, json.dumps({"workflow": {"name": "x", "entry_point": "probe"}, "agents": [step]}))

    done = run(tmp_path, file)

    assert (done.code, done.out) == (3, "")
    assert "external.git.drift" in done.err
    last = events(tmp_path)[-1]
    assert (last["type"], last["data"]["error_type"]) == ("run:failed", "UnhandledWorkflowError")


@pytest.mark.acceptance("conductor 13")
def test_a_bad_exit_of_a_step_that_asked_for_nothing_takes_a_success_route(tmp_path: Path) -> None:
    steps = [
        {
            "name": "probe", "type": "script", "command": "sh", "args": ["-c", "exit 3"],
            "routes": [{"when": "probe.output.exit_code == 3", "to": "after"}, {"to": "$end"}],
        },
        {"name": "after", "type": "set", "value": "{{ probe.output.exit_code }}"},
    ]  # fmt: skip
    flow = {
        "workflow": {"name": "x", "entry_point": "probe"},
        "agents": steps,
        "output": {"code": "{{ after.output }}"},
    }

    done = run(tmp_path, a_file(tmp_path, json.dumps(flow)), "--quiet")

    assert (done.code, done.data) == (0, {"code": 3}), done.err
    assert "node:failed" not in [one["type"] for one in events(tmp_path)]


@pytest.mark.acceptance("conductor 36")
def test_an_unhandled_error_leaves_one_line_in_the_errors_file(tmp_path: Path) -> None:
    run(tmp_path, a_raising_file(tmp_path), "--run-id", "r1")

    (line,) = (tmp_path / "store/runs/r1/errors.jsonl").read_text().splitlines()
    told = json.loads(line)
    assert set(told) == {"timestamp", "run_id", "workflow", "node", "envelope", "frames", "report"}
    assert told["node"] == "probe"
    assert told["envelope"] == {
        "kind": "external.git.drift",
        "message": "it drifted",
        "details": {"branch": "main"},
    }
    assert len(told["frames"]) == 1


@pytest.mark.acceptance("conductor 37")
def test_the_terminal_event_says_what_no_route_took_and_the_node_has_failed(tmp_path: Path) -> None:
    run(tmp_path, a_raising_file(tmp_path))

    seen = events(tmp_path)
    last = seen[-1]
    assert last["type"] == "run:failed"
    assert last["data"]["error_type"] == "UnhandledWorkflowError"
    assert last["data"]["envelope"] == {
        "kind": "external.git.drift",
        "message": "it drifted",
        "details": {"branch": "main"},
    }
    assert [frame["node"] for frame in last["data"]["frames"]] == ["probe"]
    [errors_file] = (tmp_path / "store/runs").glob("*/errors.jsonl")
    assert Path(last["data"]["errors_file"]) == errors_file
    assert [one["type"] for one in seen if one["data"].get("path") == "probe"] == [
        "node:started",
        "node:failed",
    ]


@pytest.mark.acceptance("conductor 38", "relavium 70")
@pytest.mark.parametrize(
    ("text", "code"),
    [
        (None, 2),
        ("workflow: [", 2),
        ("workflow: {name: x, entry_point: nowhere}\nagents: [{name: a, type: set, value: 1}]", 2),
        ("workflow: {name: x, entry_point: a}\nagents: [{name: a, type: set, value: '{{ 1 // 0 }}'}]", 1),
        (
            "workflow: {name: x, entry_point: a}\nagents: [{name: a, type: script, command: no-such-program}]",
            1,
        ),
    ],
    ids=["missing", "broken", "refused", "template", "spawn"],
)
def test_what_is_not_a_typed_error_never_exits_3(tmp_path: Path, text: str | None, code: int) -> None:
    file = str(tmp_path / "missing.yaml") if text is None else a_file(tmp_path, text)

    done = run(tmp_path, file)

    assert done.code == code, done.err
    assert done.out == ""
    assert "Traceback" not in done.err


@pytest.mark.acceptance("conductor 6")
def test_run_refuses_what_validate_refuses_in_the_same_words(tmp_path: Path) -> None:
    file = a_file(
        tmp_path,
        """
workflow: {name: x, entry_point: a}
agents:
  - {name: a, type: script, command: touch, args: [ran], routes: [{to: nowhere}]}
  - {name: a, type: set, value: 1}
""",
    )

    validated = failwell("validate", file)
    ran = run(tmp_path, file)

    assert validated.code == ran.code == 2
    assert {
        line for line in validated.err.splitlines() + validated.out.splitlines() if line.startswith("error:")
    } == {line for line in ran.err.splitlines() if line.startswith("error:")}
    assert not (tmp_path / "ran").exists()


@pytest.mark.acceptance("conductor 39", "conductor 61")
def test_a_failed_run_is_resumed_at_the_node_that_failed_and_halts_with_3_again(tmp_path: Path) -> None:
    flag = tmp_path / "fixed"
    script = json.dumps(f"test -e '{flag}' || {RAISE % 'external.x'}; echo run >> '{tmp_path}/ran'")
    file = a_file(
        tmp_path,
        f"""
workflow: {{name: flow, entry_point: first}}
agents:
  - {{name: first, type: script, command: sh, args: ["-c", "echo first >> '{tmp_path}/ran'"], routes: [{{to: second}}]}}
  - {{name: second, type: script, command: sh, args: ["-c", {script}]}}
output: {{history: "{{{{ context.history | join(' ') }}}}"}}
""",
    )
    run(tmp_path, file, "--run-id", "r1")

    still_broken = failwell("resume", "r1", "--store", str(tmp_path / "store"))
    flag.touch()
    mended = failwell("resume", "last", "--store", str(tmp_path / "store"))

    assert still_broken.code == 3
    assert mended.code == 0, mended.err
    assert mended.data == {"history": "first second"}
    assert (tmp_path / "ran").read_text().split().count("first") == 1


@pytest.mark.acceptance("conductor 8", "conductor 62")
def test_a_run_that_ended_well_leaves_nothing_to_resume(tmp_path: Path) -> None:
    file = a_raising_file(tmp_path, routes="      - {on_error: true, to: $end}\n")
    done = run(tmp_path, file, "--run-id", "r1")

    again = failwell("resume", "r1", "--store", str(tmp_path / "store"))

    assert done.data == {"k": "external.git.drift"}
    assert again.code == 2
    assert "nothing to resume" in again.err
    assert not (tmp_path / "store/runs/r1/errors.jsonl").exists()


@pytest.mark.acceptance("conductor 66")
@pytest.mark.parametrize("how", ["--silent", "--quiet", "--progress=plain"])
def test_stdout_holds_the_result_alone_whatever_is_asked_meanwhile(tmp_path: Path, how: str) -> None:
    file = a_file(
        tmp_path,
        """
workflow: {name: flow, entry_point: ask}
agents:
  - name: ask
    type: human_gate
    prompt: Ship it?
    options: [{label: "Yes", value: "yes", route: ship}, {label: "No", value: "no", route: $end}]
  - {name: ship, type: script, command: echo, args: [shipped]}
output: {x: "{{ ship.output.stdout | trim }}"}
""",
    )

    skipped = run(tmp_path, file, how, "--skip-gates")
    waiting = run(tmp_path, file, how, given="yes\n")

    assert skipped.data == {"x": "shipped"}
    assert waiting.code == 4
    assert waiting.out == ""
    assert "failwell gates answer" in waiting.err


@pytest.mark.acceptance("conductor 63")
@pytest.mark.parametrize(
    ("inputs", "word"),
    [((), "count"), (("-i", "count=abc"), "count")],
    ids=["missing", "mistyped"],
)
def test_wrong_inputs_are_refused_by_name_before_the_first_step(
    tmp_path: Path, inputs: tuple[str, ...], word: str
) -> None:
    file = a_file(
        tmp_path,
        f"""
workflow: {{name: flow, entry_point: a, input: {{count: {{type: number}}}}}}
agents: [{{name: a, type: script, command: touch, args: ["{tmp_path}/ran"]}}]
""",
    )

    done = run(tmp_path, file, *inputs)

    assert done.code == 2
    assert word in done.err
    assert not (tmp_path / "ran").exists()


@pytest.mark.acceptance("conductor 63")
def test_an_undeclared_input_is_taken_with_a_note(tmp_path: Path) -> None:
    file = a_file(
        tmp_path,
        """
workflow: {name: flow, entry_point: a, input: {count: {type: number, default: 1}}}
agents: [{name: a, type: set, value: "{{ workflow.input | tojson }}"}]
""",
    )

    told = run(tmp_path, file, "-i", "cuont=5")
    silent = run(tmp_path, file, "-i", "cuont=5", "--silent")
    planned = run(tmp_path, file, "-i", "cuont=5", "--dry-run")

    assert (told.code, told.data) == (0, {"count": 1, "cuont": 5})
    assert "note: the workflow declares no input `cuont`" in told.err
    assert "did you mean `count`?" in told.err
    assert (silent.code, silent.data, silent.err) == (0, told.data, "")
    assert planned.code == 0


@pytest.mark.acceptance("conductor 68")
def test_a_file_of_scripts_loads_no_provider(tmp_path: Path) -> None:
    file = a_file(
        tmp_path, "workflow: {name: x, entry_point: a}\nagents: [{name: a, type: script, command: 'true'}]"
    )
    program = (
        "import sys; from failwell.cli.main import main; code = main(sys.argv[1:]);"
        "print(sorted({'.'.join(m.split('.')[:2]) for m in sys.modules}), file=sys.stderr); sys.exit(code)"
    )

    done = subprocess.run(
        [sys.executable, "-c", program, "run", "--quiet", file, "--store", str(tmp_path / "store")],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
        timeout=30,
    )

    loaded = set(json.loads(done.stderr.strip().splitlines()[-1].replace("'", '"')))
    assert done.returncode == 0
    assert not loaded & {f"failwell.{room}" for room in ("agents", "interaction", "sessions", "turns")}
    assert not {name.partition(".")[0] for name in loaded} & {
        "openai",
        "anthropic",
        "pydantic",
        "pydantic_ai",
        "httpx",
        "rich",
        "jsonschema_rs",
        "temporalio",
        "google",
    }


@pytest.mark.acceptance("conductor 69")
def test_a_file_without_typed_errors_behaves_as_it_always_did(tmp_path: Path) -> None:
    file = a_file(
        tmp_path,
        """
workflow: {name: old, entry_point: check}
agents:
  - name: check
    type: script
    command: sh
    args: ["-c", "echo partial; exit 3"]
    routes:
      - {to: fix, when: "exit_code == 3"}
      - {to: $end}
  - name: fix
    type: script
    command: echo
    args: ["code {{ check.output.exit_code }}"]
output: {text: "{{ fix.output.stdout }}", out: "{{ check.output.stdout }}"}
""",
    )

    done = run(tmp_path, file, "--quiet")

    assert done.code == 0, done.err
    assert done.data == {"text": "code 3\n", "out": "partial\n"}
    assert [one["type"] for one in events(tmp_path)] == [
        "run:started",
        "node:started",
        "node:completed",
        "route:taken",
        "node:started",
        "node:completed",
        "route:taken",
        "run:completed",
    ]


@pytest.mark.acceptance("conductor 70")
def test_runs_that_start_together_share_no_file(tmp_path: Path) -> None:
    file = a_raising_file(tmp_path)
    command = [sys.executable, "-m", "failwell", "run", file, "--store", str(tmp_path / "store"), "--quiet"]
    both = [
        subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(3)
    ]

    codes = [one.wait(30) for one in both]

    assert codes == [3, 3, 3]
    files = list((tmp_path / "store/runs").glob("*/errors.jsonl"))
    assert len(files) == 3
    assert all(len(one.read_text().splitlines()) == 1 for one in files)


def wait_for(path: Path, seconds: float = 20.0) -> None:
    until = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < until, f"{path} never came"
        time.sleep(0.01)


def processes_with(word: str) -> list[str]:
    found: list[str] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if word.encode() in line:
                found.append(line.decode(errors="replace"))
    return found


def test_stop_ends_a_run_in_another_process(tmp_path: Path) -> None:
    mark = tmp_path / "began"
    file = a_file(
        tmp_path,
        f"""
workflow: {{name: flow, entry_point: long}}
agents: [{{name: long, type: script, command: sh, args: ["-c", "touch '{mark}'; sleep 300"]}}]
""",
    )
    store = str(tmp_path / "store")
    process = subprocess.Popen(
        [sys.executable, "-m", "failwell", "run", file, "--store", store, "--run-id", "r1", "--quiet"],
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_for(mark)

    second = failwell("resume", "r1", "--store", store)
    stopped = failwell("stop", "r1", "--store", store, "--json")

    assert second.code == 2
    assert "r1" in second.err
    assert stopped.data == {
        "id": "r1",
        "status": "cancelled",
        "resume": f"failwell resume r1 --store {store}",
    }
    assert process.wait(20) == 1


@pytest.mark.acceptance("relavium 56")
def test_a_gate_is_answered_from_another_process_while_the_run_waits(tmp_path: Path) -> None:
    file = a_file(
        tmp_path,
        """
workflow: {name: flow, entry_point: ask}
agents:
  - name: ask
    type: human_gate
    prompt: Ship it?
    options: [{label: "Yes", value: "yes", route: ship, prompt_for: note}, {label: "No", value: "no", route: $end}]
  - {name: ship, type: set, value: "{{ ask.output.additional_input.note }}"}
output: {x: "{{ ship.output }}"}
""",
    )
    store = str(tmp_path / "store")
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "failwell",
            "run",
            file,
            "--store",
            store,
            "--run-id",
            "r1",
            "--quiet",
            "--wait",
        ],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    wait_for(tmp_path / "store/runs/r1/control.sock")
    while not (listed := failwell("gates", "list", "r1", "--json", "--store", store)).data:
        assert process.poll() is None

    wrong = failwell("gates", "answer", "r1", "ask", "maybe", "--store", store)
    right = failwell("gates", "answer", "r1", "ask", "yes", "--payload", '{"note": "fine"}', "--store", store)
    out, err = process.communicate(timeout=20)

    assert listed.data[0]["id"] == "ask"
    assert listed.data[0]["values"] == ["yes", "no"]
    assert wrong.code == 2
    assert right.code == 0, right.err
    assert json.loads(out) == {"x": "fine"}, err


def test_a_changed_file_is_refused_with_what_changed_unless_that_is_accepted(tmp_path: Path) -> None:
    text = """
workflow: {name: flow, entry_point: a}
agents: [{name: a, type: script, command: sh, args: ["-c", "exit 1"], routes: [{to: $end, when: "exit_code == 0"}]}]
"""
    file = a_file(tmp_path, text)
    run(tmp_path, file, "--run-id", "r1")
    Path(file).write_text(text.replace("exit 1", "exit 0"))

    refused = failwell("resume", "r1", "--store", str(tmp_path / "store"))
    accepted = failwell("resume", "r1", "--accept-changes", "--store", str(tmp_path / "store"))

    assert refused.code == 2
    assert "+1 −1 lines" in refused.err
    assert "--accept-changes" in refused.err
    assert accepted.code == 0, accepted.err


def test_a_run_is_resumed_from_another_folder(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/step.sh").write_text("test -e ready || exit 3\npwd\n")
    text = """
workflow: {name: flow, entry_point: a}
agents: [{name: a, type: script, command: sh, args: [step.sh], raises: [external.x]}]
output: {where: "{{ a.output.stdout | trim }}"}
"""
    (tmp_path / "work/flow.yaml").write_text(text)
    store = str(tmp_path / "store")
    command = [
        sys.executable,
        "-m",
        "failwell",
        "run",
        "flow.yaml",
        "--store",
        store,
        "--run-id",
        "r1",
        "--quiet",
    ]
    first = subprocess.run(
        command, env=environment(), cwd=tmp_path / "work", capture_output=True, check=False, timeout=30
    )
    (tmp_path / "work/ready").touch()

    resumed = failwell("resume", "r1", "--store", store)

    assert first.returncode == 3
    assert resumed.code == 0, resumed.err
    assert resumed.data == {"where": str(tmp_path / "work")}


def test_a_file_that_lost_the_place_of_the_run_is_refused_even_with_changes_accepted(tmp_path: Path) -> None:
    text = """
workflow: {name: flow, entry_point: a}
agents: [{name: a, type: script, command: sh, args: ["-c", "exit 1"], raises: [external.x]}]
"""
    file = a_file(tmp_path, text)
    run(tmp_path, file, "--run-id", "r1")
    Path(file).write_text(text.replace("name: a,", "name: b,").replace("entry_point: a", "entry_point: b"))

    refused = failwell("resume", "r1", "--accept-changes", "--store", str(tmp_path / "store"))

    assert refused.code == 2
    assert "no longer has `a`" in refused.err


def test_a_child_whose_path_is_only_known_at_run_time_is_resumed_too(tmp_path: Path) -> None:
    a_file(
        tmp_path,
        f"""
workflow: {{name: child, entry_point: a}}
agents: [{{name: a, type: script, command: sh, args: ["-c", "test -e '{tmp_path}/ready' || exit 3"], raises: [external.x]}}]
output: {{v: done}}
""",
        "child.yaml",
    )
    file = a_file(
        tmp_path,
        """
workflow: {name: flow, entry_point: step, input: {which: {type: string, default: child}}}
agents: [{name: step, type: workflow, workflow: "{{ workflow.input.which }}.yaml", input_mapping: {}}]
output: {v: "{{ step.output.v }}"}
""",
    )
    first = run(tmp_path, file, "--run-id", "r1")
    (tmp_path / "ready").touch()

    resumed = failwell("resume", "r1", "--store", str(tmp_path / "store"))

    assert first.code == 3, first.err
    assert resumed.code == 0, resumed.err
    assert resumed.data == {"v": "done"}


def test_hooks_are_rendered_and_put_on_record(tmp_path: Path) -> None:
    file = a_file(
        tmp_path,
        """
workflow:
  name: flow
  entry_point: a
  hooks:
    on_start: "starting {{ workflow.name }}"
    on_complete: "made {{ result.x }}"
    on_error: "broke: {{ error.kind }}"
  input: {fail: {type: boolean, default: false}}
agents:
  - {name: a, type: script, command: sh, args: ["-c", "test {{ workflow.input.fail }} = False"], raises: [external.x]}
output: {x: "1"}
""",
    )

    well, badly = (
        run(tmp_path, file, "--run-id", "well"),
        run(tmp_path, file, "--run-id", "badly", "-i", "fail=true"),
    )

    assert (well.code, badly.code) == (0, 3), badly.err
    assert [one["data"]["text"] for one in events(tmp_path, "well") if one["type"] == "hook"] == [
        "starting flow",
        "made 1",
    ]
    assert events(tmp_path, "badly")[-2]["data"]["text"] == "broke: internal.script_error"


@pytest.mark.parametrize("style", ["plain", "live"])
def test_progress_shows_each_hook_and_why_one_failed(tmp_path: Path, style: str) -> None:
    file = a_file(
        tmp_path,
        """
workflow:
  name: flow
  entry_point: a
  hooks: {on_start: "starting\\n{{ workflow.name }}", on_complete: "made {{ result.nothing.at_all }}"}
agents: [{name: a, type: set, value: "1"}]
output: {x: "1"}
""",
    )

    done = run(tmp_path, file, "--progress", style)

    assert (done.code, done.data) == (0, {"x": 1}), done.err
    assert "hook on_start: starting flow" in done.err
    assert "hook on_complete failed: template at " in done.err
    # A line of the live view is as wide as the terminal.
    assert style == "live" or "undefined value: `result.nothing`; this does not affect the run\n" in done.err


def test_what_is_typed_is_read_by_the_declared_type(tmp_path: Path) -> None:
    file = a_file(
        tmp_path,
        """
workflow:
  name: flow
  entry_point: a
  input: {version: {type: string}, count: {type: number}, all: {type: boolean}, names: {type: array}}
agents: [{name: a, type: set, value: "{{ workflow.input.names | length }}"}]
output:
  version: "{{ workflow.input.version }}/"
  sum: "{{ workflow.input.count + a.output }}"
  all: "{{ workflow.input.all }}"
""",
    )

    done = run(
        tmp_path,
        file,
        "-q",
        "-i",
        "version=2.40",
        "-i",
        "count=3",
        "-i",
        "all=true",
        "-i",
        'names=["x", "y"]',
    )

    assert done.code == 0, done.err
    assert done.data == {"version": "2.40/", "sum": 5, "all": True}
