"""An agent whose model and whose tool are tools of an MCP server, called through one session."""

import asyncio
import json
import logging
from collections.abc import Callable
from importlib import import_module
from typing import Any

from failwell.adapters.describe import attach_report
from failwell.errors.report import ErrorReport
from failwell.integrations.mcp import from_tool_result
from tests.sdks.plugins.scenarios import ToolBroke

NO_STREAM = "a tool of MCP answers once; a stream that the tool reads is not the server's"
RESULT_ERROR = "ToolResultError"


class ToolResultError(Exception):
    """The result of a tool says that it failed."""


def agent(url: str, server: Any, client: Any, **parameters: Any) -> Callable[..., str]:
    """The agent; `client(server)` opens a session, and each call of a tool takes the parameters."""
    types: Any = import_module("mcp.types")
    sdk: Any = import_module("openai")

    @server.tool(annotations=types.ToolAnnotations(read_only_hint=True))
    def model(messages: list[dict[str, Any]]) -> str:
        """Call the model."""
        with sdk.OpenAI(api_key="sk-lab", base_url=url, max_retries=0) as caller:
            reply = caller.chat.completions.create(model="gpt-4o-mini", messages=messages)
            return reply.choices[0].message.model_dump_json()

    @server.tool()
    def weather(city: str) -> str:
        """Tell the weather."""
        raise ToolBroke

    async def run() -> str | ErrorReport:
        messages: list[dict[str, Any]] = [{"role": "user", "content": "hello"}]
        async with client(server) as session:
            while True:
                result = await session.call_tool("model", {"messages": messages}, **parameters)
                report = from_tool_result(result)
                if report is not None:
                    return report
                message: dict[str, Any] = json.loads(result.content[0].text)
                calls = message.get("tool_calls")
                if not calls:
                    return message["content"]
                messages.append({"role": "assistant", "content": None, "tool_calls": calls})
                for call in calls:
                    function = call["function"]
                    result = await session.call_tool(
                        function["name"], json.loads(function["arguments"]), **parameters
                    )
                    text = result.content[0].text
                    messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})

    def ask(stream: bool = False) -> str:
        # The library logs what the tool raises; that is the operator's.
        logging.disable(logging.CRITICAL)
        try:
            result = asyncio.run(run())
        finally:
            logging.disable(logging.NOTSET)
        if isinstance(result, str):
            return result
        # Outside the session: a client would make a group of it.
        error = ToolResultError(result.kind)
        attach_report(error, result)
        raise error

    return ask
