"""`failwell.agents.repair` on the message objects of Pydantic AI and LangChain: they stay objects, and the next run goes on."""

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from failwell.agents import drop_oldest_tool_results, repair
from failwell.testing import lab

# The frameworks are imported by the tests: every process that runs tests would load them otherwise.
if TYPE_CHECKING:
    from pydantic_ai import messages


def question(text: str = "Pay.") -> "messages.ModelRequest":
    from pydantic_ai import messages

    return messages.ModelRequest(parts=[messages.UserPromptPart(text)])


def answer(*parts: "messages.ModelResponsePart") -> "messages.ModelResponse":
    from pydantic_ai import messages

    return messages.ModelResponse(parts=parts)


def test_an_open_call_of_pydantic_ai_is_closed_with_its_own_parts() -> None:
    from pydantic_ai import messages

    history = [
        question(),
        answer(
            messages.TextPart("I pay."),
            messages.ToolCallPart("pay", {"sum": 1}, "c1"),
            messages.ToolCallPart("pay", '{"su', "c2"),
        ),
    ]

    repaired = repair(history)

    assert [change.what for change in repaired.changes] == ["drop_call", "close_call"]
    assert repaired.messages[0] is history[0]
    assert [part.part_kind for part in repaired.messages[1].parts] == ["text", "tool-call"]
    (result,) = repaired.messages[2].parts
    assert isinstance(result, messages.ToolReturnPart)
    assert (result.tool_call_id, result.outcome) == ("c1", "interrupted")
    assert repair(repaired.messages).changes == ()
    assert repair(history) == repaired
    assert len(history[1].parts) == 3


def test_a_run_of_pydantic_ai_goes_on_with_a_repaired_history() -> None:
    from openai import AsyncOpenAI
    from pydantic_ai import Agent, messages
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    history = [
        question(),
        answer(messages.ToolCallPart("pay", {}, "c1"), messages.ToolCallPart("pay", {}, "c2")),
        messages.ModelRequest(parts=[messages.ToolReturnPart("pay", "paid", "c2")]),
    ]

    with lab(strict=True) as fake:

        async def run() -> str:
            repaired = repair(history, "pydantic-ai", continue_with="Continue.")
            async with AsyncOpenAI(base_url=fake.url("openai", "ok") + "/v1", api_key="lab") as client:
                agent = Agent(OpenAIChatModel("gpt-lab", provider=OpenAIProvider(openai_client=client)))
                result = await agent.run("And now?", message_history=repaired.messages)
            return result.output

        assert asyncio.run(run()) == "Hello from the lab."
        sent = fake.requests("openai", "ok")[0].body["messages"]
    assert sorted(message["tool_call_id"] for message in sent if message["role"] == "tool") == ["c1", "c2"]


def test_an_open_call_of_langchain_is_closed_with_a_tool_message() -> None:
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

    call = {"name": "pay", "args": {"sum": 1}, "id": "c1", "type": "tool_call"}
    half: Any = {"name": "pay", "args": '{"su', "id": "c2", "error": None, "type": "invalid_tool_call"}
    block: dict[str, Any] = {"type": "tool_use", "id": "c2", "name": "pay", "input": {}}
    content: Any = [{"type": "text", "text": "I pay."}, {**block, "id": "c1"}, block]
    history = [
        SystemMessage("Be brief."),
        HumanMessage("Pay."),
        AIMessage(content=content, tool_calls=[call], invalid_tool_calls=[half]),
        ToolMessage("late", tool_call_id="c9"),
        AIMessage(""),
    ]

    repaired = repair(history)

    assert [change.what for change in repaired.changes] == [
        "drop_result",
        "drop_call",
        "close_call",
        "drop_message",
    ]
    assert [message.type for message in repaired.messages] == ["system", "human", "ai", "tool"]
    assert [part.get("id") for part in repaired.messages[2].content] == [None, "c1"]
    assert repaired.messages[2].invalid_tool_calls == []
    assert (repaired.messages[3].tool_call_id, repaired.messages[3].status) == ("c1", "error")
    assert repair(repaired.messages, "langchain").changes == ()
    assert len(history[2].content) == 3


def test_long_results_of_frameworks_are_shortened_too() -> None:
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    call: Any = {"name": "read", "args": {}, "id": "c1", "type": "tool_call"}
    history = [
        HumanMessage("Read."),
        AIMessage("", tool_calls=[call]),
        ToolMessage("x" * 5000, tool_call_id="c1"),
        AIMessage("Done."),
    ]

    shorter = drop_oldest_tool_results(history)

    assert shorter[2].content.startswith("[The result was removed, 5000 characters")


def test_messages_of_another_format_are_named() -> None:
    from langchain_core.messages import HumanMessage

    with pytest.raises(
        TypeError, match=r"messages\[0\] is a `HumanMessage`, which is not a message of the format `openai`"
    ):
        repair([HumanMessage("Hello")], format="openai")
    with pytest.raises(
        TypeError, match=r"messages\[1\] is a `dict`, which is not a message of the format `langchain`"
    ):
        repair([HumanMessage("Hello"), {"role": "user", "content": "x"}])
