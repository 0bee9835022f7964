"""LangGraph: a graph of a node that calls OpenAI's SDK and a node that runs tools.

The client of the node repeats nothing: a graph does not know it. Without the plugin the nodes have LangGraph's
own retry policy.
"""

import asyncio
import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from failwell.integrations.langgraph import reliability, tool_errors
from failwell.testing import FakeClock
from tests.sdks.plugins.scenarios import ToolBroke

NAME = "LangGraph"
PACKAGE = "langgraph"
NO_SHRINK = True
LINE = "builder.set_node_defaults(**reliability())\nToolNode(tools, handle_tool_errors=tool_errors())"
# LangGraph ends the node by its own time limit.
EXPECTS = {"stalled_stream": {"outcome": "limit.step_timeout"}}


def before(url: str) -> Callable[..., str]:
    policy: Any = import_module("langgraph.types").RetryPolicy()
    return _graph(url, {"retry_policy": policy}, {}, None)


def after(url: str, clock: FakeClock | None = None, **options: Any) -> Callable[..., str]:
    return _graph(url, reliability(**options), {"handle_tool_errors": tool_errors()}, clock)


def _graph(url: str, defaults: Any, tool_options: Any, clock: FakeClock | None) -> Callable[..., str]:
    graphs: Any = import_module("langgraph.graph")
    config: Any = import_module("langgraph.config")
    prebuilt: Any = import_module("langgraph.prebuilt")
    messages: Any = import_module("langchain_core.messages")
    sdk: Any = import_module("openai")

    def weather(city: str) -> str:
        """The weather in a city."""
        raise ToolBroke

    async def run(stream: bool) -> str:
        async with sdk.AsyncOpenAI(api_key="sk-lab", base_url=url, max_retries=0) as client:

            async def read(parameters: dict[str, Any]) -> str:
                pieces: list[str] = []
                async for chunk in await client.chat.completions.create(stream=True, **parameters):
                    pieces.append(chunk.choices[0].delta.content or "")
                    config.get_stream_writer()(pieces[-1])
                return "".join(pieces)

            async def model(state: Any) -> Any:
                sent = messages.convert_to_openai_messages(state["messages"])
                parameters = {"model": "gpt-4o-mini", "messages": sent}
                if stream:
                    return {"messages": [messages.AIMessage(await read(parameters))]}
                reply = (await client.chat.completions.create(**parameters)).choices[0].message
                calls = [
                    {"name": call.function.name, "args": json.loads(call.function.arguments), "id": call.id}
                    for call in reply.tool_calls or ()
                ]
                return {"messages": [messages.AIMessage(reply.content or "", tool_calls=calls)]}

            builder = graphs.StateGraph(graphs.MessagesState).set_node_defaults(**defaults)
            builder.add_node("model", model)
            builder.add_node("tools", prebuilt.ToolNode([weather], **tool_options))
            builder.add_edge(graphs.START, "model")
            builder.add_conditional_edges("model", prebuilt.tools_condition)
            builder.add_edge("tools", "model")
            answer = await builder.compile().ainvoke({"messages": [("user", "hello")]})
            return answer["messages"][-1].content

    def ask(stream: bool = False) -> str:
        with _waits_on(clock):
            return asyncio.run(run(stream))

    return ask


class _Asyncio:
    """The module, whose `sleep` is the clock's."""

    def __init__(self, clock: FakeClock) -> None:
        self.sleep = clock.asleep

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)


@contextmanager
def _waits_on(clock: FakeClock | None) -> Generator[None]:
    """Let LangGraph, which waits itself, wait on this clock."""
    retries: Any = import_module("langgraph.pregel._retry")
    try:
        if clock is not None:
            retries.asyncio = _Asyncio(clock)
        yield
    finally:
        retries.asyncio = asyncio
