"""An agent of Pydantic AI in a Temporal workflow. Temporal's sandbox loads this module anew for every run."""

import os

from pydantic_ai import Agent
from pydantic_ai.durable_exec.temporal import PydanticAIWorkflow, TemporalDurability
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from temporalio import workflow

from failwell.temporal.plugin import recover

# The client of the provider repeats by itself, as it does by default.
MODEL = OpenAIChatModel(
    "gpt-4o-mini",
    provider=OpenAIProvider(
        base_url=os.environ.get("FAILWELL_LAB_URL", "http://127.0.0.1:9/v1"), api_key="sk-lab"
    ),
)
AGENT: Agent[None, str] = Agent(MODEL, name="lab", capabilities=[TemporalDurability()])


@workflow.defn
class PydanticFlow(PydanticAIWorkflow):
    """An agent without tools."""

    __pydantic_ai_agents__ = [AGENT]

    @workflow.run
    async def run(self) -> str:
        return (await AGENT.run("hello")).output


@workflow.defn
class CatchingFlow(PydanticAIWorkflow):
    """An agent whose failure is handled as the one of a model, as code for Pydantic AI does."""

    __pydantic_ai_agents__ = [AGENT]

    @workflow.run
    async def run(self) -> str:
        try:
            return (await AGENT.run("hello")).output
        except ModelHTTPError as error:
            return f"{error.status_code} {recover(error).kind}"
