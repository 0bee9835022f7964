"""What the audit holds of runs: every call before it is made, every attempt, every retry, every ignored error."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

import pytest

from failwell import workflows
from failwell.store.event import Event
from failwell.store.sqlite.run_store import SqliteStore
from failwell.testing import lab
from failwell.testing.laboratory.lab_reply import LabCall, Reply, as_json
from tests.cli.running import Done, environment, failwell
from tests.sdks.plugins.scripted_lab import lab_reply, scripted_lab

HEAD = """\
workflow:
  name: w
  entry_point: ask
  runtime: {default_model: "scripted:replies.yaml"}
"""
FLOW = f"""{HEAD}\
tools:
  count: {{python: "own_tools:count", effect: read, max_attempts: 3}}
  shell: {{builtin: run_command, allow: ["echo hi"], approval: never}}
agents:
  - name: ask
    prompt: the prompt that nobody may read
    routes: [{{to: $end}}]
output: {{text: "{{{{ ask.output.result }}}}"}}
"""
TOOLS = """\
from pathlib import Path


def count(text: str) -> int:
    seen = Path("seen.txt")
    calls = seen.read_text().count("x") if seen.exists() else 0
    seen.write_text("x" * (calls + 1))
    if calls < 1:
        raise ConnectionRefusedError("no answer yet")
    return len(text)
"""
REPLIES = """\
replies:
  - fail: provider.overloaded
    retry_after: 0
  - tool_calls:
      - {name: count, arguments: {text: argument that nobody may read}}
      - {name: shell, arguments: {command: "echo hi; id"}}
  - text: the answer that nobody may read
"""


def place(folder: Path, replies: str = REPLIES, flow: str = FLOW) -> Path:
    (folder / "w.yaml").write_text(flow)
    (folder / "own_tools.py").write_text(TOOLS)
    (folder / "replies.yaml").write_text(replies)
    return folder


def run(folder: Path, *options: str) -> Done:
    return failwell(
        "run", "w.yaml", "--quiet", "--error-format", "json", "--store", "state", *options, cwd=folder,
        env={"OPENAI_API_KEY": "k"},
    )  # fmt: skip


def audit(folder: Path, *types: str) -> list[dict[str, Any]]:
    options = [option for name in types for option in ("--type", name)]
    done = failwell("audit", "show", "--store", "state", "--format", "json", *options, cwd=folder)
    return done.data


def test_every_call_is_recorded_before_it_is_made_and_with_its_end(tmp_path: Path) -> None:
    done = run(place(tmp_path))

    assert done.code == 0
    records = audit(tmp_path)
    assert [record["type"] for record in records] == [
        "turn:started",
        "model:called",
        "model:failed",
        "model:called",
        "model:answered",
        "tool:called",
        "tool:failed",
        "tool:called",
        "tool:ended",
        "tool:denied",
        "model:called",
        "model:answered",
        "turn:ended",
    ]
    assert [record["id"] for record in records] == list(range(1, 14))
    assert {record["data"]["node"] for record in records} == {"ask"}
    assert "nobody may read" not in json.dumps(records)
    assert failwell("audit", "verify", "--store", "state", cwd=tmp_path).code == 0


@pytest.mark.acceptance("stud-cli 23")
def test_each_attempt_of_a_model_and_a_tool_has_its_number_kind_delay_and_reason(tmp_path: Path) -> None:
    run(place(tmp_path))

    model, tool = (record["data"] for record in audit(tmp_path, "model:failed", "tool:failed"))

    assert (model["attempt"], model["kind"], model["delay"]) == (1, "provider.overloaded", 0.0)
    assert model["reason"].startswith("retrying at once")
    assert (tool["attempt"], tool["tool"]) == (1, "count")
    assert tool["kind"]
    assert tool["delay"] >= 0
    assert tool["reason"].startswith("retrying in")


@pytest.mark.acceptance("stud-cli 23")
def test_each_retry_of_a_step_has_its_number_kind_delay_and_reason(tmp_path: Path) -> None:
    script = f"""\
workflow: {{name: w, entry_point: one}}
agents:
  - name: one
    type: script
    command: {sys.executable}
    args: ["-c", "raise SystemExit(7)"]
    routes:
      - {{on_error: true, retry: {{max: 1, initial_seconds: 0}}}}
      - {{to: $end}}
"""
    place(tmp_path, flow=script)

    run(tmp_path)

    [record] = audit(tmp_path, "node:retrying")
    data = record["data"]
    assert (data["attempt"], data["kind"], data["delay"]) == (1, "internal.script_error", 0)
    assert data["reason"]


OVERLOADED = "{fail: provider.overloaded, retry_after: 0}"
BUSY = """\
from failwell.errors.facts import NotBefore
from failwell.errors import ToolTransient


def count(text: str = "") -> int:
    raise ToolTransient(kind="tool.busy", not_before=NotBefore(after=0.0, source="tool"))
"""
RETRIES: dict[str, tuple[str, str, str]] = {
    "a model": ("model:failed", "provider.overloaded", "agents: [{name: ask, prompt: p, max_attempts: 3}]"),
    "a model of a session": (
        "model:failed",
        "provider.overloaded",
        "agents: [{name: ask, prompt: p, max_attempts: 3}]",
    ),
    "a tool": (
        "tool:failed",
        "tool.busy",
        (
            "tools: {count: {python: 'own_tools:count', effect: read, max_attempts: 3}}\n"
            "agents: [{name: ask, type: tool, tool: count}]"
        ),
    ),
    "a step": (
        "node:retrying",
        "provider.overloaded",
        "agents: [{name: ask, prompt: p, max_attempts: 1, retry: {max_attempts: 3, delay_seconds: 0}}]",
    ),
    "a stage": (
        "node:retrying",
        "validation.assertion_failed",
        (
            "stages:\n  - id: ask\n    assert: [{verdict: retry, feedback: again}]\n"
            "    retryPolicy: {maxAttempts: 3, backoff: none}"
        ),
    ),
}


@pytest.mark.acceptance("stud-cli 23")
@pytest.mark.parametrize("what", RETRIES)
def test_each_attempt_of_any_retry_has_its_number_kind_delay_and_reason(tmp_path: Path, what: str) -> None:
    type_, kind, steps = RETRIES[what]
    replies = "{text: x}" if what == "a stage" else ", ".join([OVERLOADED] * 3)
    place(tmp_path, replies=f"replies: [{replies}]\n", flow=f"{HEAD}{steps}\n")
    (tmp_path / "own_tools.py").write_text(BUSY)

    if "session" in what:
        done = failwell("chat", "w.yaml", "-p", "go", "--store", "state", cwd=tmp_path)
    else:
        done = run(tmp_path)

    attempts = [record["data"] for record in audit(tmp_path, type_)]
    assert done.code != 0
    # What was given up has no delay; a step that is given up has failed and is not retried.
    known = [(number, kind, 0.0) for number in (1, 2)]
    last = [] if type_ == "node:retrying" else [(3, kind, None)]
    assert [(one["attempt"], one["kind"], one.get("delay")) for one in attempts] == [*known, *last]
    assert [one["reason"].partition(" ")[0] for one in attempts] == ["retrying", "retrying", "giving"][
        : len(attempts)
    ]
    assert failwell("audit", "verify", "--store", "state", cwd=tmp_path).code == 0


def test_a_call_that_cannot_be_recorded_is_not_made(tmp_path: Path) -> None:
    place(tmp_path)
    SqliteStore(tmp_path / "state").close()
    with closing(sqlite3.connect(tmp_path / "state" / "journal.db")) as connection, connection:
        connection.execute(
            "CREATE TRIGGER full BEFORE INSERT ON audit WHEN NEW.type = 'tool:called'"
            " BEGIN SELECT RAISE(ABORT, 'full'); END"
        )

    done = run(tmp_path)

    assert done.code != 0
    assert not (tmp_path / "seen.txt").exists()
    assert "tool:ended" not in [record["type"] for record in audit(tmp_path)]


@pytest.mark.acceptance("stud-cli 59")
def test_the_audit_of_a_provider_error_holds_no_key_and_the_user_sees_one_line(tmp_path: Path) -> None:
    pytest.importorskip("openai")
    key = "sk-proj-9Qm2vXw7Lr4Tz8Kd1Nc6"
    with lab() as fake:
        flow = HEAD.replace(
            'default_model: "scripted:replies.yaml"',
            f'default_model: "gpt-4o", provider: {{name: openai-chat, base_url: "{fake.url("openai", "bad_key")}", api_key: {key}}}',
        )
        place(tmp_path, flow=f"{flow}agents:\n  - {{name: ask, prompt: go, routes: [{{to: $end}}]}}\n")
        done = run(tmp_path)

    shown = json.loads(done.err.splitlines()[-1])
    assert shown["kind"] == "provider.auth"
    assert "\n" not in shown["message"]
    assert len(shown["message"]) <= 240
    records = audit(tmp_path)
    assert [record["data"]["kind"] for record in records if record["type"] == "model:failed"] == [
        "provider.auth"
    ]
    assert key not in json.dumps(records) + done.err + done.out


@pytest.mark.acceptance("stud-cli 59")
def test_under_the_policy_full_the_audit_holds_the_text_of_ten_lines_with_only_the_key_masked(
    tmp_path: Path,
) -> None:
    key = "sk-proj-9Qm2vXw7Lr4Tz8Kd1Nc6"
    lines = [f"row {number}: the key {key} was refused" for number in range(10)]
    place(tmp_path)
    (tmp_path / "own_tools.py").write_text(
        f"def count(text: str) -> int:\n    raise RuntimeError({chr(10).join(lines)!r})\n"
    )

    done = failwell("run", "w.yaml", "--store", "state", cwd=tmp_path, env={"FAILWELL_TRACEBACK": "full"})

    texts = [record["data"]["text"] for record in audit(tmp_path, "tool:failed")]
    assert "row" not in done.out + done.err
    assert len(texts) == 1
    assert all(f"row {number}: the key [redacted] was refused" in texts[0] for number in range(10))
    assert key not in json.dumps(audit(tmp_path))


@pytest.mark.acceptance("stud-cli 59")
@pytest.mark.parametrize("policy", ["strict", "full"])
def test_of_ten_lines_of_a_provider_the_user_and_the_model_see_none_and_nobody_the_key(
    tmp_path: Path, policy: str
) -> None:
    pytest.importorskip("openai")
    key = "sk-proj-9Qm2vXw7Lr4Tz8Kd1Nc6"
    lines = "\n".join(f"line {number} of the provider about {key}" for number in range(10))

    def refuse(_dialect: str, _call: LabCall) -> Reply:
        return as_json(400, {"error": {"message": lines, "type": "invalid_request_error"}})

    with scripted_lab("openai", refuse, lab_reply("ok")) as server:
        flow = HEAD.replace(
            'default_model: "scripted:replies.yaml"',
            f'default_model: "gpt-4o", provider: {{name: openai-chat, base_url: "{server.url}", api_key: {{env: LAB_KEY}}}}',
        )
        place(tmp_path, flow=f"{flow}agents:\n  - {{name: ask, prompt: go}}\n")
        environ = {"FAILWELL_TRACEBACK": policy, "LAB_KEY": key}
        failed = failwell("chat", "w.yaml", "-p", "one", "--store", "state", cwd=tmp_path, env=environ)
        answered = failwell("chat", "--continue", "-p", "two", "--store", "state", cwd=tmp_path, env=environ)

    header, kind, *_ = failed.err.splitlines()
    records = audit(tmp_path, "model:failed")
    assert (failed.code, answered.code, answered.out) == (1, 0, "Hello from the lab.\n")
    # A header of ours and a line with the kind; no word of the provider.
    assert header.startswith("error: ")
    assert len(header) <= 240
    assert "provider.bad_request" in kind
    assert "of the provider about" not in failed.out + failed.err
    # The model is called again without what the provider said.
    assert [message["role"] for message in server.requests[1]["messages"]] == ["user", "user"]
    assert "of the provider" not in json.dumps(server.requests)
    assert [record["data"]["kind"] for record in records] == ["provider.bad_request"]
    assert ("status_code: 400" in records[0]["data"]["text"]) is (policy == "full")
    assert "line 9 of the provider" not in json.dumps(audit(tmp_path))
    stored = [file.read_bytes() for file in (tmp_path / "state").rglob("*") if file.is_file()]
    assert not [content for content in (*stored, failed.err.encode()) if key.encode() in content]


@pytest.mark.acceptance("stud-cli 60")
def test_a_watcher_that_raises_changes_nothing_and_is_recorded_once(tmp_path: Path) -> None:
    place(tmp_path, replies="replies: [{text: hello}]\n")
    seen: list[str] = []
    calls: list[str] = []

    def watch(event: Event) -> None:
        calls.append(event.type)
        if len(calls) == 1:
            raise RuntimeError("the sink is gone")
        seen.append(event.type)

    result = workflows.run(tmp_path / "w.yaml", store=tmp_path / "state", on_event=watch)

    assert result.status == "completed"
    assert seen[-1] == "run:completed"
    [record] = audit(tmp_path, "error:suppressed")
    assert record["data"]["reason"]
    assert record["data"]["cause"].startswith("RuntimeError (")
    assert record["run"] == result.id


MACHINE = """\
import logging

from failwell.workflows import Stage, StateMachine


class Raising(logging.Handler):
    def emit(self, record):
        open("logged.txt", "a").write("x")
        raise RuntimeError("the log is gone")


logging.getLogger("failwell").addHandler(Raising())
machine = StateMachine(
    name="m", stages=[Stage(id="a", prompt="go")], runtime={"default_model": "scripted:replies.yaml"}
)
"""


def _with_closed(stream: Literal["stdout", "stderr"], folder: Path, *arguments: str) -> Done:
    """Run the command with a stream that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "failwell", *arguments, "--store", "state"],
        stdout=writer if stream == "stdout" else subprocess.PIPE,
        stderr=writer if stream == "stderr" else subprocess.PIPE,
        text=True,
        check=False,
        cwd=folder,
        env=environment(),
    )
    os.close(writer)
    return Done(done.returncode, done.stdout or "", done.stderr or "")


@pytest.mark.slow
@pytest.mark.acceptance("stud-cli 60")
def test_a_run_whose_progress_and_log_cannot_be_written_is_not_affected_and_records_it_once(
    tmp_path: Path,
) -> None:
    place(tmp_path, replies="replies: [{text: hello}]\n")
    (tmp_path / "raising_machine.py").write_text(MACHINE)

    done = _with_closed(
        "stderr", tmp_path, "run", "raising_machine.py", "--progress", "plain", "--run-id", "r"
    )

    types = [
        json.loads(line)["type"]
        for line in failwell("runs", "export", "r", "--store", "state", cwd=tmp_path).out.splitlines()
    ]
    [record] = audit(tmp_path, "error:suppressed")
    assert (done.code, done.data) == (0, {"result": "hello"})
    assert types[-1] == "run:completed"
    assert record["run"] == "r"
    assert record["data"]["reason"] == "a watcher of the run failed and was passed over"
    assert record["data"]["cause"].startswith("BrokenPipeError (")
    # Both sinks were asked: the one for progress, and the one for the log of that failure.
    assert (tmp_path / "logged.txt").read_text() == "x"


@pytest.mark.slow
@pytest.mark.acceptance("stud-cli 60")
def test_a_turn_whose_events_cannot_be_printed_is_not_affected_and_records_it_once(tmp_path: Path) -> None:
    place(tmp_path, replies="replies: [{text: hello}]\n")

    _with_closed("stdout", tmp_path, "chat", "w.yaml", "-p", "go", "--format", "json")

    shown = failwell("sessions", "show", "last", "--format", "json", "--store", "state", cwd=tmp_path).data
    [record] = audit(tmp_path, "error:suppressed")
    assert shown["conversation"] == [{"user": "go"}, {"agent": "hello"}]
    assert (shown["status"], record["run"]) == ("closed", shown["id"])
    assert record["data"]["cause"].startswith("BrokenPipeError (")


@pytest.mark.slow
def test_a_run_whose_errors_nobody_reads_ends_with_its_own_exit_code(
    tmp_path: Path,
) -> None:
    place(tmp_path, replies="replies: [{fail: provider.auth}]\n")

    failed = _with_closed("stderr", tmp_path, "run", "w.yaml", "--run-id", "r")

    assert (failed.code, failed.out) == (3, "")
    assert (tmp_path / "state/runs/r/errors.jsonl").exists()


def test_the_audit_of_one_run_is_shown_by_its_id_and_by_type(tmp_path: Path) -> None:
    place(tmp_path)
    run(tmp_path, "--run-id", "first")
    run(tmp_path, "--run-id", "second")

    one = failwell(
        "audit", "show", "first", "--type", "tool", "--store", "state", "--format", "json", cwd=tmp_path
    )

    rows: Sequence[dict[str, Any]] = one.data
    assert {row["run"] for row in rows} == {"first"}
    assert {row["type"].partition(":")[0] for row in rows} == {"tool"}
