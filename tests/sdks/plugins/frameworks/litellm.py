"""LiteLLM: its `completion`, which calls OpenAI's API through the openai client."""

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

from failwell.integrations.litellm import reliability
from tests.sdks.callers.litellm import close_clients

NAME = "LiteLLM"
PACKAGE = "litellm"
LINE = "completion = reliability(litellm.completion)"
ABSENT = {"tool_error": "LiteLLM calls models; the tools are those of the framework above it"}


def before(url: str) -> Callable[..., str]:
    return _caller(url, library().completion)


def after(url: str, **options: Any) -> Callable[..., str]:
    return _caller(url, reliability(library().completion, **options))


def library() -> Any:
    # Otherwise it fetches its list of prices while it is imported.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    library: Any = import_module("litellm")
    library.suppress_debug_info = True
    return library


def _caller(url: str, completion: Callable[..., Any]) -> Callable[..., str]:
    def ask(stream: bool = False) -> str:
        try:
            reply = completion(
                model="openai/gpt-4o-mini",
                messages=[{"role": "user", "content": "hello"}],
                api_key="sk-lab",
                api_base=url,
                stream=stream,
            )
            if not stream:
                return reply.choices[0].message.content
            return "".join(chunk.choices[0].delta.content or "" for chunk in reply)
        finally:
            close_clients()

    return ask
