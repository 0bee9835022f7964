"""One call to Claude on Amazon Bedrock, with the anthropic package's own client for it."""

from importlib import import_module
from typing import Any

SDK = "anthropic"
DISTRIBUTION = "anthropic"
DIALECT = "bedrock"
PROVIDER = "bedrock"
# It signs its requests with Amazon's own library.
NEEDS = ("boto3",)
# Its streams wrap Anthropic's events into Amazon's frames, which the laboratory does not speak.
STREAMS = False
_CONVERSE = "the laboratory answers Converse, and this client asks for Anthropic's own answers"
NOT_HERE = dict.fromkeys(
    ("ok", "content_refused_out", "truncated_output", "empty_reply", "malformed_tool_call"), _CONVERSE
)

_ASKED: dict[str, Any] = {
    "model": "anthropic.claude-sonnet-4-5-v1:0",
    "max_tokens": 64,
    "messages": [{"role": "user", "content": "hello"}],
}


def _client(name: str, url: str, timeout: float) -> Any:
    made: Any = getattr(import_module("anthropic"), name)
    keys = {"aws_access_key": "lab", "aws_secret_key": "lab", "aws_region": "us-east-1"}
    return made(**keys, base_url=url, max_retries=0, timeout=timeout)


def call(url: str, *, stream: bool, timeout: float) -> object:
    with _client("AnthropicBedrock", url, timeout) as client:
        return client.messages.create(**_ASKED)


async def acall(url: str, *, stream: bool, timeout: float) -> object:
    async with _client("AsyncAnthropicBedrock", url, timeout) as client:
        return await client.messages.create(**_ASKED)
