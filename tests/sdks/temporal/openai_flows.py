# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportUnknownVariableType=false, reportUnknownMemberType=false
"""An agent of OpenAI Agents in a Temporal workflow. Temporal's sandbox loads this module anew for every run.

The framework is in an environment of its own, where no types are checked.
"""

from datetime import timedelta
from typing import Any

from agents import Agent, Runner
from temporalio import activity, workflow
from temporalio.openai_agents.workflow import activity_as_tool

weather_calls: list[int] = []


@activity.defn
async def weather(city: int) -> str:
    """The weather at a place, by its number."""
    weather_calls.append(city)
    return "rain"


@workflow.defn
class OpenAIFlow:
    """An agent with one tool, which is an activity."""

    @workflow.run
    async def run(self) -> str:
        tool: Any = activity_as_tool(weather, start_to_close_timeout=timedelta(seconds=20))
        agent: Any = Agent(name="lab", model="gpt-4o-mini", tools=[tool])
        return (await Runner.run(agent, "hello")).final_output
