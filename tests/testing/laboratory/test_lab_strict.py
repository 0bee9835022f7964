"""The strict lab: it refuses a conversation with the status, the type and the words of the provider, through its SDK."""

import json
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from failwell.testing import Lab, LabTurn, NoSuchFailure, lab

_SDKS = "`make test` runs it with the SDKs"
USER = {"role": "user", "content": "Hello"}
CALL = {"id": "c1", "type": "function", "function": {"name": "pay", "arguments": "{}"}}
USE: dict[str, Any] = {"type": "tool_use", "id": "t1", "name": "pay", "input": {}}


def post(fake: Lab, dialect: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    request = Request(fake.url(dialect, "ok") + path, json.dumps(body).encode())
    try:
        with urlopen(request) as reply:
            return reply.status, json.loads(reply.read())
    except HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def test_openais_refusal_is_a_bad_request_of_its_sdk_that_names_the_open_call() -> None:
    openai: Any = pytest.importorskip("openai", reason=_SDKS)

    messages: Any = [USER, {"role": "assistant", "content": None, "tool_calls": [CALL]}]
    with lab(strict=True) as fake:
        client = openai.OpenAI(base_url=fake.url("openai", "ok") + "/v1", api_key="lab", max_retries=0)

        with pytest.raises(openai.BadRequestError) as caught:
            client.chat.completions.create(model="gpt-lab", messages=messages)

        messages.append({"role": "tool", "tool_call_id": "c1", "content": "paid"})
        assert client.chat.completions.create(model="gpt-lab", messages=messages).choices
    body: Any = caught.value.body
    assert (body["type"], body["param"], body["code"]) == ("invalid_request_error", "messages.[2].role", None)
    assert body["message"].endswith("did not have response messages: c1")


CHAT_CASES: list[tuple[list[Any], str]] = [
    ([], "Invalid 'messages': empty array."),
    ([{"role": "robot", "content": "x"}], "Invalid value: 'robot'."),
    ([{"role": "user", "content": None}], "expected a string, got null"),
    ([USER, {"role": "assistant", "content": "x", "tool_calls": []}], "Invalid 'messages[1].tool_calls': empty array."),
    ([USER, {"role": "tool", "tool_call_id": "c1", "content": "x"}], "must be a response to a preceeding message"),
    (
        [USER, {"role": "assistant", "tool_calls": [CALL]}, {"role": "tool", "tool_call_id": "c2", "content": "x"}],
        "'tool_call_id' of 'c2' not found",
    ),
    ([USER, {"role": "assistant", "tool_calls": [{**CALL, "id": "x" * 41}]}], "string too long"),
]  # fmt: skip
RESPONSES_CASES: list[tuple[list[Any], str]] = [
    (
        [USER, {"type": "function_call", "call_id": "c1", "name": "pay", "arguments": "{}"}],
        "No tool output found for function call c1.",
    ),
    (
        [USER, {"type": "function_call_output", "call_id": "c1", "output": "x"}],
        "No tool call found for function call output with call_id c1.",
    ),
    (
        [USER, {"type": "reasoning", "id": "rs_1", "summary": []}],
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
    ),
    ([{"id": "m1", **USER}, {"id": "m1", **USER}], "Duplicate item found with id m1."),
]
MESSAGES_CASES: list[tuple[list[Any], str]] = [
    ([], "messages: at least one message is required"),
    ([{"role": "system", "content": "x"}], 'messages: Unexpected role "system".'),
    ([{"role": "assistant", "content": "x"}, USER], 'messages: first message must use the "user" role'),
    ([{"role": "user", "content": ""}], "messages.0: user messages must have non-empty content"),
    ([USER, {"role": "assistant", "content": []}, USER], "messages.1: all messages must have non-empty content"),
    ([USER, {"role": "assistant", "content": [{"type": "text", "text": ""}]}], "text content blocks must be non-empty"),
    ([USER, {"role": "assistant", "content": [USE]}], "messages.1: `tool_use` ids were found without `tool_result`"),
    (
        [USER, {"role": "assistant", "content": [USE]},
         {"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "tool_result", "tool_use_id": "t1"}]}],
        "blocks immediately after: t1",
    ),
    ([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t9"}]}], "unexpected `tool_use_id`"),
    (
        [USER, {"role": "assistant", "content": [USE]},
         {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1"}] * 2}],
        "each tool_use must have a single result",
    ),
    ([USER, {"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}]}], "thinking.signature: Field required"),
    (
        [USER, {"role": "assistant", "content": [{"type": "thinking", "thinking": "x", "signature": "s"}]}],
        "The final block in an assistant message cannot be `thinking`.",
    ),
    ([USER, {"role": "assistant", "content": [{**USE, "input": "{"}]}], "Input should be a valid dictionary"),
    ([USER, {"role": "assistant", "content": "x", "id": "msg_1"}], "messages.1.id: Extra inputs are not permitted"),
    ([USER, {"role": "assistant", "content": "x "}], "final assistant content cannot end with trailing whitespace"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "member", "cases"),
    [("/v1/chat/completions", "messages", CHAT_CASES), ("/v1/responses", "input", RESPONSES_CASES)],
)
def test_what_openai_does_not_accept(path: str, member: str, cases: list[tuple[list[Any], str]]) -> None:
    with lab(strict=True) as fake:
        for value, words in cases:
            status, body = post(fake, "openai", path, {"model": "gpt-lab", member: value})

            assert (status, body["error"]["type"]) == (400, "invalid_request_error"), words
            assert words in body["error"]["message"]


def test_what_anthropic_does_not_accept() -> None:
    with lab(strict=True) as fake:
        for messages, words in MESSAGES_CASES:
            body = {"model": "claude-haiku-4-5", "max_tokens": 9, "messages": messages}
            status, reply = post(fake, "anthropic", "/v1/messages", body)

            assert (status, reply["error"]["type"]) == (400, "invalid_request_error"), words
            assert words in reply["error"]["message"]


def test_anthropics_newer_models_do_not_continue_their_own_message() -> None:
    anthropic: Any = pytest.importorskip("anthropic", reason=_SDKS)

    messages: Any = [USER, {"role": "assistant", "content": "I"}]
    with lab(strict=True) as fake:
        client = anthropic.Anthropic(base_url=fake.url("anthropic", "ok"), api_key="lab", max_retries=0)

        assert client.messages.create(model="claude-haiku-4-5", max_tokens=9, messages=messages).content
        with pytest.raises(anthropic.BadRequestError, match="does not support assistant message prefill"):
            client.messages.create(model="claude-opus-4-6", max_tokens=9, messages=messages)


def test_what_google_does_not_accept() -> None:
    genai: Any = pytest.importorskip("google.genai", reason=_SDKS)

    asked = {"role": "user", "parts": [{"text": "Hello"}]}
    call: dict[str, Any] = {"role": "model", "parts": [{"functionCall": {"name": "pay", "args": {}}}]}
    result: dict[str, Any] = {
        "role": "user",
        "parts": [{"functionResponse": {"name": "pay", "response": {}}}],
    }
    cases: list[tuple[list[Any], str]] = [
        ([asked, {"role": "model", "parts": [{"text": "Hi"}]}], "multiturn requests ends with a user role"),
        ([asked, call, asked], "number of function response parts is equal"),
        ([asked, result], "function response turn comes immediately after a function call turn"),
        ([asked, {"role": "model", "parts": [{"text": "Hi"}]}, call, result], "function call turn comes immediately after"),
        ([asked, {"role": "model", "parts": []}], "contents.parts must not be empty"),
        ([{"role": "robot", "parts": [{"text": "x"}]}], "Please use a valid role"),
        ([asked, call, result], "missing a thought_signature"),
    ]  # fmt: skip
    with lab(strict=True) as fake:
        options = genai.types.HttpOptions(base_url=fake.url("google-genai", "ok"))
        client = genai.Client(api_key="lab", http_options=options)
        models: Any = client.models
        for contents, words in cases:
            with pytest.raises(genai.errors.ClientError, match=words) as caught:
                models.generate_content(model="gemini-3-pro", contents=contents)
            assert (caught.value.code, caught.value.status) == (400, "INVALID_ARGUMENT")
        # Older models do not sign their calls.
        assert models.generate_content(model="gemini-2.5-pro", contents=[asked, call, result]).text


def test_what_bedrock_and_mistral_do_not_accept() -> None:
    use: dict[str, Any] = {"toolUse": {"toolUseId": "t1", "name": "pay", "input": {}}}
    asked = {"role": "user", "content": [{"text": "Hello"}]}
    converse: list[tuple[list[Any], str]] = [
        (
            [asked, {"role": "assistant", "content": [use]}],
            "Expected toolResult blocks at messages.2.content",
        ),
        ([asked, asked], "must alternate between user and assistant roles"),
        ([{"role": "user", "content": [{"text": " "}]}], "is blank"),
        (
            [{"role": "user", "content": [{"toolResult": {"toolUseId": "t1"}}]}],
            "exceeds the number of toolUse blocks",
        ),
    ]
    chat: list[tuple[list[Any], str]] = [
        ([USER, {"role": "assistant", "tool_calls": [CALL]}], "must be a-z, A-Z, 0-9, with a length of 9"),
        ([USER, {"role": "tool", "tool_call_id": "c1", "content": "x"}], "Unexpected role 'tool' after role 'user'"),
        ([USER, {"role": "assistant", "tool_calls": [{**CALL, "id": "abcdefghi"}]}], "Not the same number of function calls"),
        ([USER, {"role": "assistant", "content": "x"}], "Expected last role User or Tool"),
    ]  # fmt: skip
    with lab(strict=True) as fake:
        for messages, words in converse:
            status, body = post(fake, "bedrock", "/model/lab/converse", {"messages": messages})
            assert (status, words in body["message"]) == (400, True), body
        for messages, words in chat:
            status, body = post(fake, "mistral", "/v1/chat/completions", {"messages": messages})
            assert (status, words in body["message"]) == (400, True), body


def test_a_lab_that_is_not_strict_answers_everything_and_failures_come_first() -> None:
    body = {"model": "gpt-lab", "messages": [{"role": "tool", "content": None}]}
    with lab() as fake:
        assert post(fake, "openai", "/v1/chat/completions", body)[0] == 200
        fake.strict = True
        assert post(fake, "openai", "/v1/chat/completions", body)[0] == 400
        request = Request(
            fake.url("openai", "overloaded") + "/v1/chat/completions", json.dumps(body).encode()
        )
        with pytest.raises(HTTPError, match="503"):
            urlopen(request)


def test_a_script_is_said_turn_by_turn_and_then_the_usual_answer_comes() -> None:
    openai: Any = pytest.importorskip("openai", reason=_SDKS)

    with lab() as fake:
        fake.script("openai", LabTurn(calls=(("pay", {"sum": 1}),)), LabTurn("Paid."))
        client = openai.OpenAI(base_url=fake.url("openai", "ok") + "/v1", api_key="lab", max_retries=0)
        ask: Any = client.chat.completions.create

        replies = [ask(model="gpt-lab", messages=[USER]).choices[0].message for _ in range(3)]

        assert replies[0].tool_calls[0].function.arguments == '{"sum": 1}'
        assert [reply.content for reply in replies[1:]] == ["Paid.", "Hello from the lab."]
        with pytest.raises(NoSuchFailure, match="no scripted replies of `plain`"):
            fake.script("plain", LabTurn("x"))
