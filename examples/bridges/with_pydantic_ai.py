"""Pydantic AI moves on to another model only where that one may succeed.

python examples/bridges/with_pydantic_ai.py
"""

import asyncio

from pydantic_ai import Agent, ModelHTTPError, ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import AgentInfo, FunctionModel

import failwell
from failwell.integrations.pydantic_ai import fallback_on


def refusing(status: int) -> FunctionModel:
    """A model whose provider answers with `status`."""

    def refuse(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        raise ModelHTTPError(status_code=status, model_name="first")

    return FunctionModel(refuse)


def answering() -> FunctionModel:
    """A model that works."""

    def answer(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=[TextPart("an answer of the second model")])

    return FunctionModel(answer)


def ask(first: FunctionModel) -> str:
    """Ask the first model, and the second where that may help."""
    agent = Agent(FallbackModel(first, answering(), fallback_on=fallback_on))
    return asyncio.run(agent.run("why?")).output


def main() -> None:
    """An overloaded provider is left; a request that is itself at fault is not sent again."""
    print(ask(refusing(503)))
    try:
        ask(refusing(422))
    except ModelHTTPError as error:
        print("not sent again:", failwell.describe(error).kind)


if __name__ == "__main__":
    main()
