"""Questions after failures, at a real terminal: call the tool again, other arguments, another key, a sign-in."""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import parse_qs
from urllib.request import Request, urlopen

import pytest

from failwell.testing import lab
from tests.cli.running import failwell
from tests.sessions.terminal_process import Terminal
from tests.workflows.test_agent_approvals import at_a_terminal, audit, types
from tests.workflows.test_agent_nodes import seen_by_model

FLOW = """\
workflow:
  name: w
  entry_point: ask
  runtime: {default_model: "scripted:replies.yaml"}
tools:
  pay: {python: "own_tools:pay", effect: idempotent, recovery: MODE}
agents:
  - name: ask
    prompt: go
    routes: [{to: $end}]
output: {text: "{{ ask.output.result }}"}
"""
TOOLS = """\
from pathlib import Path


def pay(amount: int) -> int:
    with Path("paid.txt").open("a") as file:
        file.write(f"{amount}\\n")
    if amount > 100 or len(Path("paid.txt").read_text().splitlines()) == 1:
        raise RuntimeError("the bank is closed, its password is swordfish-77")
    return amount
"""
RUN = ["run", "w.yaml", "--quiet", "--run-id", "r", "--store", "state"]


def place(folder: Path, mode: str, amount: int = 5) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "w.yaml").write_text(FLOW.replace("MODE", mode))
    (folder / "own_tools.py").write_text(TOOLS)
    (folder / "replies.yaml").write_text(
        f"replies:\n  - tool_calls: [{{name: pay, arguments: {{amount: {amount}}}}}]\n  - text: finished\n"
    )
    return folder


def paid(folder: Path) -> list[str]:
    return (folder / "paid.txt").read_text().split()


@pytest.mark.acceptance("stud-cli 43")
def test_after_a_yes_the_call_is_made_once_more_and_after_a_no_the_model_gets_the_failure(
    tmp_path: Path,
) -> None:
    yes, no = place(tmp_path / "yes", "retry"), place(tmp_path / "no", "retry")
    redone: list[Any] = []
    refused: list[Any] = []

    with seen_by_model(redone):
        code, screen = at_a_terminal(yes, RUN, "allow")
    with seen_by_model(refused):
        denied, _ = at_a_terminal(no, RUN, "deny")

    assert (code, paid(yes)) == (0, ["5", "5"])
    assert (denied, paid(no)) == (0, ["5"])
    # After a yes the model sees the result alone, after a no the typed failure without its text.
    assert "tool.failed" not in str(redone[1])
    assert 'trusted="false">\n5\n' in redone[1][-1].parts[0].content
    failure = json.loads(refused[1][-1].parts[0].content)["error"]
    assert (failure["kind"], failure["retryable"]) == ("tool.failed", False)
    assert "swordfish" not in str(refused)
    assert "`pay` failed with tool.failed" in screen
    assert "swordfish" not in screen
    assert types(audit(yes, "interaction", "tool")) == [
        "tool:called",
        "tool:failed",
        "interaction:raised",
        "interaction:answered",
        "tool:called",
        "tool:ended",
    ]
    assert types(audit(no, "interaction", "tool")) == [
        "tool:called",
        "tool:failed",
        "interaction:raised",
        "interaction:answered",
    ]
    for folder, value in ((yes, True), (no, False)):
        assert [record["data"]["value"] for record in audit(folder, "interaction:answered")] == [value]


def test_a_second_failure_is_not_asked_about_again(tmp_path: Path) -> None:
    folder = place(tmp_path / "p", "retry", amount=500)

    code, _ = at_a_terminal(folder, RUN, "allow", "allow")

    assert (code, paid(folder)) == (0, ["500", "500"])
    assert len(audit(folder, "interaction:raised")) == 1


@pytest.mark.acceptance("stud-cli 44")
def test_replacement_input_is_checked_against_the_schema_and_then_used(tmp_path: Path) -> None:
    folder = place(tmp_path / "p", "input", amount=500)

    code, screen = at_a_terminal(folder, RUN, '{"amount": "many"}', "[1]", '{"amount": 7}')

    # The tool never saw what does not fit.
    assert (code, paid(folder)) == (0, ["500", "7"])
    assert "`amount` breaks the rule `type`" in screen
    assert "that is not a JSON object" in screen
    assert len(audit(folder, "interaction:answered")) == 3
    assert types(audit(folder, "tool"))[-1] == "tool:ended"


def test_an_empty_line_instead_of_input_lets_the_model_see_the_failure(tmp_path: Path) -> None:
    folder = place(tmp_path / "p", "input", amount=500)

    code, _ = at_a_terminal(folder, RUN, "")

    assert (code, paid(folder)) == (0, ["500"])
    assert types(audit(folder, "interaction")) == ["interaction:raised", "interaction:refused"]


# ---------------------------------------------------------------- keys

TOKEN = "fresh-token-of-ann-0123456789"
OLD = "expired-token-of-ann-987654321"


@contextmanager
def endpoint(
    ok: str, refusing: str, pending: int = 0, bodies: list[bytes] | None = None
) -> Generator[tuple[str, list[str]]]:
    """An endpoint that refuses every key but one, and beside it a server of device codes; `bodies` takes what models are sent."""
    calls: list[str] = []
    waits = [pending]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/device":
                self._reply(200, b'{"device_code": "dc-secret-0123456789", "user_code": "WDJB-MJHT",'
                                 b' "verification_uri": "https://login.example/device", "interval": 0}')  # fmt: skip
            elif self.path == "/token":
                assert parse_qs(body.decode())["device_code"] == ["dc-secret-0123456789"]
                if waits[0]:
                    waits[0] -= 1
                    self._reply(400, b'{"error": "authorization_pending"}')
                else:
                    self._reply(200, json.dumps({"access_token": TOKEN}).encode())
            else:
                key = self.headers["Authorization"].removeprefix("Bearer ")
                calls.append(key)
                if bodies is not None:
                    bodies.append(body)
                target = ok if key == TOKEN else refusing
                request = Request(
                    target + self.path.removeprefix("/v1"), data=body, headers=dict(self.headers.items())
                )
                try:
                    with urlopen(request) as reply:
                        self._reply(reply.status, reply.read(), reply.headers["Content-Type"])
                except HTTPError as error:
                    self._reply(error.code, error.read(), error.headers["Content-Type"])

        def _reply(self, status: int, body: bytes, kind: str = "application/json") -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (the name of the base class)
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", calls
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def agent(folder: Path, url: str, sign_in: str = "") -> Path:
    (folder / "w.yaml").write_text(
        "workflow:\n  name: w\n  entry_point: ask\n  runtime:\n    default_model: gpt-4o\n"
        f'    provider: {{name: openai-chat, base_url: "{url}/v1", api_key: {OLD}{sign_in}}}\n'
        "agents:\n  - {name: ask, prompt: go, routes: [{to: $end}]}\n"
    )
    return folder


def sign_in(url: str) -> str:
    return f', sign_in: {{device_url: "{url}/device", token_url: "{url}/token", client_id: failwell}}'


def is_kept_nowhere(folder: Path, *texts: str | bytes) -> None:
    """Neither the token nor the device code is in a file of the state folder, or in these texts."""
    stored = [file.read_bytes() for file in (folder / "state").rglob("*") if file.is_file()]
    shown = [text.encode() if isinstance(text, str) else text for text in texts]
    assert stored
    for secret in (TOKEN, "dc-secret-0123456789"):
        assert not [content for content in (*stored, *shown) if secret.encode() in content]


@pytest.mark.acceptance("stud-cli 17", "stud-cli 45")
def test_after_a_sign_in_with_a_device_code_the_request_is_made_again_and_no_token_is_kept(
    tmp_path: Path,
) -> None:
    pytest.importorskip("openai")
    bodies: list[bytes] = []
    with (
        lab() as fake,
        endpoint(fake.url("openai", "ok"), fake.url("openai", "bad_key"), 1, bodies) as (url, calls),
    ):
        code, screen = at_a_terminal(agent(tmp_path, url, sign_in(url)), RUN, "")

    assert (code, calls) == (0, [OLD, TOKEN])
    assert "https://login.example/device" in screen
    assert "WDJB-MJHT" in screen
    exchange = audit(tmp_path, "interaction")
    assert types(exchange) == ["interaction:raised", "interaction:answered"]
    assert exchange[0]["data"]["request"] == "auth.device_code"
    assert len(bodies) == 2
    is_kept_nowhere(tmp_path, screen, json.dumps(audit(tmp_path)), *bodies)


@pytest.mark.slow
@pytest.mark.acceptance("stud-cli 45")
def test_a_sign_in_during_a_session_leaves_no_token_in_its_manifest_or_its_conversation(
    tmp_path: Path,
) -> None:
    pytest.importorskip("openai")
    bodies: list[bytes] = []
    with (
        lab() as fake,
        endpoint(fake.url("openai", "ok"), fake.url("openai", "bad_key"), 0, bodies) as (url, calls),
    ):
        agent(tmp_path, url, sign_in(url))
        terminal = Terminal(tmp_path, "w.yaml")
        terminal.expect("> ")
        terminal.type("hello\n")
        terminal.expect("WDJB-MJHT")
        terminal.type("\n")
        terminal.expect("Hello from the lab.")
        terminal.type("and again\n")
        terminal.expect("Hello from the lab.")
        terminal.type("/exit\n")
        assert terminal.end() == 0

    store = ("--store", str(tmp_path / "state"))
    exported = failwell("sessions", "export", "last", *store).out
    # The second turn uses the new token at once.
    assert calls == [OLD, TOKEN, TOKEN]
    assert '"manifest"' in exported
    is_kept_nowhere(tmp_path, exported, failwell("audit", "export", *store).out, *bodies)


@pytest.mark.acceptance("stud-cli 17")
def test_another_key_is_asked_for_after_a_refusal_and_a_person_may_decline(tmp_path: Path) -> None:
    pytest.importorskip("openai")
    given, declined = tmp_path / "given", tmp_path / "declined"
    given.mkdir()
    declined.mkdir()
    with lab() as fake, endpoint(fake.url("openai", "ok"), fake.url("openai", "bad_key")) as (url, calls):
        code, _ = at_a_terminal(agent(given, url), RUN, TOKEN)
        first = list(calls)
        calls.clear()
        refused, _ = at_a_terminal(agent(declined, url), RUN, "")

    assert (code, first) == (0, [OLD, TOKEN])
    assert (refused != 0, calls) == (True, [OLD])
    assert types(audit(given, "interaction")) == ["interaction:raised", "interaction:answered"]
    assert types(audit(declined, "interaction")) == ["interaction:raised", "interaction:refused"]
    for folder in (given, declined):
        assert audit(folder, "interaction:raised")[0]["data"]["request"] == "auth.password"
        assert [record["data"]["kind"] for record in audit(folder, "model:failed")] == ["provider.auth"]
    is_kept_nowhere(given)
