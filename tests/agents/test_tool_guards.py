"""Files, commands and requests of tools: what is hostile is denied before anything happens."""

import asyncio
import os
import ssl
import subprocess
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any, ClassVar

import pytest

from failwell.agents.tool_calls import Dispatcher, ToolOutcome
from failwell.agents.tools.commands import CommandRunner, command, run_command
from failwell.agents.tools.files import list_directory, read_file, write_file
from failwell.agents.tools.http import http_request, is_public
from failwell.agents.tools.tool import Approver, Tool, ToolContext
from tests.jobs.workers import is_alive


async def _yes(_request: object) -> bool:
    return True


def use(tool: Tool, folder: Path, approver: Approver = _yes, **arguments: Any) -> ToolOutcome:
    """Call a tool through all checks, with a person who agrees to everything."""

    async def main() -> ToolOutcome:
        dispatcher = Dispatcher({tool.name: tool}, approver=approver)
        context = ToolContext(key="k", folder=folder, scratch=folder)
        return await dispatcher.call(tool.name, arguments, context)

    return asyncio.run(main())


def kind(outcome: ToolOutcome) -> str | None:
    return None if outcome.report is None else outcome.report.kind


# ---------------------------------------------------------------- files


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with files, links and protected names; beside it a file that nobody may read."""
    (tmp_path / "secret.txt").write_text("outside")
    root = tmp_path / "root"
    (root / "docs").mkdir(parents=True)
    (root / "docs/a.txt").write_text("inside")
    (root / ".ssh").mkdir()
    (root / ".ssh/id_rsa").write_text("key")
    (root / ".env.local").write_text("TOKEN=x")
    (root / ".git").mkdir()
    (root / ".git/config").write_text("extraheader = credential")
    (root / "id_ecdsa").write_text("key")
    (root / "link.txt").symlink_to(tmp_path / "secret.txt")
    (root / "linked").symlink_to(tmp_path)
    (root / "inner.txt").symlink_to("docs/a.txt")
    os.link(tmp_path / "secret.txt", root / "hard.txt")
    os.mkfifo(root / "pipe")
    return root


HOSTILE_PATHS = [
    "../secret.txt", "docs/../../secret.txt", "/etc/passwd", "~/.ssh/id_rsa", "linked/secret.txt", "link.txt",
    "inner.txt", "hard.txt", "pipe", ".ssh/id_rsa", ".SSH/id_rsa", ".ssh./id_rsa", ".ssh /id_rsa", ".env.local",
    ".ENV", ".env:stream", "docs/./../../secret.txt", "..", "docs/..", "..\\secret.txt", "C:\\secret.txt",
    "docs\\..\\..\\secret.txt", "a\0b", ".aws/credentials", ".netrc", ".npmrc", ".pypirc", ".docker/config.json",
    ".kube/config", ".git-credentials", "id_ed25519", "id_ecdsa", ".git/config", ".bash_login",
]  # fmt: skip


def test_hostile_paths_are_never_read(tree: Path) -> None:
    assert use(read_file(tree), tree, path="docs/a.txt").value == "inside"
    assert [
        path
        for path in HOSTILE_PATHS
        if kind(use(read_file(tree), tree, path=path)) not in ("tool.denied", "tool.input_invalid")
    ] == []


def test_hostile_paths_are_never_written(tree: Path) -> None:
    hostile = [
        *HOSTILE_PATHS,
        ".git/config",
        ".git/hooks/pre-commit",
        ".bashrc",
        ".gitconfig",
        ".GIT/config",
        ".zshrc",
        ".ssh/authorized_keys",
    ]
    before = {path: path.read_bytes() for path in tree.parent.rglob("*") if path.is_file()}

    assert [
        path
        for path in hostile
        if kind(use(write_file(tree), tree, path=path, content="x"))
        not in ("tool.denied", "tool.input_invalid")
    ] == []

    assert {path: path.read_bytes() for path in before} == before
    assert kind(use(write_file(tree), tree, path="docs/new.txt", content="x")) is None
    assert (tree / "docs/new.txt").read_text() == "x"


def test_a_folder_outside_is_not_listed(tree: Path) -> None:
    assert [entry["name"] for entry in use(list_directory(tree), tree, path="docs").value] == ["a.txt"]
    for path in ("..", "/", "linked", ".ssh"):
        assert kind(use(list_directory(tree), tree, path=path)) == "tool.denied"


@pytest.mark.slow
def test_a_link_that_takes_the_place_of_a_folder_or_a_file_meanwhile_leads_nowhere(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "root"
    (root / "docs").mkdir(parents=True)
    outside.mkdir()
    (outside / "a.txt").write_text("outside")
    (root / "docs/a.txt").write_text("inside")
    is_over = Event()

    def swap() -> None:
        while not is_over.is_set():
            (root / "docs").rename(root / "away")
            (root / "docs").symlink_to(outside)
            (root / "docs").unlink()
            (root / "away").rename(root / "docs")
            (root / "link").symlink_to(outside / "a.txt")
            (root / "link").replace(root / "b.txt")

    thread = Thread(target=swap)
    thread.start()
    seen: set[str] = set()
    try:
        for number in range(200):
            for path in ("docs/a.txt", "b.txt"):
                outcome = use(read_file(root), root, path=path)
                seen.add(outcome.value if outcome.report is None else outcome.report.kind)
                use(write_file(root), root, path=path, content="inside" if number % 2 else "inside ")
    finally:
        is_over.set()
        thread.join()

    assert {text.strip() for text in seen} <= {"inside", "tool.denied", "tool.input_invalid"}
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"a.txt": "outside"}


# ---------------------------------------------------------------- commands


@pytest.mark.acceptance("relavium 65")
def test_a_command_is_allowed_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    hostile = [
        "npm", "npm test --x", "npm  test; id", "npm test && touch mark", "npm test | sh", "npm test > mark",
        "npm test `touch mark`", "npm test $(touch mark)", "npm test\ntouch mark", "NPM test", "./npm test",
        "npm test #", "sh -c 'npm test'", "env npm test", "npm 'test' x", "", "'", "npm test\0",
    ]  # fmt: skip

    async def main() -> list[str | None]:
        runner = CommandRunner(tmp_path)
        tool = run_command(["npm test", "true"], runner)
        dispatcher = Dispatcher({"run_command": tool}, approver=_yes)
        context = ToolContext(key="k", folder=tmp_path, scratch=tmp_path)
        try:
            ok = await dispatcher.call("run_command", {"command": "true"}, context)
            assert ok.value["exit_code"] == 0
            return [
                kind(await dispatcher.call("run_command", {"command": line}, context)) for line in hostile
            ]
        finally:
            await runner.close(1)

    assert set(asyncio.run(main())) == {"tool.denied"}
    assert not mark.exists()


def test_an_empty_list_allows_no_command_and_no_host(tmp_path: Path) -> None:
    async def main() -> str | None:
        runner = CommandRunner(tmp_path)
        dispatcher = Dispatcher({"run_command": run_command([], runner)}, approver=_yes)
        context = ToolContext(key="k", folder=tmp_path, scratch=tmp_path)
        outcome = await dispatcher.call("run_command", {"command": "true"}, context)
        await runner.close(1)
        return kind(outcome)

    assert asyncio.run(main()) == "tool.denied"
    assert kind(use(http_request([]), tmp_path, url="https://example.com/")) == "tool.denied"


def test_an_argument_stays_one_word_and_is_no_option(tmp_path: Path) -> None:
    async def main() -> list[Any]:
        runner = CommandRunner(tmp_path)
        tool = command("say", ["printf", "%s|", "{text}"], {}, runner)
        dispatcher = Dispatcher({"say": tool})
        context = ToolContext(key="k", folder=tmp_path, scratch=tmp_path)
        try:
            return [
                await dispatcher.call("say", {"text": text}, context)
                for text in ("a b; touch mark $(touch mark) `touch mark`", "--version", "-rf")
            ]
        finally:
            await runner.close(1)

    said, option, other = asyncio.run(main())

    assert said.value["stdout"] == "a b; touch mark $(touch mark) `touch mark`|"
    assert (kind(option), kind(other)) == ("tool.denied", "tool.denied")
    assert not (tmp_path / "mark").exists()


def test_a_command_sees_no_secret_and_dies_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")

    async def main() -> tuple[Any, Any]:
        runner = CommandRunner(tmp_path)
        context = ToolContext(key="k", folder=tmp_path, scratch=tmp_path, grace=0.1)
        seen = await runner.run(["env"], context, 10)
        try:
            await runner.run(["sh", "-c", "sleep 1000 & echo $! > child; wait"], context, 0.3)
        except Exception as error:
            return seen, error
        finally:
            await runner.close(0.1)
        return seen, None

    seen, error = asyncio.run(main())

    assert "OPENAI" not in seen["stdout"]
    assert error is not None
    assert not is_alive(int((tmp_path / "child").read_text()))


# ---------------------------------------------------------------- requests


@pytest.mark.acceptance("relavium 63")
def test_hostile_addresses_are_never_reached(tmp_path: Path) -> None:
    hostile = [
        "http://example.com/", "ftp://example.com/", "file:///etc/passwd", "https://user:pw@example.com/",
        "https://evil.com/", "https://example.com.evil.com/", "https://sub.example.com/", "https://example.com@evil.com/",
        "https:example.com", "//example.com/", "https://example.com\\@evil.com/", "https://exa\tmple.com/",
        "https://127.0.0.1/", "https://localhost/", "https://169.254.169.254/latest/meta-data", "https://[::1]/",
        "https://2130706433/", "https://0x7f.1/", "https://example.com:notaport/", "javascript:alert(1)", "",
    ]  # fmt: skip
    tool = http_request(["example.com"])

    refused = ("tool.denied", "tool.input_invalid")  # a password in an address is a secret
    assert [url for url in hostile if kind(use(tool, tmp_path, url=url)) not in refused] == []
    # An allowed name does not help if it leads to a private address.
    assert kind(use(http_request(["localhost"]), tmp_path, url="https://localhost/")) == "tool.denied"


def test_private_addresses_are_recognised_in_every_notation() -> None:
    private = [
        "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "::1", "::",
        "fe80::1", "fc00::1", "fec0::1", "::127.0.0.1", "64:ff9b:1::7f00:1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::",
        "2002:a00:1::", "224.0.0.1", "255.255.255.255", "240.0.0.1", "fe80::1%eth0", "not an address",
    ]  # fmt: skip

    assert [address for address in private if is_public(address)] == []
    assert is_public("93.184.216.34")
    assert is_public("2606:2800:220:1:248:1893:25c8:1946")


class _Site(BaseHTTPRequestHandler):
    credentials: ClassVar[list[str | None]] = []
    """What each request was sent with."""

    def do_GET(self) -> None:
        self.credentials.append(self.headers.get("authorization"))
        if self.path == "/away":
            self.send_response(302)
            self.send_header("location", "https://evil.com/")
        else:
            self.send_response(200)
        self.end_headers()
        self.wfile.write(str(self.headers.get("authorization")).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def site(tmp_path: Path) -> Generator[tuple[int, ssl.SSLContext]]:
    """An HTTPS server on this machine, and the certificates to trust."""
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)],
        check=True,
        capture_output=True,
    )  # fmt: skip
    server = HTTPServer(("127.0.0.1", 0), _Site)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(certificate, key)
    server.socket = serving.wrap_socket(server.socket, server_side=True)
    Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port, ssl.create_default_context(cafile=str(certificate))
    server.shutdown()
    server.server_close()


def test_a_request_carries_the_files_credential_and_follows_no_redirect(
    site: tuple[int, ssl.SSLContext], tmp_path: Path
) -> None:
    port, trust = site
    tool = http_request([f"localhost:{port}"], {"Authorization": "Bearer x"}, private=True, trust=trust)

    answer = use(tool, tmp_path, url=f"https://localhost:{port}/", headers={"authorization": "Bearer mine"})
    redirect = use(tool, tmp_path, url=f"https://localhost:{port}/away")

    assert (answer.value["status"], _Site.credentials[-2:]) == (200, ["Bearer x", "Bearer x"])
    assert redirect.value["status"] == 302


def test_a_credential_that_a_host_sends_back_is_masked(
    site: tuple[int, ssl.SSLContext], tmp_path: Path
) -> None:
    port, trust = site
    tool = http_request(
        [f"localhost:{port}"], {"Authorization": "Bearer correct-horse-staple"}, private=True, trust=trust
    )

    answer = use(tool, tmp_path, url=f"https://localhost:{port}/")

    assert answer.value["status"] == 200
    assert "horse" not in f"{answer.value} {answer.seen}"


def test_a_host_is_allowed_at_its_port_alone(site: tuple[int, ssl.SSLContext], tmp_path: Path) -> None:
    port, trust = site

    def reply_to(allow: str, url: str) -> Any:
        outcome = use(http_request([allow], private=True, trust=trust), tmp_path, url=url)
        return outcome.value["status"] if outcome.report is None else outcome.report.details["reason"]

    assert reply_to(f"localhost:{port}", f"https://localhost:{port}/") == 200
    assert reply_to("localhost", f"https://localhost:{port}/") == "port_not_allowed"
    assert reply_to(f"localhost:{port}", "https://localhost/") == "port_not_allowed"
    assert reply_to("localhost", "https://localhost:0/") == "port_not_allowed"


def test_a_root_that_is_a_symbolic_link_is_refused(tree: Path) -> None:
    tools = [(make(tree, "linked"), make(tree, "linked/root")) for make in (read_file, list_directory)]
    (tree.parent / "root/linked/escape.txt").write_text("outside")

    outcomes = [kind(use(tool, tree, path="escape.txt")) for pair in tools for tool in pair]

    assert set(outcomes) == {"tool.denied"}
    assert (
        kind(use(write_file(tree, str(tree / "linked")), tree, path="new.txt", content="x")) == "tool.denied"
    )
    assert not (tree.parent / "new.txt").exists()
    # A root beside the file, or an absolute one, that is a folder works.
    assert use(read_file(tree, "docs"), tree, path="a.txt").value == "inside"
    assert use(read_file(tree, str(tree / "docs")), tree, path="a.txt").value == "inside"
