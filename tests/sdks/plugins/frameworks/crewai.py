"""CrewAI: a crew of one agent on its OpenAI model."""

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

from failwell.integrations.crewai import reliability
from tests.sdks.plugins.scenarios import ToolBroke

NAME = "CrewAI"
PACKAGE = "crewai"
LINE = "reliability(crew).kickoff()"


def before(url: str) -> Callable[..., str]:
    return _crew(url, lambda crew: crew)


def after(url: str, **options: Any) -> Callable[..., str]:
    return _crew(url, lambda crew: reliability(crew, **options))


def _crew(url: str, change: Callable[[Any], Any]) -> Callable[..., str]:
    # It would send both over the network.
    os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false"}
    crewai: Any = import_module("crewai")
    tools: Any = import_module("crewai.tools")

    def weather(city: str) -> str:
        """The weather in a city."""
        raise ToolBroke

    def ask(stream: bool = False) -> str:
        model = crewai.LLM(model="openai/gpt-4o-mini", base_url=url, api_key="sk-lab", stream=stream)
        tool = tools.tool("weather")(weather)
        agent = crewai.Agent(role="a guide", goal="help", backstory="none", llm=model, tools=[tool])
        task = crewai.Task(description="hello", expected_output="an answer", agent=agent)
        return change(crewai.Crew(agents=[agent], tasks=[task])).kickoff().raw

    return ask
