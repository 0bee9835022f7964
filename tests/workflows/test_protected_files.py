"""What a model may not write, through the command: whatever would give it tools, or run code of its own."""

from pathlib import Path

import pytest

from tests.cli.running import failwell

FLOW = """\
workflow:
  name: w
  entry_point: ask
  runtime:
    default_model: "scripted:replies.yaml"
    mcp_servers: {shop: {command: python, args: [shop_server.py]}}
tools:
  write: {builtin: write_file, approval: never}
  count: {python: "counting_tools:count", effect: read}
  check: {command: [sh, check.sh, "{word}"], effect: read}
  show: {command: [cat, data.txt], effect: read}
  shell: {builtin: run_command, allow: ["./tool --all"], approval: never}
agents:
  - {name: ask, prompt: go, tools: [write, count], max_agent_iterations: 30, routes: [{to: play}]}
  - {name: play, type: script, command: sh, args: [play.sh]}
"""
PROTECTED = [
    "w.yaml", "W.YAML", "./w.yaml", "counting_tools.py", "beside_counting.py", "shop_server.py", "check.sh", "tool",
    "play.sh", "state/journal.db", "state/runs/r/x.txt",
]  # fmt: skip
FREE = ["data.txt", "other.py", "docs.txt"]


@pytest.mark.slow
def test_what_a_run_executes_and_records_is_not_written_and_data_is(tmp_path: Path) -> None:
    (tmp_path / "counting_tools.py").write_text(
        "import beside_counting\n\ndef count(text: str) -> int:\n    return beside_counting.count(text)\n"
    )
    (tmp_path / "beside_counting.py").write_text("def count(text):\n    return len(text)\n")
    for name in ("check.sh", "play.sh", "tool", "shop_server.py", "data.txt"):
        (tmp_path / name).write_text("exit 0\n")
    calls = ", ".join(
        f"{{name: write, arguments: {{path: {path}, content: 'touch mark'}}}}" for path in PROTECTED + FREE
    )
    (tmp_path / "replies.yaml").write_text(
        "replies:\n  - tool_calls: [{name: count, arguments: {text: ab}}]\n"
        f"  - tool_calls: [{calls}]\n  - text: done\n"
    )
    (tmp_path / "w.yaml").write_text(FLOW)
    code = {path: path.read_bytes() for path in tmp_path.iterdir() if path.name != "data.txt"}
    store = ("--store", str(tmp_path / "state"))

    done = failwell("run", "w.yaml", "--quiet", "--run-id", "r", *store, cwd=tmp_path)

    log = failwell("runs", "logs", "r", *store).out
    kinds = [line.rpartition(": ")[2] for line in log.splitlines() if "tool write" in line]
    assert done.code == 0, done.err
    assert dict(zip(PROTECTED + FREE, kinds, strict=True)) == {
        **dict.fromkeys(PROTECTED, "tool.denied"),
        **dict.fromkeys(FREE, "done"),
    }
    assert {path: path.read_bytes() for path in code} == code
    assert (tmp_path / "data.txt").read_text() == "touch mark"
