"""claude-agent-sdk: the real SDK starts a program that speaks its line protocol and ends as a scene says."""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from failwell import checked
from failwell.adapters.describe import describe
from failwell.errors.report import ErrorReport

sdk: Any = pytest.importorskip("claude_agent_sdk", reason="`make test-sdks` runs it with claude-agent-sdk")

SECRET = "the-text-nobody-may-see"
_PROGRAM = """#!{python}
import json, os, sys
scene = json.loads(os.environ["SCENE"])
for line in sys.stdin:
    message = json.loads(line)
    if message.get("type") == "control_request":
        answer = {{"subtype": "success", "request_id": message["request_id"], "response": {{"commands": []}}}}
        print(json.dumps({{"type": "control_response", "response": answer}}), flush=True)
    elif message.get("type") == "user":
        if "signal" in scene:
            os.kill(os.getpid(), scene["signal"])
        print(scene.get("line", ""), flush=True)
        sys.exit(scene.get("exit", 1))
"""


def a_program(folder: Path) -> Path:
    program = folder / "claude"
    program.write_text(_PROGRAM.format(python=sys.executable))
    program.chmod(0o700)
    return program


def failure(
    folder: Path, line: object = None, *, wrap: Callable[[Any], Any] = lambda stream: stream, **scene: Any
) -> ErrorReport:
    """The report of a query to a program that prints `line` and ends."""
    program = a_program(folder)
    if line is not None:
        scene["line"] = line if isinstance(line, str) else json.dumps(line)

    async def run() -> BaseException:
        options = sdk.ClaudeAgentOptions(cli_path=str(program), env={"SCENE": json.dumps(scene)})
        with pytest.raises(Exception) as caught:
            async for _message in wrap(sdk.query(prompt=SECRET, options=options)):
                continue
        return caught.value

    return describe(asyncio.run(run()))


def a_result(**facts: Any) -> dict[str, Any]:
    head = {"type": "result", "subtype": "success", "is_error": True, "session_id": "s", "num_turns": 1}
    return {**head, "duration_ms": 1, "duration_api_ms": 1, **facts}


def test_an_error_result_says_which_call_failed_or_which_limit_ended_the_run(tmp_path: Path) -> None:
    overloaded = 'API Error: 529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'
    cases: dict[str, dict[str, Any]] = {
        "provider.overloaded": a_result(api_error_status=529, result=overloaded),
        "provider.auth": a_result(api_error_status=401, result=SECRET),
        "provider.quota_exhausted": a_result(
            subtype="error_during_execution", errors=["Credit balance is too low"]
        ),
        "limit.turn_limit": a_result(subtype="error_max_turns", errors=[SECRET]),
        "limit.budget_exceeded": a_result(subtype="error_max_budget_usd", errors=[SECRET]),
    }

    reports = {kind: failure(tmp_path, result) for kind, result in cases.items()}
    # An older program does not name the status; its words do.
    older = failure(tmp_path, a_result(result=overloaded))

    assert {kind: report.kind for kind, report in reports.items()} == {kind: kind for kind in cases}
    assert (older.kind, older.retryable) == ("provider.overloaded", True)
    assert SECRET not in json.dumps([report.to_dict() for report in reports.values()])


def test_the_end_of_the_program_is_read_by_its_exit_code(tmp_path: Path) -> None:
    assert failure(tmp_path, signal=9).kind == "worker.oom"
    assert failure(tmp_path, signal=11).kind == "internal.bug"
    assert failure(tmp_path, exit=2).kind == "internal.script_error"
    assert failure(tmp_path, "{not json", exit=0).kind == "tool.output_malformed"


def test_a_program_that_is_missing_is_a_missing_dependency(tmp_path: Path) -> None:
    async def run() -> BaseException:
        with pytest.raises(sdk.CLINotFoundError) as caught:
            options = sdk.ClaudeAgentOptions(cli_path=str(tmp_path / "nowhere"))
            async for _message in sdk.query(prompt="hi", options=options):
                continue
        return caught.value

    assert describe(asyncio.run(run())).kind == "extension.dependency_missing"


def test_a_result_that_is_an_error_is_one_although_the_program_ended_well(tmp_path: Path) -> None:
    limited = a_result(api_error_status=429, result=SECRET)
    spent = a_result(subtype="error_max_turns", errors=[SECRET])

    reports = [failure(tmp_path, result, wrap=checked, exit=0) for result in (limited, spent)]
    ended = failure(tmp_path, limited, wrap=checked, exit=1)

    assert [report.kind for report in (*reports, ended)] == [
        "provider.rate_limited",
        "limit.turn_limit",
        "provider.rate_limited",
    ]
    assert reports[0].provider == "anthropic"
    assert SECRET not in json.dumps([report.to_dict() for report in (*reports, ended)])


def test_a_result_without_an_error_passes(tmp_path: Path) -> None:
    program = a_program(tmp_path)
    scene = {"line": json.dumps(a_result(is_error=False, result="done")), "exit": 0}

    async def run() -> list[str]:
        options = sdk.ClaudeAgentOptions(cli_path=str(program), env={"SCENE": json.dumps(scene)})
        return [type(message).__name__ async for message in checked(sdk.query(prompt="hi", options=options))]

    assert asyncio.run(run()) == ["ResultMessage"]
