"""The example files of conductor, where a copy of them is at hand: all validate, and those that only need a model run.

Nothing of that repository is kept in this one. Set `FAILWELL_CONDUCTOR` to a checkout of microsoft/conductor, or put one into `../shared/conductor`.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import failwell

ROOT = Path(__file__).parents[2]
PLACES = [
    Path(place) for place in (os.environ.get("FAILWELL_CONDUCTOR"), ROOT.parent / "shared/conductor") if place
]
EXAMPLES = next((place / "examples" for place in PLACES if (place / "examples").is_dir()), None)
FILES = [] if EXAMPLES is None else sorted(EXAMPLES.glob("*.yaml"))
pytestmark = pytest.mark.skipif(
    not FILES, reason="there is no copy of conductor's examples; FAILWELL_CONDUCTOR names a checkout"
)

INPUTS = {"claude-agent-sdk-mcp": ["question"], "plugins": ["changes"], "script-stdin": ["topic"]}
"""Inputs that templates use and the file does not declare."""
REPLIES: dict[str, Any] = {
    "output-constraints": {
        "audit_evaluator": {
            "verdict": "passed", "ticket_ref": "TICK-1234", "score": 90, "summary": "It holds, as far as it goes.",
            "notes": None, "details": {"reviewer": "me"},
        }
    },
    "parallel-validation": {
        "validation_summary": {
            "overall_status": "passed", "total_issues": 0, "critical_issues": 0, "recommendations": [],
            "approval": "approved", "summary": "s",
        }
    },
}  # fmt: skip
"""Answers where the routes or the schema of a file ask for more than any value of the declared type."""


def test_all_examples_validate() -> None:
    refused: dict[str, str] = {}
    for file in FILES:
        done = failwell("validate", str(file))
        if done.code != 0:
            refused[file.name] = done.err

    assert refused == {}
    assert len(FILES) >= 46


@pytest.mark.slow
def test_examples_that_only_need_a_model_run_on_the_scripted_one(tmp_path: Path) -> None:
    failed: dict[str, str] = {}
    ran: list[str] = []
    for file in FILES:
        text = file.read_text()
        if "mcp_servers:" in text or "web-search" in text or _children_need_servers(file):
            # It needs programs of others, besides a model.
            continue
        done = failwell(
            "run", str(file), "--quiet", "--skip-gates", "--model", f"scripted:{_script(file, tmp_path)}",
            "--store", str(tmp_path / "state"), *_inputs(file),
        )  # fmt: skip
        ran.append(file.name)
        if done.code != 0:
            failed[file.name] = done.err

    assert failed == {}
    assert len(ran) >= 30


def _inputs(file: Path) -> list[str]:
    shown: list[dict[str, Any]] = failwell("show", str(file), "--format", "json").data
    samples = {"string": "x", "number": "1", "boolean": "true", "array": "[]", "object": "{}"}
    declared = {
        entry["id"]: samples[entry["type"]]
        for entry in shown
        if entry["sort"] == "input" and entry.get("required", True) and entry.get("default") is None
    }
    for name in INPUTS.get(file.stem, ()):
        declared[name] = "x"
    return [word for name, value in declared.items() for word in ("-i", f"{name}={value}")]


def _script(file: Path, folder: Path) -> str:
    replies = REPLIES.get(file.stem)
    if replies is None:
        return "auto"
    script = folder / f"{file.stem}.yaml"
    agents = {name: [{"json": value}] for name, value in replies.items()}
    script.write_text(json.dumps({"agents": agents, "auto": True}))
    return str(script)


def _children_need_servers(file: Path) -> bool:
    return "subworkflow" in file.stem
