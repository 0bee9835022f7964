"""Agents for the tests of sessions: scripted models, and tools that leave traces."""

from collections.abc import Mapping, Sequence
from json import dumps
from pathlib import Path
from typing import Any

TOOLS = '''
import time
from pathlib import Path


def count_words(text: str) -> int:
    """Count the words of a text."""
    return len(text.split())


def pay(order: str) -> str:
    """Pay an order, once."""
    with Path("paid.txt").open("a") as file:
        file.write(order + "\\n")
    return "paid " + order
'''


def write_agent(folder: Path, replies: Sequence[Mapping[str, Any]], **keys: Any) -> Path:
    """An agent file with a scripted model, and its tools."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "session_tools.py").write_text(TOOLS)
    (folder / "replies.yaml").write_text(dumps({"replies": list(replies)}))
    agent: dict[str, Any] = {
        "model": "scripted:replies.yaml",
        "system_prompt": "You help.",
        "tools": {
            "count_words": {"python": "session_tools:count_words", "effect": "read"},
            "pay": {"python": "session_tools:pay"},
            "sleep": {"command": ["sleep", "{seconds}"], "effect": "read"},
        },
        **keys,
    }
    file = folder / "helper.yaml"
    file.write_text(dumps(agent))
    return file


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """A reply that calls one tool."""
    return {"tool_calls": [{"name": name, "arguments": arguments}]}
