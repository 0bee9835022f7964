"""Claude Agent SDK: its `query`, and the real Claude Code that the package contains.

Claude Code repeats for minutes, so the run without the plugin is stopped after `PATIENCE` seconds.
"""

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Callable
from importlib import import_module
from typing import Any

from failwell.integrations.claude_agent_sdk import reliability, reliable_tools
from failwell.testing.laboratory.lab_reply import LabCall, Reply, as_events, event
from tests.sdks.plugins.scenarios import OK, GaveUp, ToolBroke
from tests.sdks.plugins.scripted_lab import lab_reply, rate_limited

NAME = "Claude Agent SDK"
PACKAGE = "claude-agent-sdk"
LINE = "query = reliability()\ncreate_sdk_mcp_server(name, tools=reliable_tools(tools))"
DIALECT = "anthropic"
WAITS_ITSELF = True
# Claude Code chooses its waits, so what the plugin notes of them is not what it would have chosen.
UNWATCHED = True
BACKOFF = (0.5, 1.0)
PATIENCE = 20.0


def _calls_tool(_dialect: str, _call: LabCall) -> Reply:
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [],
    }
    usage = {"input_tokens": 9, "output_tokens": 5}
    block: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "mcp__lab__weather", "input": {}}
    delta = {"type": "input_json_delta", "partial_json": '{"city": "Oslo"}'}
    events: dict[str, dict[str, Any]] = {
        "message_start": {"message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}},
        "content_block_start": {"index": 0, "content_block": block},
        "content_block_delta": {"index": 0, "delta": delta},
        "content_block_stop": {"index": 0},
        "message_delta": {"delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": usage},
        "message_stop": {},
    }
    return as_events(*(event({"type": name, **members}, name) for name, members in events.items()))


STEPS = {
    # Anthropic has no quota of a day; a balance is used up as well.
    "daily_quota": (lab_reply("empty_balance"),),
    # Claude Code reads whole seconds.
    "delay": (rate_limited(2), OK),
    "tool_error": (_calls_tool, OK),
}
TITLES = {
    "daily_quota": "the balance of the account is used up (400)",
    "delay": "rate limit (429), wait 2 s",
}
# Claude Code does not wait that long. It gives up, and does not say how long the server asked to wait.
EXPECTS = {"long_delay": {"type": None}}


def before(url: str) -> Callable[..., str]:
    return _ask(url, lambda sdk: sdk.query, lambda tools: tools)


def after(url: str, **options: Any) -> Callable[..., str]:
    return _ask(url, lambda _sdk: reliability(**options), reliable_tools)


def seen(requests: list[dict[str, Any]]) -> str:
    messages: list[dict[str, Any]] = requests[-1]["messages"]
    blocks: list[Any] = [
        block for each in messages if not isinstance(each["content"], str) for block in each["content"]
    ]
    results = [block["content"] for block in blocks if block["type"] == "tool_result"]
    text = "\n".join(result if isinstance(result, str) else json.dumps(result) for result in results)
    return text.partition("\n\n<system-reminder>\n<total_tokens>")[0]


def _ask(url: str, query_of: Callable[[Any], Any], tools_of: Callable[[Any], Any]) -> Callable[..., str]:
    sdk: Any = import_module("claude_agent_sdk")

    @sdk.tool("weather", "The weather in a city", {"city": str})
    async def weather(_arguments: dict[str, Any]) -> Any:
        raise ToolBroke

    async def run(folder: str) -> str:
        options = sdk.ClaudeAgentOptions(
            model="claude-sonnet-4-5",
            cwd=folder,
            tools=[],
            mcp_servers={"lab": sdk.create_sdk_mcp_server("lab", tools=tools_of([weather]))},
            allowed_tools=["mcp__lab__weather"],
            setting_sources=[],
            env={
                "ANTHROPIC_API_KEY": "sk-lab",
                "ANTHROPIC_BASE_URL": url.removesuffix("/v1"),
                "CLAUDE_CONFIG_DIR": folder,
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "HOME": folder,
            },
        )
        messages: AsyncIterator[Any] = query_of(sdk)(prompt="hello", options=options)
        answer = ""
        try:
            async with asyncio.timeout(PATIENCE):
                async for message in messages:
                    answer = getattr(message, "result", None) or answer
        except TimeoutError:
            raise GaveUp(f"still repeating after {PATIENCE:g} s") from None
        return answer

    def ask(stream: bool = False) -> str:
        # It always streams from the server.
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            return asyncio.run(run(folder))

    return ask
