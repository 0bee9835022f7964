"""`failwell.agents.repair`: what it closes, drops and moves in each format, and what it says about it."""

import json
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import pytest

from failwell.agents import FORMATS, RepairedMessages, repair

USER = {"role": "user", "content": "Pay the bill."}


def chat_call(call_id: str, arguments: str = "{}", name: str = "pay") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def tool_use(call_id: str, arguments: Any = None) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "pay", "input": {} if arguments is None else arguments}


def tool_result(call_id: str, text: str = "done") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": text}


def what(repaired: RepairedMessages) -> list[str]:
    return [change.what for change in repaired.changes]


def test_an_open_call_is_closed_with_a_result_that_says_it_may_have_run() -> None:
    messages = [
        USER,
        {"role": "assistant", "content": None, "tool_calls": [chat_call("c1"), chat_call("c2")]},
    ]
    messages.append({"role": "tool", "tool_call_id": "c1", "content": "paid"})
    before = deepcopy(messages)

    repaired = repair(messages, format="openai")

    assert messages == before
    assert repaired.messages[:3] == before
    result = json.loads(repaired.messages[3]["content"])
    assert repaired.messages[3]["tool_call_id"] == "c2"
    assert (result["kind"], result["retryable"]) == ("tool.interrupted", False)
    assert result["context"] == {"tool": "pay", "may_have_run": True}
    (change,) = repaired.changes
    assert (change.index, change.what, change.call_id) == (1, "close_call", "c2")


def test_a_call_that_was_not_started_is_closed_as_not_run() -> None:
    messages = [USER, {"role": "assistant", "content": [tool_use("t1"), tool_use("t2")]}]

    repaired = repair(messages, format="anthropic", started={"t1"})

    results = [json.loads(block["content"]) for block in repaired.messages[-1]["content"]]
    assert [result["context"]["may_have_run"] for result in results] == [True, False]


def test_a_list_that_needs_no_repair_keeps_its_messages() -> None:
    messages = [
        USER,
        {"role": "assistant", "content": [tool_use("t1")]},
        {"role": "user", "content": [tool_result("t1"), {"type": "text", "text": "Go on."}]},
        {"role": "assistant", "content": "Paid."},
    ]

    repaired = repair(messages, format="anthropic")

    assert repaired.changes == ()
    assert all(new is old for new, old in zip(repaired.messages, messages, strict=True))


OPENAI_CASES: list[tuple[list[Any], list[str]]] = [
    # A cut stream: the arguments end in the middle, so the tool cannot have run.
    ([USER, {"role": "assistant", "content": "Pay", "tool_calls": [chat_call("c1", '{"sum": 1')]}], ["drop_call"]),
    ([USER, {"role": "assistant", "tool_calls": [chat_call("c1", "")]}], ["drop_call", "drop_message"]),
    ([USER, {"role": "assistant", "content": ""}], ["drop_message"]),
    ([USER, {"role": "assistant", "content": "Hello", "tool_calls": []}], ["rewrite_message"]),
    ([USER, {"role": "tool", "tool_call_id": "c9", "content": "late"}], ["drop_result"]),
    ([{"role": "system", "content": "Be short."}, {"role": "user", "content": None}], ["drop_block", "drop_message"]),
    (
        [USER, {"role": "assistant", "tool_calls": [chat_call("c1", "oops")]},
         {"role": "tool", "tool_call_id": "c1", "content": "not JSON"}],
        ["empty_arguments"],
    ),
    (
        [USER, {"role": "assistant", "tool_calls": [chat_call("c1")]}, USER,
         {"role": "tool", "tool_call_id": "c1", "content": "paid"}],
        ["move_result"],
    ),
    (
        [USER, {"role": "assistant", "tool_calls": [chat_call("c1")]},
         {"role": "tool", "tool_call_id": "c1", "content": None}],
        ["fill_result"],
    ),
    (
        [USER, {"role": "assistant", "tool_calls": [chat_call("c1")]},
         {"role": "tool", "tool_call_id": "c1", "content": "a"},
         {"role": "tool", "tool_call_id": "c1", "content": "b"}],
        ["drop_result"],
    ),
    ([USER, {"role": "assistant", "tool_calls": [chat_call("x" * 41)]}], ["rename_call", "close_call"]),
]  # fmt: skip


@pytest.mark.parametrize(("messages", "changes"), OPENAI_CASES)
def test_what_openai_refuses_is_mended(messages: list[Any], changes: list[str]) -> None:
    repaired = repair(messages, format="openai")

    assert what(repaired) == changes
    assert repair(repaired.messages, format="openai").changes == ()


ANTHROPIC_CASES: list[tuple[list[Any], list[str]]] = [
    ([USER, {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm", "signature": ""}]}],
     ["drop_block", "drop_message"]),
    ([USER, {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm", "signature": "s"}]}],
     ["drop_block", "drop_message"]),
    ([USER, {"role": "assistant", "content": [{"type": "text", "text": "I pay. "}]}], ["trim_text"]),
    ([USER, {"role": "assistant", "content": [{"type": "text", "text": ""}, tool_use("t1")]}],
     ["drop_block", "close_call"]),
    ([USER, {"role": "assistant", "content": [tool_use("t1", '{"sum')]}], ["drop_call", "drop_message"]),
    ([{"role": "assistant", "content": "Hello."}, USER], ["drop_message"]),
    ([USER, {"role": "user", "content": [tool_result("t9")]}], ["drop_result"]),
    (
        [USER, {"role": "assistant", "content": [tool_use("t1")]},
         {"role": "user", "content": [{"type": "text", "text": "And?"}, tool_result("t1")]}],
        ["move_result"],
    ),
    (
        [USER, {"role": "assistant", "content": [tool_use("t1")]}, {"role": "user", "content": [tool_result("t1")]},
         {"role": "assistant", "content": [tool_use("t1")]}],
        ["rename_call", "close_call"],
    ),
    # A stored reply of the SDK, whose stream was cut: its input was parsed as far as it came.
    (
        [USER, {"id": "msg_1", "type": "message", "role": "assistant", "stop_reason": None,
                "content": [{"type": "text", "text": "I pay."}, tool_use("t1", {"sum": 1})]}],
        ["drop_call", "rewrite_message"],
    ),
    (
        [USER, {"role": "assistant", "content": [
            {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []},
            {"type": "text", "text": "Found."}]}],
        ["drop_block"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("messages", "changes"), ANTHROPIC_CASES)
def test_what_anthropic_refuses_is_mended(messages: list[Any], changes: list[str]) -> None:
    repaired = repair(messages, format="anthropic")

    assert what(repaired) == changes
    assert repair(repaired.messages, format="anthropic").changes == ()


def test_results_come_first_in_the_users_next_message() -> None:
    messages = [
        USER,
        {"role": "assistant", "content": [tool_use("t1"), tool_use("t2")]},
        {"role": "user", "content": "Never mind."},
        {"role": "assistant", "content": "Fine."},
        {"role": "user", "content": [tool_result("t1")]},
    ]

    repaired = repair(messages, format="anthropic")

    kinds = [block["type"] for block in repaired.messages[2]["content"]]
    assert kinds == ["tool_result", "tool_result", "text"]
    assert [block["tool_use_id"] for block in repaired.messages[2]["content"][:2]] == ["t1", "t2"]
    assert len(repaired.messages) == 4


def test_the_items_of_responses_are_paired_by_call_id_and_reasoning_has_its_item() -> None:
    reasoning: dict[str, Any] = {"type": "reasoning", "id": "rs_1", "summary": []}
    call = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "pay", "arguments": "{}"}
    half = {**call, "id": "fc_2", "call_id": "c2", "arguments": '{"su', "status": "in_progress"}

    repaired = repair([USER, reasoning, call, {**reasoning, "id": "rs_2"}, half], format="openai-responses")

    assert [item.get("type", "message") for item in repaired.messages] == [
        "message", "reasoning", "function_call", "function_call_output",
    ]  # fmt: skip
    assert what(repaired) == ["drop_call", "drop_block", "close_call"]


def test_googles_responses_are_as_many_as_its_calls_and_calls_stay_signed() -> None:
    call = {"functionCall": {"name": "pay", "args": {"sum": 1}}}
    messages: list[Any] = [
        {"role": "user", "parts": [{"text": "Pay twice."}]},
        {"role": "model", "parts": [{**call, "thoughtSignature": "c2ln"}, call]},
        {"role": "user", "parts": [{"functionResponse": {"name": "pay", "response": {"ok": True}}}]},
        {"role": "model", "parts": [{"function_call": {"name": "pay", "args": {}}}]},
    ]

    repaired = repair(messages, format="google")

    responses = [part["functionResponse"]["name"] for part in repaired.messages[2]["parts"]]
    assert responses == ["pay", "pay"]
    assert repaired.messages[3]["parts"][0]["thoughtSignature"] == "skip_thought_signature_validator"
    assert len(repaired.messages[4]["parts"]) == 1
    assert what(repaired) == ["close_call", "close_call", "sign_call"]
    assert repair(repaired.messages).changes == ()


def test_bedrocks_messages_alternate() -> None:
    messages: list[Any] = [
        {"role": "user", "content": [{"text": "Pay."}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t1", "name": "pay", "input": {}}}]},
        {"role": "assistant", "content": [{"text": " "}]},
        {"role": "assistant", "content": [{"text": "Done."}]},
        {"role": "assistant", "content": [{"text": "Really."}]},
    ]

    repaired = repair(messages)

    assert [message["role"] for message in repaired.messages] == ["user", "assistant", "user", "assistant"]
    assert repaired.messages[2]["content"][0]["toolResult"]["status"] == "error"


def test_mistrals_ids_have_nine_letters_or_digits() -> None:
    messages = [USER, {"role": "assistant", "tool_calls": [chat_call("call_abc")]}]
    messages.append({"role": "tool", "tool_call_id": "call_abc", "name": "pay", "content": "paid"})

    repaired = repair(messages, format="mistral")

    call_id = repaired.messages[1]["tool_calls"][0]["id"]
    assert len(call_id) == 9
    assert call_id.isalnum()
    assert repaired.messages[2]["tool_call_id"] == call_id
    assert repair(repaired.messages, format="mistral").changes == ()


def test_a_result_that_comes_after_its_call_was_closed_takes_its_place() -> None:
    closed = repair([USER, {"role": "assistant", "tool_calls": [chat_call("c1")]}], format="openai")

    again = repair([*closed.messages, {"role": "tool", "tool_call_id": "c1", "content": "paid"}], "openai")

    assert [message.get("content") for message in again.messages[2:]] == ["paid"]
    assert what(again) == ["drop_result"]


def test_a_users_message_is_added_once_where_the_model_spoke_last() -> None:
    messages = [USER, {"role": "assistant", "content": "I pay"}]

    repaired = repair(messages, format="openai", continue_with="Continue.")

    assert repaired.messages[-1] == {"role": "user", "content": "Continue."}
    assert repair(repaired.messages, format="openai", continue_with="Continue.").changes == ()


def test_objects_of_the_sdks_are_accepted() -> None:
    from anthropic.types import TextBlock, ToolUseBlock
    from google.genai import types as genai
    from openai.types.chat import ChatCompletionMessage

    openai = ChatCompletionMessage.model_validate({"role": "assistant", "tool_calls": [chat_call("c1")]})
    anthropic = [
        TextBlock(type="text", text="I pay."),
        ToolUseBlock(type="tool_use", id="t1", name="pay", input={}),
    ]
    google = genai.Content(
        role="model", parts=[genai.Part(function_call=genai.FunctionCall(name="pay", args={}))]
    )
    asked = genai.Content(role="user", parts=[genai.Part(text="Pay.")])

    assert repair([USER, openai]).messages[-1]["tool_call_id"] == "c1"
    assert repair([USER, {"role": "assistant", "content": anthropic}]).messages[-1]["role"] == "user"
    assert "functionResponse" in repair([asked, google]).messages[-1]["parts"][0]


@dataclass
class Note:
    role: str
    content: str | None = None


def test_dataclasses_are_accepted_and_other_objects_are_named() -> None:
    assert repair([Note("user", "Hello")]).messages == [{"role": "user", "content": "Hello"}]
    with pytest.raises(TypeError, match=r"messages\[1\] is a `object`"):
        repair([USER, object()])
    with pytest.raises(TypeError, match="a list of messages"):
        repair(USER)


def test_a_message_that_contains_itself_is_named() -> None:
    content: list[Any] = []
    content.append(content)

    with pytest.raises(TypeError, match=r"messages\[1\] is nested too deeply"):
        repair([{"role": "user", "content": "hi"}, {"role": "user", "content": content}])


def test_an_unknown_format_is_refused_with_the_list() -> None:
    with pytest.raises(ValueError, match="no message format `opnai`") as caught:
        repair([USER], format="opnai")

    assert all(f"`{name}`" in str(caught.value) for name in FORMATS)


def test_formats_are_recognised_by_their_messages() -> None:
    half = {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm"}]}

    assert repair([]).messages == []
    assert repair([USER, half]).messages == [USER]
    assert repair([USER, {"type": "reasoning", "id": "rs_1", "summary": []}]).messages == [USER]
