"""What the real SDKs of two vendors put on the wire for a conversation, and what the lab's strict validators say to it."""

import asyncio
import json
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from failwell.testing.laboratory.dialects.anthropic import refuse_messages
from failwell.testing.laboratory.dialects.chat import refuse_chat


def refusals(messages: list[Any]) -> dict[str, Any]:
    """Vendor → why it refuses the conversation; `None` where it accepts it."""
    return {
        "openai": refuse_chat(_openai_body(messages)),
        "anthropic": refuse_messages(_anthropic_body(messages)),
    }


def _openai_body(messages: list[Any]) -> Any:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    with _server() as (address, bodies):
        model = OpenAIChatModel("gpt-5", provider=OpenAIProvider(base_url=f"{address}/v1", api_key="none"))
        asyncio.run(_send(model, messages))
    return bodies[0]


def _anthropic_body(messages: list[Any]) -> Any:
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    with _server() as (address, bodies):
        model = AnthropicModel("claude-any", provider=AnthropicProvider(base_url=address, api_key="none"))
        asyncio.run(_send(model, messages))
    return bodies[0]


async def _send(model: Any, messages: list[Any]) -> None:
    from pydantic_ai.exceptions import ModelHTTPError
    from pydantic_ai.models import ModelRequestParameters

    async with model:
        try:
            await model.request(messages, None, ModelRequestParameters())
        except ModelHTTPError:
            return
    raise AssertionError("the server answers nothing")


@contextmanager
def _server() -> Generator[tuple[str, list[Any]]]:
    """A server that keeps what it gets and refuses it: its address, and the bodies."""
    bodies: list[Any] = []

    class Keeper(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(400)
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(b'{"error": {"message": "enough", "type": "invalid_request_error"}}')

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (as the library names it)
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Keeper)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", bodies
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
