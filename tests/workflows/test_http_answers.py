"""Answers over HTTP to a run in a process of its own: the token, the first answer, late and invalid answers."""

import http.client
import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import environment
from tests.sessions.terminal_process import Terminal
from tests.workflows.test_agent_approvals import audit, place, types


class Client:
    """Speaks to the server of one run."""

    def __init__(self, file: Path) -> None:
        place = json.loads(file.read_text())
        self.token = place["token"]
        self.host = place["url"].removeprefix("http://")

    def send(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        connection = http.client.HTTPConnection(self.host, timeout=20)
        content = None if body is None else json.dumps(body)
        sent = {"Authorization": f"Bearer {self.token}", **(headers or {})}
        connection.request(method, path, content, {name: value for name, value in sent.items() if value})
        reply = connection.getresponse()
        value = json.loads(reply.read())
        connection.close()
        return reply.status, value

    def question(self) -> dict[str, Any]:
        """The first question, as soon as it is asked."""
        for _ in range(2_000):
            _, body = self.send("GET", "/questions")
            if body["questions"]:
                return body["questions"][0]
        raise AssertionError("nothing was asked")


@contextmanager
def run(folder: Path, *arguments: str) -> Generator[tuple[Client, "subprocess.Popen[bytes]", Path]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "failwell", *arguments, "--answer-http"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=environment(),
    )
    assert process.stderr is not None
    line = process.stderr.readline().decode()
    file = Path(line.strip().rpartition("the token is in ")[2])
    try:
        yield Client(file), process, file
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.mark.acceptance("stud-cli 46", "stud-cli 47")
def test_a_call_is_approved_over_http_and_a_late_answer_is_a_conflict(tmp_path: Path) -> None:
    arguments = place(tmp_path)
    gated = (tmp_path / "w.yaml").read_text().replace("routes: [{to: $end}]", "routes: [{to: check}]")
    gate = "  - {name: check, type: human_gate, prompt: Fine?, options: [{label: yes, value: fine, route: $end}]}\n"
    (tmp_path / "w.yaml").write_text(gated.replace("output:", f"{gate}output:"))

    with run(tmp_path, *arguments) as (client, process, file):
        assert file.stat().st_mode & 0o777 == 0o600
        approval = client.question()
        path = f"/questions/{approval['id']}"
        invalid = client.send("POST", path, {"value": "maybe"})
        first = client.send("POST", path, {"value": True, "by": "ann"})
        late = client.send("POST", path, {"value": False, "by": "bob"})
        check = client.question()
        wrong = client.send("POST", f"/questions/{check['id']}", {"value": "other"})
        last = client.send("POST", f"/questions/{check['id']}", {"value": "fine", "by": "ann"})
        process.wait(timeout=60)

    assert (approval["type"], check["type"]) == ("approve", "gate")
    assert (invalid[0], first, wrong[0], last) == (422, (200, {"ok": True}), 422, (200, {"ok": True}))
    assert (late[0], late[1]["kind"]) == (409, "session.interaction_closed")
    assert process.returncode == 0
    assert (tmp_path / "n.txt").read_text() == "hello"
    assert not file.exists()
    # The next question may be raised before the late answer comes.
    assert sorted(types(audit(tmp_path, "interaction"))) == [
        "interaction:answered",
        "interaction:answered",
        "interaction:late",
        "interaction:raised",
        "interaction:raised",
    ]
    assert [record["data"]["by"] for record in audit(tmp_path, "interaction:answered")] == ["ann", "ann"]


def test_requests_without_the_token_of_a_browser_or_for_another_host_are_refused(tmp_path: Path) -> None:
    with run(tmp_path, *place(tmp_path)) as (client, _, _):
        question = client.question()
        path = f"/questions/{question['id']}"
        refused = [
            client.send("POST", path, {"value": True}, {"Authorization": ""})[0],
            client.send("POST", path, {"value": True}, {"Authorization": "Bearer guess"})[0],
            client.send("POST", path, {"value": True}, {"Origin": "http://127.0.0.1"})[0],
            client.send("POST", path, {"value": True}, {"Host": "rebound.example"})[0],
            client.send("GET", "/questions", None, {"Authorization": ""})[0],
        ]
        odd = [
            client.send("POST", path, ["value"])[0],
            client.send("POST", path, {})[0],
            client.send("GET", path)[0],
            client.send("GET", "/other")[0],
            client.send("POST", path, {"value": "x" * 300_000})[0],
        ]
        still_open = client.question()

        assert client.token not in json.dumps(question)
        assert client.host.startswith("127.0.0.1:")

    assert refused == [401, 401, 403, 403, 401]
    assert odd == [400, 422, 405, 404, 413]
    assert still_open["id"] == question["id"]
    assert not (tmp_path / "n.txt").exists()


@pytest.mark.slow
@pytest.mark.acceptance("stud-cli 47")
def test_an_answer_over_http_dismisses_the_question_at_the_terminal_and_one_there_is_late(
    tmp_path: Path,
) -> None:
    place(tmp_path)
    terminal = Terminal(tmp_path, "w.yaml", "--quiet", "--answer-http", command="run")
    client = Client(Path(terminal.expect("\n").strip().rpartition("the token is in ")[2]))
    question = client.question()
    terminal.expect("choose: ")

    answered = client.send("POST", f"/questions/{question['id']}", {"value": True, "by": "ann"})
    terminal.expect("this question needs no answer any more")
    terminal.type("deny\n")

    assert answered == (200, {"ok": True})
    assert terminal.end() == 0
    assert (tmp_path / "n.txt").read_text() == "hello"
    assert [record["data"]["by"] for record in audit(tmp_path, "interaction:answered")] == ["ann"]


@pytest.mark.slow
@pytest.mark.acceptance("stud-cli 47")
def test_a_terminal_that_is_gone_leaves_the_question_to_http(tmp_path: Path) -> None:
    place(tmp_path)
    terminal = Terminal(tmp_path, "w.yaml", "--quiet", "--answer-http", command="run")
    client = Client(Path(terminal.expect("\n").strip().rpartition("the token is in ")[2]))
    question = client.question()
    terminal.expect("choose: ")

    # The end of the input: nobody is at the terminal any more.
    terminal.type("\x04")
    assert client.question()["id"] == question["id"]
    answered = client.send("POST", f"/questions/{question['id']}", {"value": True, "by": "ann"})

    assert answered == (200, {"ok": True})
    assert terminal.end() == 0
    assert (tmp_path / "n.txt").read_text() == "hello"


TWO = """\
workflow:
  name: w
  entry_point: both
  runtime: {default_model: "scripted:replies.yaml"}
tools:
  note: {builtin: write_file}
agents:
  - {name: x, prompt: go}
  - {name: y, prompt: go}
parallel:
  - {name: both, agents: [x, y], routes: [{to: $end}]}
"""


def two_agents(folder: Path) -> None:
    """A workflow with two agents that write a note at the same time."""
    (folder / "w.yaml").write_text(TWO)
    calls = {
        name: [
            {"tool_calls": [{"name": "note", "arguments": {"path": f"{name}.txt", "content": "hello"}}]},
            {"text": "finished"},
        ]
        for name in "xy"
    }
    (folder / "replies.yaml").write_text(json.dumps({"agents": calls}))


@pytest.mark.slow
@pytest.mark.acceptance("stud-cli 46")
def test_after_a_time_out_the_next_question_is_shown_at_the_terminal_and_a_late_answer_is_refused(
    tmp_path: Path,
) -> None:
    two_agents(tmp_path)
    options = ("--quiet", "--answer-http", "--answer-timeout", "6s")
    terminal = Terminal(tmp_path, "w.yaml", *options, command="run")
    client = Client(Path(terminal.expect("\n").strip().rpartition("the token is in ")[2]))
    first, _ = _two_questions(client)

    shown = [terminal.expect("choose: ")]
    between = terminal.expect("this question needs no answer any more")
    shown.append(terminal.expect("choose: "))
    late = client.send("POST", f"/questions/{first}", {"value": True, "by": "bob"})
    terminal.type("allow\n")
    code = terminal.end()

    # One question at a time: the second one is shown when the first is over.
    asked = [text.count("wants to call the tool `note`") for text in (shown[0], between, shown[1])]
    assert (code, asked) == (0, [1, 0, 1])
    assert (late[0], late[1]["kind"]) == (409, "session.interaction_closed")
    assert len(list(tmp_path.glob("?.txt"))) == 1
    ends = ("interaction:timed_out", "interaction:late", "interaction:answered")
    assert types(audit(tmp_path, *ends)) == list(ends)
    [denied] = audit(tmp_path, "tool:denied")
    assert denied["data"]["reason"] == "approval_timeout"


@pytest.mark.slow
@pytest.mark.acceptance("stud-cli 46")
def test_a_question_that_times_out_is_a_no_and_the_next_one_is_shown_for_as_long(tmp_path: Path) -> None:
    two_agents(tmp_path)
    arguments = ["run", "w.yaml", "--quiet", "--answer-timeout", "4s", "--store", "state"]

    with run(tmp_path, *arguments) as (client, process, _):
        first, second = _two_questions(client)
        while first in (ids := [entry["id"] for entry in client.send("GET", "/questions")[1]["questions"]]):
            pass
        late = client.send("POST", f"/questions/{first}", {"value": True, "by": "bob"})
        in_time = client.send("POST", f"/questions/{second}", {"value": True, "by": "ann"})
        process.wait(timeout=60)

    assert ids == [second]
    assert (late[0], late[1]["kind"]) == (409, "session.interaction_closed")
    assert in_time == (200, {"ok": True})
    assert process.returncode == 0
    assert types(audit(tmp_path, "interaction")) == [
        "interaction:raised",
        "interaction:raised",
        "interaction:timed_out",
        "interaction:late",
        "interaction:answered",
    ]
    [denied] = audit(tmp_path, "tool:denied")
    assert denied["data"]["reason"] == "approval_timeout"
    assert len(list(tmp_path.glob("?.txt"))) == 1


def _two_questions(client: Client) -> list[str]:
    for _ in range(2_000):
        _, body = client.send("GET", "/questions")
        if len(body["questions"]) == 2:
            return [entry["id"] for entry in body["questions"]]
    raise AssertionError("nothing was asked")
