"""Tools of real MCP servers in agent steps: over stdio and over HTTP."""

import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Done, failwell
from tests.installed import need
from tests.jobs.workers import is_alive

need("mcp")
SERVER = """\
import os, sys
from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("shop")
print("\\x1b[2J hostile text", file=sys.stderr, flush=True)

@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def find(number: str) -> str:
    "Find an order."
    return f"order {number}, pid {os.getpid()}, secret {os.environ.get('SHOP_TOKEN')} {os.environ.get('OPENAI_API_KEY')}"

@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def find__all() -> str:
    return "everything"

@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def broken() -> str:
    raise RuntimeError("the database password is swordfish")

@server.tool()
def pay(amount: int) -> str:
    open("paid.txt", "a").write(str(amount))
    return "paid"

if len(sys.argv) > 1:
    server.run("streamable-http", port=int(sys.argv[1]))
else:
    server.run()
"""
CALLS = "{tool_calls: [{name: shop__find, arguments: {number: A-1}}, {name: shop__broken}, {name: shop__pay, arguments: {amount: 5}}]}"


def run(folder: Path, server: dict[str, Any], *replies: str, granted: str = "[shop]") -> Done:
    (folder / "server.py").write_text(SERVER)
    (folder / "w.yaml").write_text(
        "workflow:\n  name: w\n  entry_point: ask\n  runtime:\n    default_model: scripted:replies.yaml\n"
        f"    mcp_servers: {{shop: {json.dumps(server)}}}\n"
        "agents:\n  - {name: ask, prompt: p, tools: "
        f"{granted}, routes: [{{to: $end}}]}}\n"
    )
    (folder / "replies.yaml").write_text("replies:\n" + "".join(f"  - {reply}\n" for reply in replies))
    return failwell(
        "run", "w.yaml", "--quiet", "--error-format", "json", "--skip-gates", "--store", str(folder / "state"),
        cwd=folder,
        env={"OPENAI_API_KEY": "sk-of-the-host"},
    )  # fmt: skip


def seen(
    folder: Path,
    server: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    calls: str = CALLS,
    granted: str = "[shop]",
) -> list[str]:
    """What the model gets for its calls."""
    from failwell.agents import turn

    results: list[str] = []
    original: Any = turn._results  # pyright: ignore[reportPrivateUsage]

    def note(calls: Any, outcomes: Any, system: Any) -> Any:
        results.extend(outcome.seen for outcome in outcomes)
        return original(calls, outcomes, system)

    monkeypatch.setattr(turn, "_results", note)
    done = run(folder, server, calls, "{text: done}", granted=granted)
    assert done.data == {"result": "done"}, done.err
    assert "hostile" not in done.err
    return results


def test_tools_of_a_program_are_called_and_it_ends_with_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stdio = {"command": sys.executable, "args": ["server.py"], "env": {"SHOP_TOKEN": "given"}}

    found, broken, paid = seen(tmp_path, stdio, monkeypatch)

    assert "order A-1" in found
    assert "secret given None" in found
    assert "swordfish" not in broken
    assert '"error"' in broken
    # Nobody agreed, so a tool that does not only read was not called.
    assert "tool.denied" in paid
    assert not (tmp_path / "paid.txt").exists()
    assert not is_alive(int(found.split("pid ")[1].split(",")[0]))


@pytest.mark.slow
def test_tools_of_an_address_are_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with subprocess.Popen(
        [sys.executable, "server.py", str(port)],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            _until_open(port)
            server = {"type": "http", "url": f"http://127.0.0.1:{port}/mcp", "approval": "never"}
            found, _, paid = seen(tmp_path, server, monkeypatch)
        finally:
            process.terminate()

    assert "order A-1" in found
    assert "paid" in paid
    assert (tmp_path / "paid.txt").read_text() == "5"


@pytest.mark.slow
def test_the_grant_of_one_tool_is_no_grant_of_tools_whose_names_begin_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stdio = {"command": sys.executable, "args": ["server.py"]}
    calls = "{tool_calls: [{name: shop__find__all}]}"

    (result,) = seen(tmp_path, stdio, monkeypatch, calls, granted="[shop__find]")

    assert "not_granted" in result
    assert "everything" not in result


def test_a_server_that_does_not_start_is_named(tmp_path: Path) -> None:
    done = run(tmp_path, {"command": "no-such-program"}, "{text: never}")

    error = next(json.loads(line) for line in done.err.splitlines() if line.startswith("{"))
    assert error["kind"] == "tool.unavailable"
    assert "`shop`" in error["message"]


def _until_open(port: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError("the server did not open its port")
