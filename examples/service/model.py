"""What the three services call: a model behind the OpenAI SDK.

The model is the lab, a local server that fails on request: the scenario in its address says how.
"""

import os
from collections.abc import AsyncIterator, Iterator

from openai import AsyncOpenAI, OpenAI
from openai.types.chat import ChatCompletionUserMessageParam

from failwell.adapters import check_reply

LAB = "http://127.0.0.1:8900"
TIMEOUT = 0.5
"""Seconds. Short, so that the example does not keep you waiting."""


def ask(question: str, scenario: str) -> str:
    """The model's answer."""
    with OpenAI(base_url=_address(scenario), api_key="demo", timeout=TIMEOUT, max_retries=0) as client:
        reply = client.chat.completions.create(model="lab-large", messages=[_message(question)])
    check_reply("openai", reply)
    return reply.choices[0].message.content or ""


def stream(question: str, scenario: str) -> Iterator[str]:
    """The model's answer, piece by piece."""
    with OpenAI(base_url=_address(scenario), api_key="demo", timeout=TIMEOUT, max_retries=0) as client:
        chunks = client.chat.completions.create(model="lab-large", messages=[_message(question)], stream=True)
        for chunk in chunks:
            if chunk.choices and chunk.choices[0].delta.content:
                yield chunk.choices[0].delta.content


async def aask(question: str, scenario: str) -> str:
    """The model's answer."""
    async with AsyncOpenAI(
        base_url=_address(scenario), api_key="demo", timeout=TIMEOUT, max_retries=0
    ) as client:
        reply = await client.chat.completions.create(model="lab-large", messages=[_message(question)])
    check_reply("openai", reply)
    return reply.choices[0].message.content or ""


async def astream(question: str, scenario: str) -> AsyncIterator[str]:
    """The model's answer, piece by piece."""
    async with AsyncOpenAI(
        base_url=_address(scenario), api_key="demo", timeout=TIMEOUT, max_retries=0
    ) as client:
        chunks = await client.chat.completions.create(
            model="lab-large", messages=[_message(question)], stream=True
        )
        async for chunk in chunks:
            if chunk.choices and chunk.choices[0].delta.content:
                yield chunk.choices[0].delta.content


def _address(scenario: str) -> str:
    return f"{os.environ.get('LAB', LAB)}/openai/{scenario}/v1"


def _message(question: str) -> ChatCompletionUserMessageParam:
    return {"role": "user", "content": question}
