"""`pytest --failwell-faults`: agent tests run once per fault, over the real SDKs, and a table says what they survive."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from failwell.testing.faults_spec import parse_faults
from tests.testing.fault_runs import SRC, run_under_faults

pytestmark = pytest.mark.timeout(110)

AGENTS = """
import asyncio

import anthropic
import openai
import pytest
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

USER = [{"role": "user", "content": "Hello. " * 20}]


def test_a_client_that_retries():
    with openai.OpenAI(api_key="k", max_retries=2, timeout=0.2) as client:
        reply = client.chat.completions.create(model="gpt", messages=USER)
    assert reply.choices[0].message.content == "Hello from the lab."


def test_a_client_that_does_not_retry():
    with openai.OpenAI(api_key="k", max_retries=0) as client:
        client.chat.completions.create(model="gpt", messages=USER)


def test_an_agent_that_shortens_its_messages():
    async def run():
        async with anthropic.AsyncAnthropic(api_key="k", max_retries=0) as client:
            messages = USER
            for _ in range(2):
                try:
                    async with client.messages.stream(model="claude", max_tokens=9, messages=messages) as stream:
                        return await stream.get_final_text()
                except anthropic.BadRequestError:
                    messages = [{"role": "user", "content": "Hello."}]

    assert asyncio.run(run()) == "Hello from the lab."


def test_an_agent_of_pydantic_ai():
    async def run():
        async with openai.AsyncOpenAI(api_key="k", max_retries=2, timeout=0.2) as client:
            agent = Agent(OpenAIChatModel("gpt", provider=OpenAIProvider(openai_client=client)))
            return (await agent.run("Hello")).output

    assert asyncio.run(run()) == "Hello from the lab."


def test_without_a_model():
    pass
"""


@pytest.mark.slow
def test_a_table_and_a_file_say_which_faults_an_agent_survives(tmp_path: Path) -> None:
    done = run_under_faults(
        tmp_path, AGENTS, "--failwell-faults=rate_limit:2,overflow,stall", "--failwell-faults-report=report.json",
        "--failwell-faults-delay=0.01", "--failwell-faults-stall=1",
    )  # fmt: skip

    assert done.outcomes() == {
        ("test_a_client_that_retries", "rate_limit:2"): "survived",
        ("test_a_client_that_retries", "overflow"): "failed",
        ("test_a_client_that_retries", "stall"): "survived",
        ("test_a_client_that_does_not_retry", "rate_limit:2"): "failed",
        ("test_a_client_that_does_not_retry", "overflow"): "failed",
        ("test_a_client_that_does_not_retry", "stall"): "failed",
        ("test_an_agent_that_shortens_its_messages", "rate_limit:2"): "failed",
        ("test_an_agent_that_shortens_its_messages", "overflow"): "survived",
        ("test_an_agent_that_shortens_its_messages", "stall"): "failed",
        ("test_an_agent_of_pydantic_ai", "rate_limit:2"): "survived",
        ("test_an_agent_of_pydantic_ai", "overflow"): "failed",
        ("test_an_agent_of_pydantic_ai", "stall"): "survived",
        ("test_without_a_model", "rate_limit:2"): "not reached",
        ("test_without_a_model", "overflow"): "not reached",
        ("test_without_a_model", "stall"): "not reached",
    }, done.output
    assert done.report["counts"] == {"survived": 5, "failed": 7, "skipped": 0, "not reached": 3}
    retried = done.row("test_a_client_that_retries", "rate_limit:2")
    assert (retried["calls"], retried["injected"], retried["kind"]) == (3, 2, None)
    assert done.row("test_a_client_that_does_not_retry", "overflow")["kind"] == "provider.context_too_long"
    assert "5 of 15 survived, 3 made no call that could fail" in done.output
    assert "test_agent.py::test_an_agent_of_pydantic_ai" in done.output
    assert done.addresses == []


@pytest.mark.slow
def test_success_comes_from_the_users_own_transport_and_never_from_the_network(tmp_path: Path) -> None:
    source = """
import httpx
import openai
import pytest
import requests

CHOICE = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "mine"}}
REPLY = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [CHOICE]}


@pytest.mark.parametrize("number", [1, 2])
def test_a_mocked_transport(number):
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json=REPLY))
    with openai.OpenAI(api_key="k", http_client=httpx.Client(transport=transport)) as client:
        reply = client.chat.completions.create(model="gpt", messages=[{"role": "user", "content": "x"}])
    assert reply.choices[0].message.content == "mine"


@pytest.mark.failwell_faults("overloaded:2")
def test_requests_by_hand():
    codes = [requests.post("https://api.mistral.ai/v1/chat/completions", json={}).status_code for _ in range(3)]
    assert codes == [429, 429, 200]


@pytest.mark.failwell_faults()
def test_without_faults(failwell_faults):
    with failwell_faults("bad_key") as injection, openai.OpenAI(api_key="k", max_retries=0) as client:
        with pytest.raises(openai.AuthenticationError):
            client.models.list()
            client.chat.completions.create(model="gpt", messages=[{"role": "user", "content": "x"}])
    assert (injection.calls, injection.injected) == (1, 1)
"""
    done = run_under_faults(
        tmp_path, source, "--failwell-faults=overloaded", "--failwell-faults-report=report.json", "-n", "2"
    )

    assert done.code == 0, done.output
    assert done.outcomes() == {
        ("test_a_mocked_transport[1]", "overloaded"): "survived",
        ("test_a_mocked_transport[2]", "overloaded"): "survived",
        ("test_requests_by_hand", "overloaded:2"): "survived",
    }
    assert "4 passed" in done.output
    assert done.addresses == []


def test_an_unknown_fault_is_a_usage_error_with_the_list(tmp_path: Path) -> None:
    done = run_under_faults(tmp_path, "def test_it(): pass", "--failwell-faults=rate_limt")

    assert done.code == 4, done.output
    assert (
        "--failwell-faults: no fault `rate_limt`; did you mean `rate_limit`? There are: rate_limit, quota"
        in done.output
    )
    for text, words in (
        ("rate_limit:0", "the number of calls that fail, or `always`"),
        ("overflow@ms", "a form of the delay belongs to `rate_limit`"),
        (",", "no fault is named; there are: rate_limit"),
        ("nonsense", "no fault `nonsense`; there are: rate_limit"),
    ):
        with pytest.raises(ValueError, match=re.escape(words)):
            parse_faults(text)


def test_the_plugin_loads_nothing_unless_it_is_used(tmp_path: Path) -> None:
    source = """
import sys

def test_it():
    loaded = [name for name in sys.modules if name.startswith("failwell.")]
    assert set(loaded) <= {"failwell._lazy", "failwell.testing", "failwell.testing.pytest_plugin"}, loaded
"""
    done = run_under_faults(tmp_path, source)

    assert done.code == 0, done.output
    assert "failwell faults" not in done.output


def test_pytest_finds_the_plugin_in_the_packages_metadata() -> None:
    project = tomllib.loads((SRC.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    (module,) = project["entry-points"]["pytest11"].values()
    done = subprocess.run(
        [sys.executable, "-c", f"import {module}; print(callable({module}.pytest_addoption))"],
        env={"PYTHONPATH": str(SRC)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "True\n"
