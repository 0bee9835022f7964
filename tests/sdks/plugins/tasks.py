"""What the tasks of all engines share: the call that they make, and what a task cannot show."""

from importlib import import_module
from typing import Any

NO_STREAM = "a task returns once; a stream that it reads is limited by `failwell.calls.limit_stream`"
NO_TOOLS = "a task is no agent and has no tools"


def call_model(url: str) -> str:
    """The body of every task."""
    sdk: Any = import_module("openai")
    with sdk.OpenAI(api_key="sk-lab", base_url=url, max_retries=0) as client:
        reply = client.chat.completions.create(
            model="gpt-4o-mini", messages=[{"role": "user", "content": "hello"}]
        )
        return reply.choices[0].message.content
