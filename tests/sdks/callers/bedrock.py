"""One call to Bedrock with boto3: the Converse operation, its own retries off."""

from importlib import import_module
from typing import Any

SDK = "boto3"
DISTRIBUTION = "boto3"
DIALECT = "bedrock"
PROVIDER = "bedrock"
NOT_HERE: dict[str, str] = {}

_ASKED: dict[str, Any] = {
    "modelId": "anthropic.claude-lab-v1:0",
    "messages": [{"role": "user", "content": [{"text": "hello"}]}],
}


def call(url: str, *, stream: bool, timeout: float) -> object:
    boto3: Any = import_module("boto3")
    config: Any = import_module("botocore.config")
    client = boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=url,
        aws_access_key_id="lab",
        aws_secret_access_key="lab",
        config=config.Config(
            retries={"total_max_attempts": 1},
            connect_timeout=timeout,
            read_timeout=timeout,
            proxies={},
        ),
    )
    try:
        if stream:
            return list(client.converse_stream(**_ASKED)["stream"])
        return client.converse(**_ASKED)
    finally:
        client.close()
