"""Agents that people have, as steps of a workflow: real libraries against the lab."""

import json
from pathlib import Path
from typing import Any

import pytest

from failwell.testing import lab
from tests.cli.running import Done, failwell

STEPS = """\
workflow: {name: w, entry_point: ask}
agents:
  - name: ask
    agent: "AGENT"
    prompt: "Say hello."
    routes: [{to: $end}]
output: {text: "{{ ask.output.result }}"}
"""
PYDANTIC_AI = """\
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

# No connection outlives the event loop of a test.
client = AsyncOpenAI(base_url="URL", api_key="k", default_headers={"Connection": "close"})
provider = OpenAIProvider(openai_client=client)
helper = Agent(OpenAIChatModel("gpt-4o", provider=provider), instructions="Be brief.")
number = 5
"""
GRAPH = """\
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import FakeListChatModel

helper = create_agent(FakeListChatModel(responses=["hello from a graph"]), [])
"""


def run(folder: Path, module: str, source: str, target: str = "helper") -> Done:
    (folder / f"{module}.py").write_text(source)
    (folder / "w.yaml").write_text(STEPS.replace("AGENT", f"{module}:{target}"))
    return failwell(
        "run", "w.yaml", "--quiet", "--error-format", "json", "--store", str(folder / "state"), cwd=folder
    )


def error_of(done: Done) -> dict[str, Any]:
    return next(json.loads(line) for line in done.err.splitlines() if line.startswith("{"))


def test_an_agent_of_pydantic_ai_is_a_step_with_typed_failures(tmp_path: Path) -> None:
    pytest.importorskip("openai")
    with lab() as fake:
        answer = run(tmp_path, "agent_ok", PYDANTIC_AI.replace("URL", fake.url("openai", "ok")))
        refused = run(tmp_path, "agent_refused", PYDANTIC_AI.replace("URL", fake.url("openai", "bad_key")))
        calls = fake.calls("openai", "bad_key")

    assert answer.data == {"text": "Hello from the lab."}
    assert (error_of(refused)["kind"], calls) == ("provider.auth", 1)


def test_a_compiled_graph_is_a_step(tmp_path: Path) -> None:
    pytest.importorskip("langchain")
    assert run(tmp_path, "graph_ok", GRAPH).data == {"text": "hello from a graph"}


@pytest.mark.parametrize(
    ("module", "target", "words"),
    [
        ("agent_number", "number", "is int, and not an agent"),
        ("agent_missing", "nobody", "has no `nobody`"),
    ],
)
def test_what_is_no_agent_is_named(tmp_path: Path, module: str, target: str, words: str) -> None:
    pytest.importorskip("openai")
    done = run(tmp_path, module, PYDANTIC_AI.replace("URL", "http://127.0.0.1:9/"), target)

    assert error_of(done)["kind"] == "validation.config_invalid"
    assert words in error_of(done)["message"]
