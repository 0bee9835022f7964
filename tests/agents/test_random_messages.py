"""Lists of messages that nobody would write: whatever they hold, the provider accepts what `repair` makes of them."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failwell.agents import repair
from failwell.testing.laboratory.dialect import Refusal
from failwell.testing.laboratory.dialects.anthropic import refuse_messages
from failwell.testing.laboratory.dialects.bedrock import refuse_converse
from failwell.testing.laboratory.dialects.chat import refuse_chat
from failwell.testing.laboratory.dialects.google import refuse_contents
from failwell.testing.laboratory.dialects.mistral import refuse_mistral
from failwell.testing.laboratory.dialects.responses import refuse_responses

Strategy = st.SearchStrategy[Any]

texts = st.sampled_from(["", " ", "Hello.", "Hello. ", "x"])
ids = st.sampled_from(["", "c1", "c2", "c3", "call_4", "a b", "x" * 50])
names = st.sampled_from(["", "pay", "search"])
arguments = st.sampled_from(["", "{}", '{"sum": 1}', '{"su', "[]", "null"])
objects = st.sampled_from([{}, {"sum": 1}, "", '{"su', None, []])


def fields(**members: Strategy) -> Strategy:
    return st.fixed_dictionaries(members)


def constant(value: object) -> Strategy:
    return st.just(value)


def chat(*roles: str) -> Strategy:
    call = fields(id=ids, type=constant("function"), function=fields(name=names, arguments=arguments))
    content = st.one_of(st.none(), texts, st.lists(fields(type=constant("text"), text=texts), max_size=2))
    assistant = st.one_of(
        fields(role=constant("assistant"), content=content),
        fields(role=constant("assistant"), content=content, tool_calls=st.lists(call, max_size=3)),
    )
    tool = fields(role=constant("tool"), tool_call_id=ids, content=st.one_of(st.none(), texts))
    user = fields(role=st.sampled_from(roles), content=content)
    return st.lists(st.one_of(assistant, tool, user), max_size=8)


def responses() -> Strategy:
    status = st.sampled_from(["completed", "in_progress"])
    parts = st.lists(fields(type=constant("output_text"), text=texts), max_size=2)
    item = st.one_of(
        fields(type=constant("reasoning"), summary=constant([]), status=status),
        fields(type=constant("function_call"), call_id=ids, name=names, arguments=arguments, status=status),
        fields(type=constant("function_call_output"), call_id=ids, output=st.one_of(st.none(), texts)),
        fields(type=constant("message"), role=constant("assistant"), content=parts, status=status),
        fields(role=constant("user"), content=texts),
    )
    return st.lists(item, max_size=10)


def anthropic() -> Strategy:
    text = fields(type=constant("text"), text=texts)
    spoken = st.one_of(
        text,
        fields(type=constant("thinking"), thinking=texts, signature=st.sampled_from(["", "sig"])),
        fields(type=constant("thinking"), thinking=texts),
        fields(type=constant("tool_use"), id=ids, name=names, input=objects),
    )
    heard = st.one_of(text, fields(type=constant("tool_result"), tool_use_id=ids, content=texts))
    message = st.one_of(
        fields(role=constant("assistant"), content=st.one_of(texts, st.lists(spoken, max_size=4))),
        fields(role=constant("user"), content=st.one_of(texts, st.lists(heard, max_size=4))),
    )
    return st.lists(message, max_size=7)


def bedrock() -> Strategy:
    text = fields(text=texts)
    use = fields(toolUse=fields(toolUseId=ids, name=names, input=objects))
    content = st.lists(st.one_of(fields(text=texts), fields(json=constant({}))), max_size=1)
    result = fields(
        toolResult=fields(toolUseId=ids, content=content, status=st.sampled_from(["success", "error"]))
    )
    message = st.one_of(
        fields(role=constant("assistant"), content=st.lists(st.one_of(text, use), max_size=3)),
        fields(role=constant("user"), content=st.lists(st.one_of(text, result), max_size=3)),
    )
    return st.lists(message, max_size=7)


def google() -> Strategy:
    text = fields(text=texts)
    call = st.one_of(
        fields(functionCall=fields(name=names, args=objects)),
        fields(functionCall=fields(name=names, args=objects, id=ids)),
        fields(functionCall=fields(name=names, args=objects), thoughtSignature=constant("c2ln")),
    )
    response = st.sampled_from([{"output": 1}, {}, None])
    result = st.one_of(
        fields(functionResponse=fields(name=names, response=response)),
        fields(functionResponse=fields(name=names, response=response, id=ids)),
    )
    thought = fields(text=texts, thought=st.just(value=True))
    message = st.one_of(
        fields(
            role=constant("model"), parts=st.lists(st.one_of(text, call, thought, constant({})), max_size=3)
        ),
        fields(role=constant("user"), parts=st.lists(st.one_of(text, result), max_size=3)),
    )
    return st.lists(message, max_size=7)


CHECKS: dict[str, tuple[Strategy, Callable[[list[Any]], Refusal | None]]] = {
    "openai": (chat("user", "system"), lambda messages: refuse_chat({"messages": messages})),
    "mistral": (chat("user"), lambda messages: refuse_mistral({"messages": messages})),
    "openai-responses": (responses(), lambda items: refuse_responses({"input": items})),
    "anthropic": (anthropic(), lambda messages: refuse_messages({"messages": messages, "model": "claude-opus-5"})),
    "bedrock": (bedrock(), lambda messages: refuse_converse({"messages": messages})),
    "google": (google(), lambda contents: refuse_contents({"contents": contents}, "/models/gemini-2.5-pro:generateContent")),
}  # fmt: skip


@pytest.mark.parametrize("name", CHECKS)
def test_whatever_the_messages_hold_the_provider_accepts_what_repair_makes_of_them(name: str) -> None:
    messages_of, refuse = CHECKS[name]
    tried = refused = 0

    @given(messages_of)
    def check(messages: list[Any]) -> None:
        nonlocal tried, refused
        tried += 1
        before = deepcopy(messages)
        refused += refuse(messages) is not None

        repaired = repair(messages, format=name, continue_with="Continue.")

        assert refuse(repaired.messages) is None, repaired
        assert messages == before
        again = repair(repaired.messages, format=name, continue_with="Continue.")
        assert (again.messages, again.changes) == (repaired.messages, ())

    check()

    assert refused > tried / 5


def test_the_time_grows_with_the_number_of_messages_and_not_faster() -> None:
    calls = 0

    class Counted(dict[str, Any]):
        def get(self, key: str, default: Any = None) -> Any:
            nonlocal calls
            calls += 1
            return super().get(key, default)

    def work(size: int) -> int:
        nonlocal calls
        calls = 0
        call = {"id": "c1", "type": "function", "function": {"name": "pay", "arguments": "{}"}}
        messages = [
            Counted(role="assistant", tool_calls=[call])
            if place % 2
            else Counted(role="tool", tool_call_id="c9", content="")
            for place in range(size)
        ]
        repair(messages, format="openai")
        return calls

    assert work(2_000) <= 2 * work(1_000) + 20


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.sampled_from(["", "x", "assistant", "tool", "model", "c1", "{}"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from([
                "role", "type", "content", "parts", "tool_calls", "tool_call_id", "id", "name", "function", "arguments", "text",
                "input", "output", "call_id", "tool_use_id", "toolUse", "toolResult", "toolUseId", "functionCall",
                "functionResponse", "response", "signature", "status", "summary", "custom", "args",
            ]),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)  # fmt: skip


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["role", "type", "content", "parts", "tool_calls", "call_id"]), values
        ),
        max_size=4,
    )
)
def test_messages_of_any_shape_are_repaired_without_an_error(messages: list[Any]) -> None:
    for name in (None, *CHECKS, "cohere"):
        repaired = repair(messages, format=name)

        assert isinstance(repaired.messages, list)
