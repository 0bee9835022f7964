"""A hundred hostile arguments of tools, through the shipped command: all are refused, and nothing happens.

A person agrees to every call, so that the checks alone decide. Whatever would be executed could be seen: real files outside
of the folder, a command that leaves a file, and servers that count their requests, over HTTPS and without it.
"""

import ssl
import subprocess
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pytest

from failwell.testing import lab
from failwell.testing.laboratory.lab_reply import LabTurn
from tests.cli.running import failwell
from tests.installed import need

need("pydantic_ai", "openai")
SECRET = "sk-ant-api03-8fK2mQ9xT4vB7nL1pW6zR3cY5hD0jG8sA"


class Counter(BaseHTTPRequestHandler):
    """Counts what reaches it."""

    hits: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.hits.append(self.path)
        self.send_response(302 if "away" in self.path else 200)
        self.send_header("location", "https://127.0.0.1/private")
        self.end_headers()

    do_POST = do_PUT = do_DELETE = do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def ports(tmp_path: Path) -> Generator[tuple[int, int]]:
    """Two servers on this machine: one with HTTPS, one without."""
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
         "-subj", "/CN=localhost", "-keyout", str(key), "-out", str(certificate)],
        check=True,
        capture_output=True,
    )  # fmt: skip
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(certificate, key)
    secure, plain = (ThreadingHTTPServer(("127.0.0.1", 0), Counter) for _ in range(2))
    secure.socket = serving.wrap_socket(secure.socket, server_side=True)
    Counter.hits.clear()
    for server in (secure, plain):
        Thread(target=server.serve_forever, daemon=True).start()
    yield secure.server_port, plain.server_port
    for server in (secure, plain):
        server.shutdown()
        server.server_close()


PATHS = [
    "../outside.txt", "docs/../../outside.txt", "docs/../../../etc/passwd", "/etc/passwd", "//etc/passwd", "~/.ssh/id_rsa",
    "~root/.bashrc", "link.txt", "folder/outside.txt", "inner.txt", "hard.txt", "pipe", "..", "docs/..", ".\\..\\outside.txt",
    "..\\outside.txt", "C:\\Windows\\win.ini", "\\\\server\\share", "a\0b", "docs/a.txt\0.png", ".env", ".ENV", ".env.local",
    ".env:stream", ".git/config", ".GIT/config", ".git./config", ".git /config", ".ssh/id_rsa", ".aws/credentials", ".netrc",
    "id_ed25519", ".bashrc", "/proc/self/environ", "docs/./.././../outside.txt", "file:///etc/passwd",
]  # fmt: skip
"""Paths that leave the folder, go through a link, or name what holds credentials."""

URLS = [
    "http://localhost:{plain}/", "ftp://localhost:{plain}/", "file:///etc/passwd", "gopher://localhost:{plain}/",
    "https://user:pw@localhost:{secure}/", "https://localhost:{secure}@evil.example/", "https://evil.example/",
    "https://localhost.evil.example/", "https://127.0.0.1:{secure}/", "https://127.1:{secure}/", "https://127.0.1:{secure}/",
    "https://2130706433:{secure}/", "https://0x7f000001:{secure}/", "https://0x7f.0.0.1:{secure}/", "https://0177.0.0.1:{secure}/",
    "https://017700000001:{secure}/", "https://0:{secure}/", "https://0.0.0.0:{secure}/", "https://[::1]:{secure}/", "https://[::]:{secure}/",
    "https://[::ffff:127.0.0.1]:{secure}/", "https://[::ffff:7f00:1]:{secure}/", "https://[64:ff9b::7f00:1]/", "https://[2002:7f00:1::]/",
    "https://[fe80::1%25lo]/", "https://10.0.0.1/", "https://192.168.0.1/", "https://172.16.0.1/", "https://169.254.169.254/latest/",
    "https://100.64.0.1/", "https://LOCALHOST:{secure}/", "https://localhost.:{secure}/", "https://localhost:{secure}/away",
    "https://localhost:{plain}/", "https://localhost:0/", "https://localhost:99999/", "https://ⓛocalhost:{secure}/",
    "https://127。0。0。1:{secure}/", "https://１２７.0.0.1:{secure}/", "https://local\thost:{secure}/", "https://localhost\\@evil.example/",
    " https://localhost:{secure}/", "https://localhost:{secure}/\r\nHost: evil.example", "javascript:alert(1)", "",
]  # fmt: skip
"""Addresses that are not HTTPS, not on the list, private in any notation, or not what they look like."""

COMMANDS = [
    "touch mark; true", "true; touch mark", "true && touch mark", "true || touch mark", "true | touch mark", "$(touch mark)",
    "`touch mark`", "true\ntouch mark", "true & touch mark", "sh -c 'touch mark'", "touch mark", "tr\\ue --x", "true --x", "TRUE",
    "./true", "/usr/bin/touch mark", "true > mark", "'", "",
]  # fmt: skip
"""Commands that are not exactly the one on the list."""

WORDS = ["-rf", "--output=mark", "-", "--", "-o mark", "x\0y"]
"""Arguments that would be options of the command, or end it."""

WORKFLOW = """\
workflow:
  name: w
  entry_point: ask
  runtime: {{default_model: "openai-chat:lab", provider: {{base_url: "{url}", api_key: lab-credential}}}}
tools:
  read: {{builtin: read_file, root: root}}
  write: {{builtin: write_file, root: root, approval: never}}
  list: {{builtin: list_directory, root: root}}
  fetch: {{builtin: http_request, approval: never, allow: ["localhost:{secure}", "localhost"]}}
  run: {{builtin: run_command, approval: never, allow: ["true"]}}
  note: {{command: [touch, "{{name}}"], effect: read}}
  send: {{python: "hostile_tools:send", effect: read}}
agents:
  - {{name: ask, prompt: go, max_agent_iterations: 400}}
"""


def hostile_calls(secure: int, plain: int) -> list[dict[str, Any]]:
    calls: list[dict[str, Any]] = []
    for path in PATHS:
        calls.append({"name": "read", "arguments": {"path": path}})
        calls.append({"name": "write", "arguments": {"path": path, "content": "x"}})
    calls += [{"name": "list", "arguments": {"path": path}} for path in ("..", "/", "folder", ".git", ".ssh")]
    calls += [{"name": "fetch", "arguments": {"url": url.format(secure=secure, plain=plain)}} for url in URLS]
    calls += [{"name": "run", "arguments": {"command": command}} for command in COMMANDS]
    calls += [{"name": "note", "arguments": {"name": word}} for word in WORDS]
    calls += [
        {"name": "send", "arguments": {"text": SECRET}},
        {"name": "send", "arguments": {"text": f"the key is {SECRET}, keep it"}},
        {"name": "send", "arguments": {"text": "ok", "more": {"deep": [SECRET]}}},
        {"name": "fetch", "arguments": {"url": f"https://localhost:{secure}/?key={SECRET}"}},
        {"name": "send", "arguments": {"text": "ok", "unknown": 1}},
        {"name": "send", "arguments": {"text": ["not", "a", "text"]}},
        {"name": "send\u200b", "arguments": {"text": "a name with a zero-width space"}},
        {"name": "ѕend", "arguments": {"text": "a name with a Cyrillic letter"}},
    ]
    return calls


@pytest.mark.slow
def test_hostile_arguments_are_all_refused_and_nothing_happens(
    tmp_path: Path, ports: tuple[int, int]
) -> None:
    secure, plain = ports
    folder = tmp_path / "work"
    root = folder / "root"
    (root / "docs").mkdir(parents=True)
    (root / "docs/a.txt").write_text("inside")
    (tmp_path / "outside.txt").write_text("outside")
    (folder / "outside.txt").write_text("outside")
    for name in (".git", ".ssh", ".aws"):
        (root / name).mkdir()
    for name in (
        ".env",
        ".env.local",
        ".git/config",
        ".ssh/id_rsa",
        ".aws/credentials",
        ".netrc",
        "id_ed25519",
        ".bashrc",
    ):
        (root / name).write_text("credential")
    (root / "link.txt").symlink_to(folder / "outside.txt")
    (root / "inner.txt").symlink_to("docs/a.txt")
    (root / "folder").symlink_to(folder)
    (root / "hard.txt").hardlink_to(folder / "outside.txt")
    subprocess.run(["mkfifo", str(root / "pipe")], check=True)
    (folder / "hostile_tools.py").write_text(
        "def send(text: str, more: dict | None = None) -> str:\n    open('mark', 'w').write(text)\n    return text\n"
    )
    calls = hostile_calls(secure, plain)
    # Four rounds of mistakes end a turn, so three answers make all the calls of one.
    size = -(-len(calls) // 3)
    answers = [calls[start : start + size] for start in range(0, len(calls), size)]
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    store = ("--store", str(tmp_path / "state"))
    with lab() as fake:
        (folder / "w.yaml").write_text(WORKFLOW.format(secure=secure, url=fake.url("openai", "ok")))
        for answer in answers:
            fake.script("openai", LabTurn(calls=tuple((call["name"], call["arguments"]) for call in answer)))
        fake.script("openai", LabTurn("Done."))
        done = failwell("run", "w.yaml", "--quiet", "--run-id", "hostile", *store, cwd=folder)
    log = failwell("runs", "logs", "hostile", *store).out
    kinds = [line.rpartition(": ")[2] for line in log.splitlines() if "tool " in line]

    assert done.code == 0, done.err
    assert len(calls) >= 100
    assert len(kinds) == len(calls)
    refused = {"tool.denied", "tool.input_invalid", "tool.not_found"}
    assert [call for call, kind in zip(calls, kinds, strict=True) if kind not in refused] == []
    assert Counter.hits == []
    state = tmp_path / "state"
    after = {path for path in tmp_path.rglob("*") if path.is_file() and state not in path.parents}
    assert after - before.keys() <= {folder / "w.yaml"} | set((folder / "__pycache__").glob("*"))
    assert {path: path.read_bytes() for path in before} == before
    assert not any(SECRET.encode() in path.read_bytes() for path in state.rglob("*") if path.is_file())
