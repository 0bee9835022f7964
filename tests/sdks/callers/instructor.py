"""One structured call with instructor on the openai client: one attempt, no retries of either."""

from importlib import import_module
from typing import Any

SDK = "instructor"
DISTRIBUTION = "instructor"
DIALECT = "openai"
PROVIDER = "openai"
# It streams partial objects, not replies.
STREAMS = False
NOT_HERE: dict[str, str] = {
    "ok": "the laboratory's answer is a sentence, which no schema accepts",
}

_ASKED: dict[str, Any] = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "hello"}]}


def schema() -> Any:
    """What the model is asked to fill in."""
    pydantic: Any = import_module("pydantic")
    return pydantic.create_model("Greeting", name=(str, ...), age=(int, ...))


def call(url: str, *, stream: bool, timeout: float) -> object:
    openai: Any = import_module("openai")
    instructor: Any = import_module("instructor")
    with openai.OpenAI(api_key="sk-lab", base_url=url, max_retries=0, timeout=timeout) as client:
        return instructor.from_openai(client).chat.completions.create(
            **_ASKED, response_model=schema(), max_retries=0
        )


async def acall(url: str, *, stream: bool, timeout: float) -> object:
    openai: Any = import_module("openai")
    instructor: Any = import_module("instructor")
    async with openai.AsyncOpenAI(api_key="sk-lab", base_url=url, max_retries=0, timeout=timeout) as client:
        return await instructor.from_openai(client).chat.completions.create(
            **_ASKED, response_model=schema(), max_retries=0
        )
