"""Google ADK: an agent on Gemini."""

import asyncio
import json
from collections.abc import Callable
from importlib import import_module
from typing import Any

from failwell.integrations.google_adk import reliability
from failwell.testing.laboratory.lab_reply import LabCall, Reply, as_json
from tests.sdks.plugins.scenarios import OK, ToolBroke

NAME = "Google ADK"
PACKAGE = "google-adk"
LINE = "App(..., plugins=[reliability()])"
DIALECT = "google-genai"


def _calls_tool(_dialect: str, _call: LabCall) -> Reply:
    call = {"functionCall": {"name": "weather", "args": {"city": "Oslo"}}}
    content = {"role": "model", "parts": [call]}
    return as_json(200, {"candidates": [{"index": 0, "content": content, "finishReason": "STOP"}]})


STEPS = {"tool_error": (_calls_tool, OK)}


def before(url: str) -> Callable[..., str]:
    return _agent(url)


def after(url: str, **options: Any) -> Callable[..., str]:
    return _agent(url, plugins=[reliability(**options)])


def seen(requests: list[dict[str, Any]]) -> str:
    parts = [part for content in requests[-1]["contents"] for part in content["parts"]]
    return "\n".join(
        json.dumps(part["functionResponse"]["response"]) for part in parts if "functionResponse" in part
    )


def _agent(url: str, **parameters: Any) -> Callable[..., str]:
    agents: Any = import_module("google.adk.agents")
    configs: Any = import_module("google.adk.agents.run_config")
    apps: Any = import_module("google.adk.apps")
    models: Any = import_module("google.adk.models.google_llm")
    runners: Any = import_module("google.adk.runners")
    genai: Any = import_module("google.genai")

    def weather(city: str) -> str:
        """The weather in a city."""
        raise ToolBroke

    async def run(stream: bool) -> str:
        client = genai.Client(api_key="lab", http_options={"base_url": url.removesuffix("/v1")})
        model = models.Gemini(model="gemini-2.5-flash", client=client)
        agent = agents.LlmAgent(name="agent", model=model, tools=[weather])
        runner = runners.InMemoryRunner(app=apps.App(name="lab", root_agent=agent, **parameters))
        session = await runner.session_service.create_session(app_name="lab", user_id="user")
        mode = configs.StreamingMode.SSE if stream else configs.StreamingMode.NONE
        question = genai.types.Content(role="user", parts=[genai.types.Part(text="hello")])
        events = [
            event
            async for event in runner.run_async(
                user_id="user",
                session_id=session.id,
                new_message=question,
                run_config=configs.RunConfig(streaming_mode=mode),
            )
        ]
        return events[-1].content.parts[0].text

    def ask(stream: bool = False) -> str:
        return asyncio.run(run(stream))

    return ask
