"""The plugin for claude-agent-sdk, with a program that speaks the line protocol of Claude Code and announces repeats."""

import asyncio
import gc
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from failwell.adapters.describe import describe
from failwell.calls import AttemptFailed, StreamTimedOut, StreamTimeouts
from failwell.calls.attempt_loop import AttemptEvent, Parked
from failwell.errors.report import ErrorReport
from failwell.integrations.claude_agent_sdk import ApiCallFailed, reliability, reliable_tools

sdk: Any = pytest.importorskip("claude_agent_sdk", reason="`make test-sdks` runs it with claude-agent-sdk")

# The SDK leaves it to the garbage collector to close a query that was not read to its end.
pytestmark = pytest.mark.filterwarnings("ignore")
SECRET = "the-text-nobody-may-see"
_PROGRAM = """#!{python}
import json, os, sys
open(os.environ["PID"], "w").write(str(os.getpid()))
scene = json.loads(os.environ["SCENE"])
def say(message):
    print(json.dumps(message), flush=True)
hooks = {{}}
for line in sys.stdin:
    message = json.loads(line)
    if message.get("type") == "control_request":
        hooks = message["request"].get("hooks") or {{}}
        answer = {{"subtype": "success", "request_id": message["request_id"], "response": {{"commands": []}}}}
        say({{"type": "control_response", "response": answer}})
    elif message.get("type") == "control_response":
        say({{**scene["result"], "result": json.dumps(message["response"].get("response"))}})
        sys.exit(0)
    elif message.get("type") == "user":
        for each in scene.get("messages", []):
            say(each)
        if "tool_error" in scene:
            callback = hooks["PostToolUseFailure"][-1]["hookCallbackIds"][0]
            event = {{"hook_event_name": "PostToolUseFailure", "tool_name": "weather", **scene["tool_error"]}}
            request = {{"subtype": "hook_callback", "callback_id": callback, "input": event, "tool_use_id": "t"}}
            say({{"type": "control_request", "request_id": "r", "request": request}})
        elif "result" in scene:
            say(scene["result"])
            sys.exit(scene.get("exit", 0))
"""


def result(**facts: Any) -> dict[str, Any]:
    head = {"type": "result", "subtype": "success", "is_error": False, "session_id": "s", "num_turns": 1}
    return {**head, "duration_ms": 1, "duration_api_ms": 1, **facts}


def repeats(status: int | None, *delays: int, error: str = "unknown") -> list[dict[str, Any]]:
    """The messages with which Claude Code announces that it repeats a call."""
    return [
        {"type": "system", "subtype": "api_retry", "attempt": number, "max_retries": 10, "retry_delay_ms": delay,
         "error_status": status, "error": error, "session_id": "s", "uuid": "u"}
        for number, delay in enumerate(delays, 1)
    ]  # fmt: skip


ANSWER: dict[str, Any] = {
    "type": "assistant",
    "session_id": "s",
    "message": {"role": "assistant", "model": "m", "content": [{"type": "text", "text": "hello"}]},
}


def ask(folder: Path, scene: dict[str, Any], hooks: Any = None, **options: Any) -> list[Any]:
    program = folder / "claude"
    program.write_text(_PROGRAM.format(python=sys.executable))
    program.chmod(0o700)

    async def run() -> list[Any]:
        settings = sdk.ClaudeAgentOptions(
            cli_path=str(program),
            env={"SCENE": json.dumps(scene), "PID": str(folder / "pid")},
            hooks=hooks,
        )
        query = reliability(**options)
        try:
            return [message async for message in query(prompt=SECRET, options=settings)]
        except Exception:
            # Otherwise Claude Code would make further calls.
            with pytest.raises(ProcessLookupError):
                os.kill(int((folder / "pid").read_text()), 0)
            raise
        finally:
            # The SDK ends its program in the background.
            gc.collect()
            await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()}, return_exceptions=True)

    return asyncio.run(run())


def failure(folder: Path, scene: dict[str, Any], **options: Any) -> Exception:
    with pytest.raises(Exception) as caught:
        ask(folder, scene, **options)
    return caught.value


def test_a_repeat_that_cannot_help_ends_the_run_with_its_kind(tmp_path: Path) -> None:
    wrong = failure(tmp_path, {"messages": repeats(401, 500)})
    down = failure(tmp_path, {"messages": repeats(529, 500, 1000, 2000)})
    silent = failure(tmp_path, {"messages": repeats(None, 500, 1000, 2000)})

    reports = [describe(error) for error in (wrong, down, silent)]
    assert all(isinstance(error, ApiCallFailed) for error in (wrong, down, silent))
    assert [report.kind for report in reports] == [
        "provider.auth",
        "provider.overloaded",
        "provider.connection",
    ]
    assert [row.wait for row in reports[1].attempts] == [0.5, 1.0, None]
    assert SECRET not in json.dumps([report.to_dict() for report in reports])


def test_repeats_that_help_go_on_and_each_call_is_counted_from_one(tmp_path: Path) -> None:
    events: list[AttemptEvent] = []
    call = [*repeats(429, 7000, 7000), ANSWER]

    messages = ask(tmp_path, {"messages": [*call, *call], "result": result()}, watcher=events.append)

    assert type(messages[-1]).__name__ == "ResultMessage"
    numbers = [event.attempt.number for event in events if isinstance(event, AttemptFailed)]
    assert numbers == [1, 2, 1, 2]


def test_a_wait_that_is_too_long_is_parked_and_an_error_result_has_the_ledger(tmp_path: Path) -> None:
    parked = failure(tmp_path, {"messages": repeats(429, 3_600_000)})
    ended = result(is_error=True, api_error_status=529, result="API Error: 529 Overloaded")
    given_up = describe(failure(tmp_path, {"messages": repeats(529, 500), "result": ended, "exit": 1}))

    assert isinstance(parked, Parked)
    assert given_up.kind == "provider.overloaded"
    assert [row.wait for row in given_up.attempts] == [0.5, None]
    assert given_up.attempts[-1].reason == "Claude Code did not repeat it"


def test_silence_ends_the_run_on_time(tmp_path: Path) -> None:
    error = failure(tmp_path, {"messages": repeats(529, 1)}, stream=StreamTimeouts(first=30, idle=0.3))

    assert isinstance(error, StreamTimedOut)


def test_the_hook_reports_a_failed_tool_and_types_it_for_the_model(tmp_path: Path) -> None:
    reports: list[ErrorReport] = []

    async def theirs(*_arguments: Any) -> Any:
        return {}

    def answer(**event: Any) -> Any:
        scene = {"tool_error": event, "result": result()}
        hooks = {"PostToolUseFailure": [sdk.HookMatcher(hooks=[theirs])]}
        return json.loads(ask(tmp_path, scene, hooks, on_tool_error=reports.append)[-1].result)

    failed = answer(error=SECRET)["hookSpecificOutput"]
    stopped, typed = answer(error=SECRET, is_interrupt=True), answer(error='{"kind": "tool.failed"}')

    assert json.loads(failed["additionalContext"])["kind"] == "tool.failed"
    assert SECRET not in json.dumps(failed)
    assert (stopped, typed) == ({}, {})
    assert [report.scene.tool for report in reports] == ["weather"]


def test_a_tool_of_this_process_returns_a_typed_error() -> None:
    @sdk.tool("weather", "The weather", {"city": str})
    async def weather(_arguments: dict[str, Any]) -> Any:
        raise PermissionError(13, SECRET)

    (tool,) = reliable_tools([weather])
    answer = asyncio.run(tool.handler({"city": "Oslo"}))

    assert answer["is_error"] is True
    assert "tool.failed" in answer["content"][0]["text"]
    assert SECRET not in json.dumps(answer)
