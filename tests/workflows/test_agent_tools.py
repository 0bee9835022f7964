"""Tools of agents through the command: failures, missing capabilities, cancels, allow-lists, limits, repeats."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Done, environment, failwell, failwell_process
from tests.workflows.test_agent_approvals import at_a_terminal, audit, types
from tests.workflows.test_agent_nodes import seen_by_model

HEAD = """\
workflow:
  name: w
  entry_point: ask
  runtime: {default_model: "scripted:replies.yaml"}
"""
ASK = "agents:\n  - {name: ask, prompt: go, routes: [{to: $end}]}\n"
RUN = ("run", "w.yaml", "--quiet", "--error-format", "json", "--run-id", "r", "--store", "state")


def write(folder: Path, steps: str, *replies: dict[str, Any]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "w.yaml").write_text(HEAD + steps)
    (folder / "replies.yaml").write_text(json.dumps({"replies": replies}))


def run(folder: Path, steps: str, *replies: dict[str, Any]) -> Done:
    write(folder, steps, *replies)
    return failwell(*RUN, cwd=folder)


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


def report(folder: Path) -> dict[str, Any]:
    """The failure of the run, as it was recorded."""
    lines = (folder / "state/runs/r/errors.jsonl").read_text().splitlines()
    recorded: dict[str, Any] = json.loads(lines[-1])["report"]
    return recorded


def tool_lines(folder: Path) -> list[str]:
    """What `runs logs` says about tools."""
    log = failwell("runs", "logs", "r", "--store", "state", cwd=folder).out
    return [line.partition("tool ")[2] for line in log.splitlines() if "tool " in line]


# ---------------------------------------------------------------- failures


@pytest.mark.acceptance("relavium 64")
def test_what_a_tool_raises_is_a_typed_failure_and_its_text_is_for_operators(tmp_path: Path) -> None:
    (tmp_path / "raising_tools.py").write_text(
        "from failwell.errors import ToolTransient\n\n"
        "def broken() -> str:\n    raise RuntimeError('the password of the database is swordfish')\n\n"
        "def busy() -> str:\n    raise ToolTransient(kind='tool.busy') from OSError('swordfish')\n"
    )
    seen: dict[str, tuple[str, bool]] = {}
    for name in ("broken", "busy"):
        step = f"tools: {{t: {{python: 'raising_tools:{name}'}}}}\nagents:\n  - {{name: ask, type: tool, tool: t}}\n"

        done = run(tmp_path, step)

        failed = report(tmp_path)
        seen[name] = failed["kind"], failed["retryable"]
        assert done.code == 3
        assert "swordfish" not in done.out + done.err
        (tmp_path / "state").rename(tmp_path / f"state-{name}")

    assert seen == {"broken": ("tool.failed", False), "busy": ("tool.busy", True)}


@pytest.mark.acceptance("relavium 64")
def test_a_capability_that_is_missing_ends_the_step_and_is_named(tmp_path: Path) -> None:
    (tmp_path / "lacking_tools.py").write_text(
        "from failwell.errors import ToolTerminal\n\n"
        "def draw() -> str:\n"
        "    raise ToolTerminal(kind='tool.unavailable', details={'tool': 'draw', 'capability': 'display'})\n"
    )
    tools = 'tools: {draw: {python: "lacking_tools:draw", effect: read}}\n'

    done = run(tmp_path, tools + ASK, call("draw"), {"text": "never"})

    failed = report(tmp_path)
    assert done.code == 3
    assert (failed["kind"], failed["category"], failed["retryable"]) == ("tool.unavailable", "fatal", False)
    assert (failed["details"]["tool"], failed["details"]["capability"]) == ("draw", "display")
    assert "`draw`" in failed["message"]


@pytest.mark.acceptance("relavium 64")
def test_a_run_that_is_cancelled_while_a_tool_runs_is_cancelled_and_did_not_fail(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    tools = 'tools: {slow: {command: [sh, -c, "echo $$ > pipe; sleep 617"], effect: read}}\n'
    write(tmp_path, tools + ASK, call("slow"), {"text": "never"})
    process = subprocess.Popen(
        [sys.executable, "-m", "failwell", *RUN],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    (tmp_path / "pipe").read_text()

    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)

    shown = failwell("runs", "show", "r", "--format", "json", "--store", "state", cwd=tmp_path).data
    assert process.returncode == 130
    assert shown["status"] == "cancelled"
    assert not (tmp_path / "state/runs/r/errors.jsonl").exists()


@pytest.mark.slow
def test_what_a_library_of_a_tool_logs_is_withheld_and_what_its_author_logs_is_shown(tmp_path: Path) -> None:
    library = tmp_path / "site-packages"
    library.mkdir()
    (library / "chatty.py").write_text(
        "import logging\n\ndef ask() -> None:\n"
        "    for _ in range(2):\n        logging.getLogger('chatty').error('the model answered swordfish-77')\n"
    )
    (tmp_path / "chatty_tools.py").write_text(
        "import logging, sys\nsys.path.insert(0, 'site-packages')\nimport chatty\n\n"
        "def look() -> str:\n    chatty.ask()\n    logging.getLogger('own').warning('the disk is nearly full')\n"
        "    raise RuntimeError('no')\n"
    )
    step = "tools: {t: {python: 'chatty_tools:look'}}\nagents:\n  - {name: ask, type: tool, tool: t}\n"
    write(tmp_path, step)
    command = ("run", "w.yaml", "--quiet", "--store", "state")

    text = failwell_process(*command, cwd=tmp_path)
    as_json = failwell_process(*command, "--error-format", "json", cwd=tmp_path)
    full = failwell_process(*command, cwd=tmp_path, env={"FAILWELL_TRACEBACK": "full"})

    withheld = "error: `chatty` logged a message; FAILWELL_TRACEBACK=full shows it"
    assert text.err.splitlines()[:2] == [withheld, "warning: the disk is nearly full"]
    assert "swordfish" not in text.err
    assert as_json.error["kind"] == "tool.failed"
    assert full.err.count("error: the model answered swordfish-77") == 2


def test_what_a_tool_prints_is_not_in_the_result_of_the_command(tmp_path: Path) -> None:
    (tmp_path / "printing_tools.py").write_text(
        "def look() -> str:\n    print('looking around')\n    return 'seen'\n"
    )
    step = "tools: {t: {python: 'printing_tools:look'}}\nagents:\n  - {name: ask, type: tool, tool: t}\n"

    done = run(tmp_path, step)

    assert (done.data, done.err) == ({"result": "seen"}, "looking around\n")


# ---------------------------------------------------------------- denials and allow-lists

VALUE = "value-4711"
DENIED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "an ungranted tool": ("note", "tools: [look]", {"text": VALUE}),
    "an unlisted command": ("shell", "tools: [shell]", {"command": f"touch {VALUE}"}),
    "a URL that is not HTTPS": ("fetch", "tools: [fetch]", {"url": f"http://127.0.0.1:PORT/{VALUE}"}),
    "a commit that nobody approved": ("commit", "tools: [commit]", {"message": VALUE}),
}
HOST_TOOLS = """\
tools:
  note: {python: "host_tools:note"}
  look: {python: "host_tools:note", effect: read}
  shell: {builtin: run_command, allow: ["git status"], approval: never}
  fetch: {builtin: http_request, allow: ["127.0.0.1:PORT"], allow_private: true, approval: never}
  commit: {command: [touch, "{message}"], approval: ask}
"""


@pytest.mark.acceptance("relavium 63")
@pytest.mark.parametrize("what", DENIED)
def test_what_is_not_allowed_is_denied_for_good_before_the_host_is_called_and_names_no_value(
    tmp_path: Path, what: str
) -> None:
    tool, granted, arguments = DENIED[what]
    (tmp_path / "host_tools.py").write_text(
        "from pathlib import Path\n\ndef note(text: str) -> str:\n    Path(text).touch()\n    return text\n"
    )
    requests: list[Any] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        filled = json.loads(json.dumps(arguments).replace("PORT", port))
        tools = HOST_TOOLS.replace("PORT", port)
        agent = f"agents:\n  - {{name: ask, prompt: go, {granted}}}\n"
        write(tmp_path, tools + agent, call(tool, **filled), {"text": "without it"})
        with seen_by_model(requests):
            done = failwell(*RUN, "--skip-gates", cwd=tmp_path)
        server.settimeout(0)
        # Nobody has connected.
        with pytest.raises(BlockingIOError):
            server.accept()

    [denied] = audit(tmp_path, "tool:denied")
    seen = requests[1][-1].parts[0].content
    assert done.data == {"result": "without it"}
    assert (denied["data"]["tool"], denied["data"]["kind"]) == (tool, "tool.denied")
    assert audit(tmp_path, "tool:called") == []
    assert not (tmp_path / VALUE).exists()
    failure = json.loads(seen)["error"]
    assert (failure["kind"], failure["retryable"]) == ("tool.denied", False)
    assert VALUE not in seen + json.dumps([denied, tool_lines(tmp_path)])


@pytest.mark.acceptance("relavium 63")
@pytest.mark.parametrize("what", [name for name in DENIED if name != "an ungranted tool"])
def test_a_step_whose_call_is_not_allowed_fails_for_good_and_names_no_value(
    tmp_path: Path, what: str
) -> None:
    tool, _, arguments = DENIED[what]
    (tmp_path / "host_tools.py").write_text("def note(text: str) -> str:\n    return text\n")
    step = {"name": "ask", "type": "tool", "tool": tool, "arguments": arguments, "retry": {"max_attempts": 3}}
    write(tmp_path, f"{HOST_TOOLS}agents: {json.dumps([step])}\n".replace("PORT", "9"))

    done = failwell(*RUN, "--skip-gates", cwd=tmp_path)

    failed = report(tmp_path)
    assert (done.code, failed["kind"], failed["retryable"]) == (3, "tool.denied", False)
    assert audit(tmp_path, "tool:called", "node:retrying") == []
    assert not (tmp_path / VALUE).exists()
    assert VALUE not in done.out + done.err + json.dumps(failed)


@pytest.mark.acceptance("relavium 65")
def test_a_command_is_compared_as_a_whole_whoever_sets_it(tmp_path: Path) -> None:
    shell = 'tools: {shell: {builtin: run_command, allow: ["echo test"], approval: never FIXED}}\n'
    hostile = ["echo test --x", "echo", "echo test; id", "ECHO test"]
    calls = {
        "tool_calls": [{"name": "shell", "arguments": {"command": line}} for line in ("echo test", *hostile)]
    }

    by_model = run(tmp_path / "model", shell.replace(" FIXED", "") + ASK, calls, {"text": "done"})
    by_file = run(
        tmp_path / "file",
        shell.replace(" FIXED", ", fixed: {command: echo test --x}") + ASK,
        call("shell"),
        {"text": "done"},
    )
    # What the file sets is not the model's to set: its own command is ignored, and that of the file runs.
    ignored = run(
        tmp_path / "ignored",
        shell.replace(" FIXED", ", fixed: {command: echo test}") + ASK,
        call("shell", command="rm -rf /"),
        {"text": "done"},
    )

    assert (by_model.code, by_file.code, ignored.code) == (0, 0, 0)
    assert tool_lines(tmp_path / "model") == ["shell: done", *["shell: tool.denied"] * len(hostile)]
    assert tool_lines(tmp_path / "file") == ["shell: tool.denied"]
    assert tool_lines(tmp_path / "ignored") == ["shell: done"]


# ---------------------------------------------------------------- limits and repeats

ADD = 'tools: {add: {python: "adding_tools:add", effect: read}}\n'


def adding(folder: Path) -> None:
    (folder / "adding_tools.py").write_text("def add(a: int, b: int) -> int:\n    return a + b\n")


@pytest.mark.acceptance("relavium 66")
def test_an_endless_tool_loop_ends_after_seventeen_calls_of_the_model(tmp_path: Path) -> None:
    adding(tmp_path)

    done = run(tmp_path, ADD + ASK, *[call("add", a=number, b=1) for number in range(40)])

    assert (done.code, report(tmp_path)["kind"]) == (3, "limit.turn_limit")
    assert len(audit(tmp_path, "model:called")) == 17


@pytest.mark.acceptance("relavium 66")
def test_three_malformed_rounds_are_corrected_and_the_fourth_ends_the_step(tmp_path: Path) -> None:
    wrong = [call("nothing"), call("add", a=1), call("add", a="x", b=1), call("add", a=1, b=1, c=1)]
    for folder in ("three", "four"):
        (tmp_path / folder).mkdir()
        adding(tmp_path / folder)

    corrected: list[Any] = []
    with seen_by_model(corrected):
        three = run(tmp_path / "three", ADD + ASK, *wrong[:3], call("add", a=1, b=2), {"text": "done"})
    four = run(tmp_path / "four", ADD + ASK, *wrong, {"text": "never"})

    failed = report(tmp_path / "four")
    assert three.data == {"result": "done"}
    fed_back = [json.loads(request[-1].parts[0].content)["error"]["kind"] for request in corrected[1:4]]
    assert fed_back == ["tool.not_found", "tool.input_invalid", "tool.input_invalid"]
    assert tool_lines(tmp_path / "three")[-1] == "add: done"
    assert four.code == 3
    assert (failed["kind"], failed["retryable"]) == ("tool.failed", False)
    assert len(audit(tmp_path / "four", "model:called")) == 4


@pytest.mark.acceptance("stud-cli 22")
def test_a_person_is_asked_once_about_a_call_that_is_repeated(tmp_path: Path) -> None:
    (tmp_path / "busy_tools.py").write_text(
        "from pathlib import Path\nfrom failwell.errors.facts import NotBefore\nfrom failwell.errors import ToolTransient\n\n"
        "AT_ONCE = NotBefore(after=0.0, source='tool')\n\n"
        "def send(text: str) -> str:\n"
        "    with Path('sent.txt').open('a') as file:\n        file.write(text)\n"
        "    if len(Path('sent.txt').read_text()) < 3:\n        raise ToolTransient(kind='tool.busy', not_before=AT_ONCE)\n"
        "    return 'sent'\n"
    )
    write(
        tmp_path,
        'tools: {send: {python: "busy_tools:send", effect: idempotent, approval: ask, max_attempts: 3}}\n'
        + ASK,
        call("send", text="x"),
        {"text": "done"},
    )

    code, screen = at_a_terminal(tmp_path, [*RUN], "allow")

    assert code == 0
    assert screen.count("wants to call the tool `send`") == 1
    assert (tmp_path / "sent.txt").read_text() == "xxx"
    assert types(audit(tmp_path, "interaction", "tool")) == [
        "interaction:raised",
        "interaction:answered",
        "tool:called",
        "tool:failed",
        "tool:called",
        "tool:failed",
        "tool:called",
        "tool:ended",
    ]
