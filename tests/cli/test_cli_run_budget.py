"""The budget of a run and steps that do not say what they cost."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Done, failwell


def run(folder: Path, usage: dict[str, Any] | None, **limits: Any) -> Done:
    """A step that reports `usage`, and a handler for whatever fails."""
    report = "true" if usage is None else f"echo '{json.dumps(usage)}' > $FAILWELL_USAGE_OUT"
    document = {
        "workflow": {"name": "flow", "entry_point": "a", "limits": limits},
        "agents": [
            {
                "name": "a", "type": "script", "command": "sh", "args": ["-c", f"echo printed; {report}"],
                "routes": [{"on_error": True, "to": "b"}, {"to": "$end", "output": {"failed": "no"}}],
            },
            {
                "name": "b", "type": "set", "output_type": "string",
                "value": "{{ a.error.kind }} {{ a.error.message }} {{ a.output.stdout | trim }}",
            },
        ],
        "output": {"failed": "{{ b.output }}"},
    }  # fmt: skip
    (folder / "flow.yaml").write_text(json.dumps(document))
    return failwell("run", str(folder / "flow.yaml"), "-q", "--store", str(folder / "store"))


TOKENS = {"input_tokens": 900, "model": "m-1"}


@pytest.mark.parametrize("on_exceed", ["fail", "pause_for_approval"])
def test_tokens_without_a_cost_fail_the_step_under_a_budget_that_stops_the_run(
    tmp_path: Path, on_exceed: str
) -> None:
    done = run(tmp_path, TOKENS, budget_usd=1.0, on_exceed=on_exceed)

    assert done.code == 0, done.err
    failed = done.data["failed"]
    assert failed.startswith("validation.config_invalid `a` used a model and did not say what it cost")
    assert "`limits.unpriced: allow`" in failed
    assert failed.endswith("printed")
    totals = failwell("runs", "show", "last", "--format", "json", "--store", str(tmp_path / "store")).data[
        "usage"
    ]
    assert totals["input_tokens"] == 900


@pytest.mark.parametrize(
    ("usage", "limits"),
    [
        (None, {"budget_usd": 1.0, "on_exceed": "fail"}),
        ({"cost_usd": 0.1, "input_tokens": 900}, {"budget_usd": 1.0, "on_exceed": "fail"}),
        (TOKENS, {"budget_usd": 1.0, "on_exceed": "fail", "unpriced": "allow"}),
        (TOKENS, {"budget_usd": 1.0, "on_exceed": "warn"}),
        (TOKENS, {}),
    ],
    ids=["no usage", "a cost", "allowed", "warn", "no budget"],
)
def test_what_costs_nothing_has_a_cost_or_is_allowed_does_not_fail(
    tmp_path: Path, usage: dict[str, Any] | None, limits: dict[str, Any]
) -> None:
    done = run(tmp_path, usage, **limits)

    assert (done.code, done.data) == (0, {"failed": "no"}), done.err
