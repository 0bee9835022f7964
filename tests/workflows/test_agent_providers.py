"""Every provider of agent steps against the lab, with its real SDK: answers, tool calls, and every way to fail.

The command runs a workflow with one agent. The lab knows what each failure is; what an agent makes of one in
another way is in `INSTEAD`, with the reason.
"""

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from failwell.testing import Lab, lab
from failwell.testing.laboratory.dialects.table import dialect
from failwell.testing.laboratory.lab_reply import LabTurn
from failwell.testing.laboratory.scenario import SCENARIOS
from tests.cli.running import Done, failwell

KEY = "lab-credential-0123456789"
PATIENCE = 1
"""Seconds that a model may be silent in the scenarios that stall."""
USED = {"input_tokens": 9, "output_tokens": 5}


class Provider(NamedTuple):
    """One provider: its dialect in the lab, a model, what follows its address, and the SDK that it needs."""

    name: str
    dialect: str
    model: str
    path: str
    sdk: str


PROVIDERS = [
    Provider("openai", "openai", "gpt-5", "/v1", "openai"),
    Provider("openai-chat", "openai", "gpt-4o-mini", "/v1", "openai"),
    Provider("anthropic", "anthropic", "claude-lab", "", "anthropic"),
    Provider("google", "google-genai", "gemini-2.5-flash", "", "google.genai"),
    Provider("mistral", "mistral", "mistral-small-latest", "", "mistralai"),
    Provider("bedrock", "bedrock", "anthropic.claude-3-5-haiku-20241022-v1:0", "", "boto3"),
    Provider("groq", "groq", "llama-3.3-70b-versatile", "", "groq"),
    Provider("cohere", "cohere", "command-r-plus", "", "cohere"),
    Provider("huggingface", "huggingface", "lab/model", "/v1", "huggingface_hub"),
    Provider("ollama", "ollama", "llama3.2", "/v1", "openai"),
]

EVERY_TIME = ("openai", "anthropic")
_CORRECTED = "the model may correct a tool call; after four rounds of mistakes the step fails"
_OWN_TIMER = (
    "its client has no time-out for a call, so the step's own ends it, and it cannot know what was sent"
)
INSTEAD: dict[tuple[str, str], tuple[str | None, str]] = {
    **{
        (name, "malformed_tool_call"): ("tool.failed", _CORRECTED)
        for name in (
            "openai",
            "openai-chat",
            "anthropic",
            "mistral",
            "bedrock",
            "cohere",
            "huggingface",
            "ollama",
        )
    },
    **{
        (name, scenario): ("provider.timeout", _OWN_TIMER)
        for name in ("bedrock", "cohere", "huggingface")
        for scenario in ("slow_headers", "slow_body")
    },
    ("cohere", "garbage_json"): (None, "its client logs an event that is no JSON and goes on"),
    ("ollama", "in_stream_error"): (
        "provider.stream_interrupted",
        "its chat completions end too early instead of naming the error",
    ),
    ("ollama", "out_of_memory"): ("provider.unavailable", "its chat completions answer with a plain 500"),
}
QUICK = (
    "bad_key",
    "rate_limited",
    "overloaded",
    "truncated_output",
    "truncated_stream",
    "content_refused_in",
    "content_refused_out",
)
"""Scenarios that every run of the tests goes through; the others are slow."""
CONTENT = ("provider.output_truncated", "provider.content_refused")

WORKFLOW = """\
workflow:
  name: w
  entry_point: ask
  runtime:
    default_model: "{name}:{model}"
    timeout: {timeout}
    provider: {{base_url: "{url}"{key}}}
  cost:
    pricing: {{"{model}": {{input_per_mtok: 1, output_per_mtok: 2}}}}
tools:
  find_city: {{python: "city_tools:find_city", effect: read}}
agents:
  - {{name: ask, prompt: Where is it?, max_attempts: {attempts}}}
"""


class Place:
    """A folder with a workflow, and the lab that answers its agent."""

    def __init__(self, folder: Path, fake: Lab) -> None:
        self.folder = folder
        self.lab = fake
        (folder / "city_tools.py").write_text(
            'def find_city(city: str) -> str:\n    """Find a city."""\n    return "in the north"\n'
        )

    def run(self, provider: Provider, scenario: str, attempts: int = 1) -> Done:
        key = "" if provider.name == "bedrock" else ", api_key: {env: LAB_CREDENTIAL}"
        text = WORKFLOW.format(
            name=provider.name,
            model=provider.model,
            url=self.lab.url(provider.dialect, scenario) + provider.path,
            key=key,
            attempts=attempts,
            timeout=PATIENCE if scenario.startswith("slow") else 60,
        )
        (self.folder / "w.yaml").write_text(text)
        self.lab.reset()
        secrets = {"LAB_CREDENTIAL": KEY, "AWS_ACCESS_KEY_ID": "lab", "AWS_SECRET_ACCESS_KEY": KEY}
        return failwell(
            "run", "w.yaml", "--quiet", "--error-format", "json", "--store", str(self.folder / "state"),
            cwd=self.folder, env={**secrets, "AWS_DEFAULT_REGION": "us-east-1"},
        )  # fmt: skip

    def holds_key(self) -> bool:
        return any(KEY.encode() in path.read_bytes() for path in self.folder.rglob("*") if path.is_file())


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with lab(stall=30) as fake:
        yield Place(tmp_path, fake)


def error_of(done: Done) -> dict[str, Any]:
    return next(json.loads(line) for line in done.err.splitlines() if line.startswith("{"))


def installed(provider: Provider) -> Provider:
    try:
        missing = find_spec("pydantic_ai") is None or find_spec(provider.sdk) is None
    except ModuleNotFoundError:
        missing = True
    if missing:
        pytest.skip(f"{provider.sdk} is not installed")
    return provider


def expected(provider: Provider, scenario: str) -> str | None:
    if (provider.name, scenario) in INSTEAD:
        return INSTEAD[provider.name, scenario][0]
    spoken = dialect(provider.dialect)
    assert spoken is not None
    return spoken.truth(scenario, stream=True).kind


def go_through(place: Place, provider: Provider, scenarios: Iterator[str]) -> list[str]:
    """Run each scenario; what is not as it should be."""
    mistakes: list[str] = []
    for scenario in scenarios:
        done = place.run(provider, scenario)
        kind = None if done.code == 0 else error_of(done)["kind"]
        calls = 4 if kind == "tool.failed" else 0 if scenario == "refused" else 1
        seen = place.lab.calls()
        if (kind, seen) != (expected(provider, scenario), calls):
            mistakes.append(f"{scenario}: {kind}, {seen} calls; expected {expected(provider, scenario)}")
        if kind == "provider.output_truncated" and error_of(done)["details"].get("usage") != USED:
            mistakes.append(f"{scenario}: the tokens are not reported")
        if kind in CONTENT and (done.out, error_of(done)["error_category"]) != ("", "content"):
            mistakes.append(f"{scenario}: it is no content, or has a result")
        if KEY in done.out + done.err:
            mistakes.append(f"{scenario}: the key is shown")
    return mistakes


def shown_by(provider: Provider) -> list[str]:
    spoken = dialect(provider.dialect)
    assert spoken is not None
    return [name for name in SCENARIOS if name != "ok" and spoken.answer(name) is not None]


@pytest.mark.acceptance("pipelex 45", "pipelex 46")
@pytest.mark.parametrize(
    "provider",
    # Each of the others loads an SDK of its own.
    [
        pytest.param(
            provider, marks=[] if provider.name in EVERY_TIME else pytest.mark.slow, id=provider.name
        )
        for provider in PROVIDERS
    ],
)
def test_a_provider_answers_calls_tools_and_fails_as_it_is(place: Place, provider: Provider) -> None:
    installed(provider)

    answered = place.run(provider, "ok")
    assert answered.code == 0, answered.err
    assert answered.data == {"result": "Hello from the lab."}

    place.lab.script(
        provider.dialect, LabTurn(calls=(("find_city", {"city": "Oslo"}),)), LabTurn("In the north.")
    )
    called = place.run(provider, "ok")
    assert called.code == 0, called.err
    assert (called.data, place.lab.calls()) == ({"result": "In the north."}, 2)
    (request, second) = place.lab.requests(provider.dialect, "ok")
    assert request.stream is True
    assert "in the north" in json.dumps(second.body)

    assert go_through(place, provider, iter([name for name in QUICK if name in shown_by(provider)])) == []
    assert not place.holds_key()


@pytest.mark.slow
@pytest.mark.acceptance("pipelex 46")
@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name)
def test_every_failure_of_a_provider_is_what_it_is(place: Place, provider: Provider) -> None:
    installed(provider)

    assert go_through(place, provider, iter(shown_by(provider))) == []
