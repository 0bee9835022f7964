"""Workflow runs on a real Temporal server, through the commands as they are shipped."""

import asyncio
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("temporalio")

from tests.cli.running import Done, environment, failwell, failwell_process
from tests.temporal.project import Project, worker
from tests.temporal_server import server

TWO = """
workflow:
  name: two
  entry_point: first
  input: {who: {type: string, default: world}}
agents:
  - name: first
    type: script
    command: sh
    args: [-c, "echo '{\\"z\\": 1, \\"word\\": \\"hello\\"}'"]
    routes: [{to: second}]
  - name: second
    type: script
    command: sh
    args: [-c, "echo '{{ first.output.word }} {{ workflow.input.who }}'"]
    routes: [{to: $end}]
output:
  text: "{{ second.output.stdout }}"
  order: "{% for name in first.output %}{{ name }} {% endfor %}"
"""


@pytest.fixture
def project(tmp_path: Path) -> Generator[Project]:
    project = Project(tmp_path)
    with worker(project.queue, tmp_path / "worker"):
        yield project


def test_two_scripts_run_on_temporal_and_print_what_a_local_run_prints(project: Project) -> None:
    done = project.run(TWO, "-i", "who=there")
    file = project.folder / "workflow.yaml"
    local = project.type("run", str(file), "-i", "who=there", "--run-id", "here")

    assert done.code == local.code == 0, done.err
    assert (
        done.data
        == local.data
        == {
            "text": "hello there\n",
            "order": "stdout stderr exit_code z word ",
        }
    )
    assert _without_times(done.err) == _without_times(local.err)


def _without_times(text: str) -> str:
    return re.sub(r"run \S+ of|in [\d.]+ m?s|after [\d.]+ m?s", "", text)


GATE = """
workflow: {name: gate, entry_point: ask}
agents:
  - name: ask
    type: human_gate
    prompt: Shall we?
    options:
      - {label: "Yes", value: "yes", route: go}
      - {label: "No", value: "no", route: $end}
  - {name: go, type: set, value: "{{ ask.output.selected }}", routes: [{to: $end}]}
output: {went: "{{ go.output }}"}
"""


def test_a_gate_is_answered_by_the_usual_command_and_a_second_answer_is_refused(project: Project) -> None:
    waiting = project.run(GATE, "--no-input")
    listed = project.type("gates", "list", "last", "--json").data
    wrong = project.type("gates", "answer", "last", "ask", "maybe")
    answered = project.type("gates", "answer", "last", "ask", "yes", "--by", "ann")
    again = project.type("gates", "answer", "last", "ask", "no")
    shown = project.type("runs", "show", "last", "--json").data

    assert waiting.code == 4, waiting.err
    assert [(gate["id"], gate["values"]) for gate in listed] == [("ask", ["yes", "no"])]
    assert wrong.code == 2
    assert "`maybe` is not an answer" in wrong.err
    assert answered.code == 0, answered.err
    assert again.code == 2
    assert shown["status"] == "completed"
    resumed = [event["data"] for event in project.events() if event["type"] == "human_gate:resumed"]
    assert [(data["decision"], data["decided_by"]) for data in resumed] == [("yes", "ann")]


STAGES = """
workflow: {name: stages, entry_point: draft, runtime: {default_model: "scripted:replies.yaml"}}
stages:
  - id: draft
    setup: {topic: rain}
    prompt: "Write about {{ ctx.topic }}."
    assert: [{when: "{{ act.output.result == 'bad' }}", verdict: retry, feedback: too short}]
    retryPolicy: {maxAttempts: 2}
    next: [{parallel: [left, right], join: end}]
  - {id: left, exit: {side: left}}
  - {id: right, exit: {side: right}}
  - {id: end, exit: {sides: "{{ siblings | list }}", topic: "{{ ctx.topic }}"}}
"""


def test_a_state_machine_runs_on_temporal_as_on_one_machine(project: Project) -> None:
    replies = "agents: {draft: [{text: bad}], 'draft#2': [{text: good}]}\nreplies: [{text: done}]\n"
    (project.folder / "replies.yaml").write_text(replies)

    done = project.run(STAGES)
    local = project.type("run", str(project.folder / "workflow.yaml"), "--run-id", "here")

    assert done.code == local.code == 0, done.err
    assert done.data == local.data == {"sides": ["left", "right"], "topic": "rain"}


FAILS_ONCE = """
workflow: {name: mendable, entry_point: first}
kinds: {external.shop.closed: {category: user_input, summary: The shop is closed.}}
agents:
  - {name: first, type: script, command: sh, args: [-c, "echo once >> FOLDER/first; echo '{\\"n\\": 1}'"], routes: [{to: second}]}
  - name: second
    type: script
    raises: [external.shop.closed]
    command: sh
    args:
      - -c
      - |
        test -e FOLDER/open && { echo done; exit 0; }
        echo '{"kind": "external.shop.closed", "message": "the shop is closed"}' > "$FAILWELL_ERROR_OUT"; exit 1
    routes: [{to: $end}]
output: {text: "{{ second.output.stdout }}"}
"""


def test_a_failed_run_has_the_same_report_panel_and_exit_code_and_is_resumed(project: Project) -> None:
    text = FAILS_ONCE.replace("FOLDER", str(project.folder))
    failed = project.run(text)
    local = project.type("run", str(project.folder / "workflow.yaml"), "--run-id", "here", "--json")
    as_json = project.run(text, "--json", run="j")
    (project.folder / "open").touch()
    (project.folder / "first").unlink()
    resumed = project.type("resume", f"r{project.queue[-8:]}")
    listed = project.type("runs", "list", "--json").data

    assert failed.code == 3
    assert "the shop is closed" in failed.err
    assert f"resume:  failwell resume r{project.queue[-8:]}" in failed.err
    assert _stable(as_json.error) == _stable(local.error)
    assert resumed.code == 0, resumed.err
    assert resumed.data == {"text": "done\n"}
    assert not (project.folder / "first").exists(), "a completed step is not run again"
    assert {run["status"] for run in listed} == {"completed", "failed"}


def _stable(error: dict[str, Any]) -> dict[str, Any]:
    changing = ("id", "run", "errors_file", "resume", "occurred_at", "reference", "instance")
    return {name: value for name, value in error.items() if name not in changing}


SLEEP = """
workflow: {name: sleeper, entry_point: nap}
agents:
  - {name: nap, type: script, command: sh, args: [-c, "echo $$ > FOLDER/pid; exec sleep 60"], routes: [{to: $end}]}
"""


@pytest.mark.slow
def test_stop_cancels_a_run_on_its_server_and_ends_its_step(project: Project) -> None:
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(_run_process, project, SLEEP.replace("FOLDER", str(project.folder)))
        pid = _eventually(lambda: (project.folder / "pid").read_text().strip())
        stopped = project.type("stop", "last", "--reason", "enough")
        done = running.result()

    assert stopped.code == 0, stopped.err
    assert done.code == 1
    assert "was cancelled" in done.err
    assert not _is_alive(int(pid))
    end = project.events()[-1]
    assert (end["type"], end["data"]["reason"]) == ("run:cancelled", "enough")


@pytest.mark.slow
def test_an_interrupt_cancels_the_run_as_it_does_here(project: Project) -> None:
    file = project.folder / "workflow.yaml"
    file.write_text(SLEEP.replace("FOLDER", str(project.folder)), encoding="utf-8")
    command = [sys.executable, "-m", "failwell", "run", str(file), *project.engine]
    env = environment(FAILWELL_STORE=str(project.store))
    process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    pid = _eventually(lambda: (project.folder / "pid").read_text().strip())
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)

    assert process.returncode == 130, err
    assert "SIGINT: stopping what runs" in err
    assert not _is_alive(int(pid))
    assert project.events()[-1]["data"]["by"] == "SIGINT"


def test_a_local_run_that_waits_is_moved_to_temporal_by_resume(project: Project) -> None:
    file = project.folder / "workflow.yaml"
    file.write_text(GATE, encoding="utf-8")
    run = f"m{project.queue[-8:]}"
    waiting = project.type("run", str(file), "--run-id", run, "--no-input")
    project.type("gates", "answer", run, "ask", "yes")
    done = project.type("resume", run, *project.engine)

    assert waiting.code == 4
    assert done.code == 0, done.err
    assert done.data == {"went": "yes"}
    types = [event["type"] for event in project.events(run)]
    assert types.count("run:started") == types.count("run:resumed") == types.count("run:completed") == 1


def test_runs_of_another_machine_are_listed_shown_and_resumed(project: Project, tmp_path: Path) -> None:
    text = FAILS_ONCE.replace("FOLDER", str(project.folder))
    project.run(text)
    other = {"FAILWELL_STORE": str(tmp_path / "elsewhere")}
    run = f"r{project.queue[-8:]}"

    listed = failwell("runs", "list", "--json", *project.engine, env=other)
    shown = failwell("runs", "show", run, env=other)
    (project.folder / "open").touch()
    resumed = failwell("resume", run, env=other)

    assert listed.code == 0, listed.err
    assert [row["status"] for row in listed.data if row["id"] == run] == ["failed"]
    assert "external.shop.closed" in shown.out
    assert resumed.code == 0, resumed.err
    assert resumed.data == {"text": "done\n"}


@pytest.mark.slow
def test_nothing_polls_the_queue_and_the_hint_says_what_to_start(tmp_path: Path) -> None:
    project = Project(tmp_path)
    file = project.folder / "workflow.yaml"
    file.write_text(TWO, encoding="utf-8")
    command = [sys.executable, "-m", "failwell", "run", str(file), *project.engine]
    env = environment(FAILWELL_STORE=str(project.store))
    process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert process.stderr is not None
    hint = next(line for line in process.stderr if "no worker" in line)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    process.kill()
    process.wait()
    process.stderr.close()

    assert f"failwell temporal worker --task-queue {project.queue}" in hint


def _run_process(project: Project, text: str) -> Done:
    file = project.folder / "workflow.yaml"
    file.write_text(text, encoding="utf-8")
    env = {"FAILWELL_STORE": str(project.store)}
    return failwell_process("run", str(file), *project.engine, env=env, timeout=60)


def _eventually(read: Callable[[], str]) -> str:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            if text := read():
                return text
        except FileNotFoundError:
            pass
        time.sleep(0.05)
    raise AssertionError("it did not happen")


def _is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


SLOW = """
workflow: {name: slow, entry_point: first}
agents:
  - {name: first, type: script, command: sh, args: [-c, "echo begun; echo $$ > FOLDER/pid; while ! test -e FOLDER/go; do sleep 0.05; done; echo ended"], routes: [{to: second}]}
  - {name: second, type: script, command: sh, args: [-c, "echo second >&2"], routes: [{to: $end}]}
"""


@pytest.mark.slow
def test_a_run_goes_on_after_its_submitter_was_killed_and_its_log_is_followed(project: Project) -> None:
    file = project.folder / "workflow.yaml"
    file.write_text(SLOW.replace("FOLDER", str(project.folder)), encoding="utf-8")
    command = [sys.executable, "-m", "failwell", "run", str(file), "--quiet", *project.engine]
    env = environment(FAILWELL_STORE=str(project.store))
    process = subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _eventually(lambda: (project.folder / "pid").read_text().strip())
    process.kill()
    process.wait()
    listed = project.type("runs", "list", "--json").data
    with ThreadPoolExecutor(1) as threads:
        followed = threads.submit(
            failwell_process, "runs", "logs", "last", "--follow", env={"FAILWELL_STORE": str(project.store)}
        )
        time.sleep(1)
        (project.folder / "go").touch()
        log = followed.result()

    assert [run["status"] for run in listed] == ["running"]
    assert log.out.splitlines() == ["first | begun", "first | ended", "second ! second"], log.err
    assert project.type("runs", "show", "last", "--json").data["status"] == "completed"


VARIABLES = """
workflow: {name: variables, entry_point: show, input: {text: {type: string}}}
agents:
  - name: show
    type: script
    command: sh
    args: [-c, 'printf "%s %s %s" "$KEY" "${MODE_OF_TEST}" "{{ workflow.input.text }}" | sha256sum']
    env: {KEY: "${TEST_API_KEY}"}
    routes: [{to: $end}]
output: {digest: "{{ show.output.stdout }}"}
"""


def test_secret_variables_reach_steps_and_not_the_server(project: Project) -> None:
    project.env = {"TEST_API_KEY": "k9-planted-6f1e", "MODE_OF_TEST": "fast-mode"}
    done = project.run(VARIABLES, "-i", "text=<env TEST_API_KEY>")
    local = project.type("run", str(project.folder / "workflow.yaml"), "-i", "text=<env TEST_API_KEY>")

    assert done.code == 0, done.err
    assert done.data == local.data
    history = asyncio.run(_history(f"r{project.queue[-8:]}"))
    assert "k9-planted-6f1e" not in history
    assert "TEST_API_KEY" in history


async def _history(run: str) -> str:
    """Everything that the server has of a run, with what was compressed."""
    from temporalio.client import Client

    from failwell.temporal.runs.plan_json import unpack

    client = await Client.connect(server().address)
    history = await client.get_workflow_handle(run).fetch_history()
    parts: list[str] = []
    for event in history.events:
        text = event.SerializeToString().decode("utf-8", "replace")
        parts.append(text)
        parts += [json.dumps(unpack(packed)) for packed in re.findall(r'"(?:plans|sources)":"([^"]+)"', text)]
    return "\n".join(parts)


def test_a_secret_input_is_not_sent_in_the_clear_and_comes_from_the_worker(project: Project) -> None:
    text = SECRET.replace("FOLDER", str(project.folder))
    missing = project.run(text, "-i", "token=t0k-submitted-1", run="a")
    project.env = {"FAILWELL_SECRET_TOKEN": "t0k-of-worker-2"}
    done = project.run(text, "-i", "token=t0k-submitted-1", run="b")

    assert missing.code == 1
    assert "set FAILWELL_SECRET_TOKEN in the environment of the workers" in missing.err
    assert done.data == {"length": len("t0k-of-worker-2")}
    assert "workers take them from FAILWELL_SECRET_TOKEN" in done.err
    history = asyncio.run(_history(f"b{project.queue[-8:]}"))
    assert "t0k-" not in history


SECRET = """
workflow: {name: secret, entry_point: use, input: {token: {type: string, secret: true}}}
agents:
  - name: use
    type: script
    command: sh
    args: [-c, 'echo "{\\"n\\": $(printf %s "$TOKEN" | wc -c)}"']
    env_from: {TOKEN: workflow.input.token}
    routes: [{to: $end}]
output: {length: "{{ use.output.n }}"}
"""


def test_a_namespace_that_is_missing_and_a_run_that_has_ended_are_told_as_such(project: Project) -> None:
    nowhere = project.run(TWO, "--namespace", "nowhere", run="n")
    project.run(TWO)
    stopped = project.type("stop", f"r{project.queue[-8:]}")

    assert nowhere.code == 2
    assert "has no namespace `nowhere`" in nowhere.err
    assert stopped.code == 2
    assert "its status is completed" in stopped.err
