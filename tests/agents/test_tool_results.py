"""`drop_oldest_tool_results`: a shorter conversation in which every call has its result."""

import json
from copy import deepcopy
from functools import partial
from typing import Any

import pytest

from failwell.agents import drop_oldest_tool_results, repair

LONG = "a line of a file. " * 200
"""3,600 characters."""


def _openai(results: list[str], *, answered: bool) -> list[Any]:
    messages: list[Any] = [{"role": "user", "content": "Read the files."}]
    for number, text in enumerate(results):
        call = {"id": f"call_{number}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": text})
    return [*messages, {"role": "assistant", "content": "Done."}, {"role": "user", "content": "And?"}][
        : None if answered else -2
    ]


def _anthropic(results: list[str], *, answered: bool) -> list[Any]:
    messages: list[Any] = [{"role": "user", "content": "Read the files."}]
    for number, text in enumerate(results):
        call: dict[str, Any] = {"type": "tool_use", "id": f"t{number}", "name": "read", "input": {}}
        messages.append({"role": "assistant", "content": [call]})
        result = {
            "type": "tool_result",
            "tool_use_id": f"t{number}",
            "content": [{"type": "text", "text": text}],
        }
        messages.append({"role": "user", "content": [result]})
    last = [{"role": "assistant", "content": "Done."}, {"role": "user", "content": "And?"}]
    return [*messages, *(last if answered else ())]


def _google(results: list[str], *, answered: bool) -> list[Any]:
    messages: list[Any] = [{"role": "user", "parts": [{"text": "Read the files."}]}]
    for text in results:
        messages.append(
            {
                "role": "model",
                "parts": [{"functionCall": {"name": "read", "args": {}}, "thoughtSignature": "c2ln"}],
            }
        )
        response = {"functionResponse": {"name": "read", "response": {"result": text}}}
        messages.append({"role": "user", "parts": [response]})
    last = [{"role": "model", "parts": [{"text": "Done."}]}, {"role": "user", "parts": [{"text": "And?"}]}]
    return [*messages, *(last if answered else ())]


def _responses(results: list[str], *, answered: bool) -> list[Any]:
    items: list[Any] = [{"role": "user", "content": "Read the files."}]
    for number, text in enumerate(results):
        items.append({"type": "function_call", "call_id": f"c{number}", "name": "read", "arguments": "{}"})
        items.append({"type": "function_call_output", "call_id": f"c{number}", "output": text})
    last = [{"role": "assistant", "content": "Done."}, {"role": "user", "content": "And?"}]
    return [*items, *(last if answered else ())]


FORMATS = {"openai": _openai, "anthropic": _anthropic, "google": _google, "openai-responses": _responses}


@pytest.mark.parametrize("name", FORMATS)
def test_the_oldest_results_go_first_and_every_call_keeps_its_result(name: str) -> None:
    texts = [f"{place} {LONG}" for place in ("first", "second", "third", "fourth")]
    messages = FORMATS[name](texts, answered=True)
    before = deepcopy(messages)

    shorter = drop_oldest_tool_results(messages, share=0.6)

    shown = json.dumps(shorter)
    assert messages == before
    assert len(shorter) == len(messages)
    assert len(shown) <= 0.6 * len(json.dumps(messages))
    assert ["first a line" in shown, "second a line" in shown] == [False, False]
    assert ["third a line" in shown, "fourth a line" in shown] == [True, True]
    assert shown.count("The result was removed") == 2
    assert repair(shorter, format=name).changes == ()


@pytest.mark.parametrize("name", FORMATS)
def test_a_result_that_the_model_has_not_read_is_cut_and_only_if_it_must_be(name: str) -> None:
    last_is_enough = FORMATS[name](["old " + LONG, "new " + "a line. " * 10], answered=False)
    last_is_huge = FORMATS[name](["old", "new " + LONG * 10], answered=False)

    kept = json.dumps(drop_oldest_tool_results(last_is_enough))
    cut = drop_oldest_tool_results(last_is_huge)

    assert ["old a line" in kept, "new a line" in kept] == [False, True]
    shown = json.dumps(cut)
    assert "new a line" in shown
    assert "The rest was removed" in shown
    assert len(shown) < 0.6 * len(json.dumps(last_is_huge))
    assert repair(cut, format=name).changes == ()


def test_messages_without_anything_to_take_out_are_returned_as_they_are() -> None:
    for messages in (
        [{"role": "user", "content": LONG}],
        _openai(["short"], answered=True),
        _anthropic(["short"], answered=False),
        [],
    ):
        assert drop_oldest_tool_results(messages) == messages
    done = drop_oldest_tool_results(_openai([LONG, LONG], answered=True), share=0)
    assert drop_oldest_tool_results(done, share=0) == done


def test_results_may_be_summarized() -> None:
    shrink = partial(drop_oldest_tool_results, summarize=lambda text: f"It begins with {text[:6]!r}.")

    shorter = shrink(_openai(["first " + LONG], answered=True))

    assert shorter[2]["content"].endswith("\nIt begins with 'first '.")


def test_objects_of_an_sdk_are_read() -> None:
    from google.genai import types as genai

    call = genai.FunctionCall(name="read", args={})
    response = genai.FunctionResponse(name="read", response={"result": LONG})
    contents = [
        genai.Content(role="user", parts=[genai.Part(text="Read it.")]),
        genai.Content(role="model", parts=[genai.Part(function_call=call)]),
        genai.Content(role="user", parts=[genai.Part(function_response=response)]),
        genai.Content(role="model", parts=[genai.Part(text="Done.")]),
    ]

    shorter = drop_oldest_tool_results(contents)

    assert [type(content) for content in shorter] == [genai.Content] * 4
    assert "a line" not in str(shorter)
    assert shorter[0] is contents[0]
    part = shorter[2].parts[0]
    assert "The result was removed" in str(part.function_response.response)


def test_messages_of_frameworks_are_read() -> None:
    langchain: Any = pytest.importorskip("langchain_core.messages")
    pydantic_ai: Any = pytest.importorskip("pydantic_ai.messages")
    call: dict[str, Any] = {"name": "read", "args": {}, "id": "c1"}
    conversations: list[list[Any]] = [
        [
            langchain.HumanMessage(content="Read it."),
            langchain.AIMessage(content="", tool_calls=[call]),
            langchain.ToolMessage(content=LONG, tool_call_id="c1"),
            langchain.AIMessage(content="Done."),
        ],
        [
            pydantic_ai.ModelRequest(parts=[pydantic_ai.UserPromptPart("Read it.")]),
            pydantic_ai.ModelResponse(parts=[pydantic_ai.ToolCallPart("read", {}, "c1")]),
            pydantic_ai.ModelRequest(parts=[pydantic_ai.ToolReturnPart("read", LONG, "c1")]),
            pydantic_ai.ModelResponse(parts=[pydantic_ai.TextPart("Done.")]),
        ],
    ]
    for messages in conversations:
        before = str(messages)

        shorter = drop_oldest_tool_results(messages)

        assert str(messages) == before
        assert [type(message) for message in shorter] == [type(message) for message in messages]
        assert [new is old for new, old in zip(shorter, messages, strict=True)] == [True, True, False, True]
        assert "a line" not in str(shorter)
        assert str(shorter).count("c1") == before.count("c1")
        unread = drop_oldest_tool_results([*messages[:2], messages[2]])
        assert "The rest was removed" in str(unread)


def test_wrong_parameters_are_refused() -> None:
    with pytest.raises(ValueError, match="share"):
        drop_oldest_tool_results([], share=2)
    with pytest.raises(ValueError, match="no message format `acme`"):
        drop_oldest_tool_results([], "acme")
    with pytest.raises(TypeError, match=r"messages\[0\]"):
        drop_oldest_tool_results([object()])
    with pytest.raises(TypeError, match="summarize"):
        drop_oldest_tool_results([], summarize=3)  # pyright: ignore[reportArgumentType]
