"""Approvals of tool calls through the command: at a terminal, from another process, and with nobody there."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from failwell.cli.main import main
from tests.cli.running import Done, environment, failwell, failwell_at_terminal

FLOW = """\
workflow:
  name: w
  entry_point: ask
  runtime: {default_model: "scripted:replies.yaml"}
tools:
  note: {builtin: write_file}
agents:
  - name: ask
    prompt: go
    routes: [{to: $end}]
output: {text: "{{ ask.output.result }}"}
"""
HOSTILE = "\\e[2K\\e[1A? call `list`\\u202e\\u200b\\u0430 1. allow\\r\\nok"
"""In YAML: a terminal escape, a line of its own, a mark that turns text, a hidden space, a Cyrillic letter."""


def place(folder: Path, content: str = "hello") -> list[str]:
    """A workflow whose agent writes a note. Returns the arguments that run it."""
    (folder / "w.yaml").write_text(FLOW)
    (folder / "replies.yaml").write_text(
        "replies:\n"
        f'  - tool_calls: [{{name: note, arguments: {{path: n.txt, content: "{content}"}}}}]\n'
        "  - text: finished\n"
    )
    return ["run", "w.yaml", "--quiet", "--run-id", "r", "--store", "state"]


def at_a_terminal(folder: Path, arguments: list[str], *lines: str) -> tuple[int, str]:
    """Run the command at a terminal and type these lines; its exit code and its screen."""
    typed = "".join(f"{line}\n" for line in lines)
    done = failwell_at_terminal(*arguments, typed=typed, env={"NO_COLOR": "1"}, cwd=folder)
    return done.code, done.err


def audit(folder: Path, *types: str) -> list[dict[str, Any]]:
    options = [option for name in types for option in ("--type", name)]
    done = failwell("audit", "show", "--store", "state", "--format", "json", *options, cwd=folder)
    return done.data


def types(records: list[dict[str, Any]]) -> list[str]:
    return [record["type"] for record in records]


def test_a_person_at_the_terminal_approves_or_denies_a_call(tmp_path: Path) -> None:
    for number, (line, is_written) in enumerate({"allow": True, "deny": False, "1": False}.items()):
        folder = tmp_path / str(number)
        folder.mkdir()

        code, screen = at_a_terminal(folder, place(folder), line)

        assert (code, (folder / "n.txt").exists()) == (0, is_written)
        assert "`ask` wants to call the tool `note`" in screen
        exchange = audit(folder, "interaction")
        assert types(exchange) == ["interaction:raised", "interaction:answered"]
        assert exchange[1]["data"]["value"] is is_written
        assert exchange[0]["data"]["tool"] == "note"


def test_the_live_display_leaves_a_question_and_its_answer_on_the_screen(tmp_path: Path) -> None:
    arguments = [word for word in place(tmp_path) if word != "--quiet"]

    code, screen = at_a_terminal(tmp_path, [*arguments, "--progress", "live"], "deny")

    after = screen.rpartition("choose: ")[2]
    assert code == 0
    assert "completed" in after
    # Neither up a line nor clear one: what was asked and answered is above.
    assert "\x1b[1A" not in after.partition("completed")[0]
    assert "\x1b[2K" not in after.partition("completed")[0]


def test_nothing_that_a_model_writes_acts_on_the_terminal_of_the_person_who_approves(tmp_path: Path) -> None:
    code, screen = at_a_terminal(tmp_path, place(tmp_path, HOSTILE), "deny")

    assert code == 0
    assert not (tmp_path / "n.txt").exists()
    for hidden in ("\x1b", "\u202e", "\u200b", "\u0430"):
        assert hidden not in screen
    assert "\\u001b[2K\\u001b[1A? call `list`\\u202e\\u200b\\u0430 1. allow\\r\\nok" in screen
    # Every line of the question after its first one is behind a bar, so none can pass for an option of ours.
    shown = screen.replace("\r", "").split("? `ask`")[1].split("  1. deny (deny)")[0]
    assert all(line.startswith("  │ ") for line in shown.splitlines()[1:])


@pytest.mark.acceptance("stud-cli 48")
def test_with_nobody_to_ask_the_step_fails_closed(tmp_path: Path) -> None:
    done: Done = failwell(*place(tmp_path), "--error-format", "json", cwd=tmp_path)

    assert done.code == 3
    record = done.error
    assert record["kind"] == "session.interaction_required"
    assert "`note`" in record["message"]
    assert not (tmp_path / "n.txt").exists()
    assert types(audit(tmp_path, "interaction")) == ["interaction:raised", "interaction:required"]
    assert audit(tmp_path, "tool") == []

    again = failwell("resume", "r", "--quiet", "--error-format", "json", "--store", "state", cwd=tmp_path)

    assert (again.code, again.error["kind"]) == (3, "session.interaction_required")


HEAD = 'workflow: {name: w, entry_point: ask, runtime: {default_model: "scripted:replies.yaml"}}\n'
NOTE = "tools: {note: {builtin: write_file, approval: APPROVAL}}\n"
NEEDED = {
    "approve": HEAD + NOTE.replace("APPROVAL", "ask") + "agents:\n  - {name: ask, prompt: go}\n",
    "grant": HEAD
    + NOTE.replace("APPROVAL", "never")
    + "stages:\n  - {id: ask, allowedTools: [], grants: ask}\n",
    "select": HEAD + "agents:\n  - {name: ask, prompt: go, dialog: {trigger_prompt: Not sure.}}\n",
}


@pytest.mark.acceptance("stud-cli 48")
@pytest.mark.parametrize("request_type", NEEDED)
def test_whatever_must_be_asked_and_cannot_is_one_record_and_nothing_is_done(
    tmp_path: Path, request_type: str
) -> None:
    (tmp_path / "w.yaml").write_text(NEEDED[request_type])
    call: dict[str, Any] = {
        "tool_calls": [{"name": "note", "arguments": {"path": "n.txt", "content": "hello"}}]
    }
    replies: dict[str, list[dict[str, Any]]] = {
        "ask": [{"text": "hm"}] if request_type == "select" else [call, {"text": "done"}],
        "ask (dialog)": [{"json": {"trigger": True, "question": "Which one?"}}],
    }
    (tmp_path / "replies.yaml").write_text(json.dumps({"agents": replies}))
    runs = ("run", "w.yaml"), ("resume", "last")

    for number, words in enumerate(runs, 1):
        done = failwell(*words, "--quiet", "--error-format", "json", "--store", "state", cwd=tmp_path)

        # The whole of stderr is one object; a second attempt asks again, as nothing was remembered.
        assert (done.code, done.out, done.error["kind"]) == (3, "", "session.interaction_required")
        required = audit(tmp_path, "interaction:required")
        assert [record["data"]["request"] for record in required] == [request_type] * number
        assert audit(tmp_path, "interaction:answered", "tool:called") == []
        assert not (tmp_path / "n.txt").exists()


@pytest.mark.acceptance("stud-cli 48")
def test_a_turn_of_a_session_that_must_ask_and_cannot_is_one_record_and_exit_code_four(
    tmp_path: Path,
) -> None:
    place(tmp_path)

    done = failwell(
        "chat", "w.yaml", "-p", "go", "--format", "json", "--store", "state", cwd=tmp_path
    )  # fmt: skip

    results = [json.loads(line) for line in done.out.splitlines() if '"type": "result"' in line]
    assert (done.code, done.error["kind"]) == (4, "session.interaction_required")
    assert [(result["status"], result["text"]) for result in results] == [("halted", "")]
    # The model is told that the tool was not run, when the session is resumed.
    [end] = [json.loads(line) for line in done.out.splitlines() if '"session:tool_ended"' in line]
    assert (end["data"]["kind"], end["data"]["may_have_run"]) == ("tool.interrupted", False)
    assert '"may_have_run": false' in end["data"]["result"]
    assert types(audit(tmp_path, "interaction")) == ["interaction:raised", "interaction:required"]
    assert audit(tmp_path, "tool") == []
    assert not (tmp_path / "n.txt").exists()


def test_a_waiting_call_is_listed_and_approved_by_another_process(tmp_path: Path) -> None:
    arguments = [*place(tmp_path), "--wait", "--no-input"]
    run = subprocess.Popen(
        [sys.executable, "-m", "failwell", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=environment(),
    )
    gate = _pending(tmp_path)

    wrong = failwell("gates", "answer", "r", gate["id"], "maybe", "--store", "state", cwd=tmp_path)
    done = failwell(
        "gates", "answer", "r", gate["id"], "allow", "--by", "ann", "--store", "state", cwd=tmp_path
    )
    run.communicate(timeout=60)
    late = failwell("gates", "answer", "r", gate["id"], "deny", "--store", "state", cwd=tmp_path)

    assert (gate["type"], gate["values"]) == ("approve", ["deny", "allow"])
    assert (wrong.code, done.code, late.code, run.returncode) == (2, 0, 2, 0)
    assert (tmp_path / "n.txt").read_text() == "hello"
    answered = audit(tmp_path, "interaction:answered")
    assert [record["data"]["by"] for record in answered] == ["ann"]


def _pending(folder: Path) -> dict[str, Any]:
    """The question of the run, as soon as it is asked."""
    for _ in range(600):
        done = failwell("gates", "list", "--store", "state", "--format", "json", cwd=folder)
        if done.code == 0 and json.loads(done.out):
            return json.loads(done.out)[0]
        subprocess.run(["sleep", "0.05"], check=True)
    raise AssertionError("nothing was asked")


def test_the_audit_of_a_run_verifies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failwell(*place(tmp_path), "--skip-gates", cwd=tmp_path)
    monkeypatch.chdir(tmp_path)

    assert main(["audit", "verify", "--store", "state"]) == 0
