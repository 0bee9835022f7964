"""instructor on the openai client: an answer that must fit a schema."""

import asyncio
import json
from collections.abc import Callable
from importlib import import_module
from typing import Any

from failwell.integrations.instructor import reliability
from failwell.testing.laboratory.lab_reply import LabCall, Reply
from tests.sdks.plugins.scripted_lab import Step, calls_tool, lab_reply, rate_limited

NAME = "instructor"
PACKAGE = "instructor"
OLDEST = (1, 17)
LINE = "client = reliability(instructor.from_openai(OpenAI()))"
ABSENT = {"tool_error": "the tool that instructor has the model call is its schema, and runs nothing"}
_FITS = calls_tool("Greeting", {"name": "Ada"})


def _event(finish: str | None, **delta: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return f"data: {json.dumps(chunk)}\n\n".encode()


def _arguments(text: str, **names: Any) -> dict[str, Any]:
    return {"tool_calls": [{"index": 0, **names, "function": {"name": "Greeting", "arguments": text}}]}


def _stalls(_dialect: str, _call: LabCall) -> Reply:
    """A stream that fills in half of the schema and stalls."""
    pieces = (
        _event(None, role="assistant", **_arguments('{"name": "Ad', id="t", type="function")),
        _event(None, **_arguments('a"}')) + _event("tool_calls") + b"data: [DONE]\n\n",
    )
    return Reply(200, headers=(("content-type", "text/event-stream"),), pieces=pieces, stall="body")


STEPS: dict[str, tuple[Step, ...]] = {
    "ok": (_FITS,),
    "recovers": (lab_reply("overloaded"), _FITS),
    "delay": (rate_limited(1.5), _FITS),
    "stalled_stream": (_stalls,),
}


def before(url: str) -> Callable[..., str]:
    return _caller(url, lambda client: client)


def after(url: str, **options: Any) -> Callable[..., str]:
    return _caller(url, lambda client: reliability(client, **options))


def _caller(url: str, prepare: Callable[[Any], Any]) -> Callable[..., str]:
    instructor: Any = import_module("instructor")
    sdk: Any = import_module("openai")
    pydantic: Any = import_module("pydantic")
    schema: Any = pydantic.create_model("Greeting", name=(str, ...))

    parameters = {
        "model": "gpt-4o-mini",
        "messages": [{"role": "user", "content": "hello"}],
        "response_model": schema,
    }

    async def read() -> str:
        async with sdk.AsyncOpenAI(api_key="sk-lab", base_url=url) as client:
            parts = prepare(instructor.from_openai(client)).create_partial(**parameters)
            return [part.name async for part in parts][-1]

    def ask(stream: bool = False) -> str:
        if stream:
            return asyncio.run(read())
        with sdk.OpenAI(api_key="sk-lab", base_url=url) as client:
            return prepare(instructor.from_openai(client)).create(**parameters, max_retries=2).name

    return ask
