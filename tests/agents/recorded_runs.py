"""Runs of a small agent against the lab, cut at every event: what its history holds when the process dies there."""

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from failwell.testing import Lab, LabTurn

if TYPE_CHECKING:
    # Loaded by the runs: to load them takes seconds in every process that only collects the tests.
    import anthropic
    import openai
    from google.genai import Client as GoogleClient

Messages = list[dict[str, Any]]
STEPS = 40
FAILED_STEPS = (7, 23)
"""Steps whose first call is answered with an overload."""


def script() -> list[LabTurn]:
    """Forty turns: thinking, texts that end in white space, one call, several calls, no call, calls without arguments."""
    turns: list[LabTurn] = []
    for step in range(STEPS):
        calls = tuple(
            (name, {"query": f"step {step}", "sum": 12 * step} if name != "now" else {})
            for name in (("search",), ("pay", "search"), ("now", "pay", "search"), ("now",))[step % 4]
        )
        is_spoken = step % 9 == 8 or step == STEPS - 1
        turns.append(
            LabTurn(
                text=f"Step {step} goes on like this. " if step % 3 else "",
                thinking=f"What does step {step} need?" if step % 2 else "",
                calls=() if is_spoken else calls,
            )
        )
        if is_spoken and not turns[-1].text:
            turns[-1] = LabTurn(text=f"Step {step} is done.", thinking=turns[-1].thinking)
    return turns


def tool_output(name: str, step: int) -> tuple[str, bool]:
    """What a tool returns, and whether it failed."""
    if (step, name) in {(5, "search"), (13, "pay"), (30, "search")}:
        return '{"kind": "tool.failed"}', True
    return f"{name} says {step}", False


class History:
    """The messages of a run, and a copy of them after every event."""

    def __init__(self) -> None:
        self.messages: Messages = []
        self.cuts: list[Messages] = []

    def keep(self, partial: Messages | None = None) -> None:
        self.cuts.append([*self.messages, *deepcopy(partial or [])])

    def add(self, message: dict[str, Any]) -> None:
        self.messages.append(message)
        self.keep()


def run_openai(lab: Lab) -> History:
    """Chat completions, streamed by the SDK."""
    import openai

    history = History()
    client = openai.OpenAI(base_url=lab.url("openai", "ok") + "/v1", api_key="lab", max_retries=0)
    full = client.with_options(base_url=lab.url("openai", "overloaded") + "/v1")
    history.add({"role": "system", "content": "Be brief."})
    history.add({"role": "user", "content": "Begin."})
    for step in range(STEPS):
        if step in FAILED_STEPS:
            _refused(openai.APIStatusError, lambda: _chat(full, history.messages))
        message: dict[str, Any] = {"role": "assistant", "content": None}
        for chunk in _chat(client, history.messages):
            delta: Any = chunk.choices[0].delta
            if delta.content:
                message["content"] = (message["content"] or "") + delta.content
            tool_calls: Any = delta.tool_calls or ()
            for call in tool_calls:
                calls = message.setdefault("tool_calls", [])
                if call.id:
                    calls.append(
                        {"id": call.id, "type": "function", "function": {"name": "", "arguments": ""}}
                    )
                    calls[-1]["function"]["name"] = call.function.name
                calls[-1]["function"]["arguments"] += call.function.arguments
            history.keep([message])
        history.add(message)
        for call in message.get("tool_calls", []):
            text, _ = tool_output(call["function"]["name"], step)
            history.add({"role": "tool", "tool_call_id": call["id"], "content": text})
        if not message.get("tool_calls") and step < STEPS - 1:
            history.add({"role": "user", "content": f"Next, after {step}."})
    return history


def _chat(client: "openai.OpenAI", messages: Messages) -> Any:
    create: Any = client.chat.completions.create
    return create(model="gpt-lab", messages=messages, stream=True)


def run_responses(lab: Lab) -> History:
    """Responses, streamed by the SDK."""
    import openai

    history = History()
    client = openai.OpenAI(base_url=lab.url("openai", "ok") + "/v1", api_key="lab", max_retries=0)
    history.add({"role": "user", "content": "Begin."})
    for step in range(STEPS):
        create: Any = client.responses.create
        items: Messages = []
        for event in create(model="gpt-lab", input=history.messages, stream=True):
            if event.type == "response.output_item.added":
                items.append(event.item.model_dump(mode="json", exclude_none=True))
            elif event.type == "response.output_item.done":
                items[-1] = event.item.model_dump(mode="json", exclude_none=True)
            elif event.type == "response.function_call_arguments.delta":
                items[-1]["arguments"] += event.delta
            elif event.type == "response.content_part.added":
                items[-1]["content"].append(event.part.model_dump(mode="json", exclude_none=True))
            elif event.type == "response.output_text.delta":
                items[-1]["content"][-1]["text"] += event.delta
            history.keep(items)
        history.messages += items
        calls = [item for item in items if item["type"] == "function_call"]
        for call in calls:
            text, _ = tool_output(call["name"], step)
            history.add({"type": "function_call_output", "call_id": call["call_id"], "output": text})
        if not calls and step < STEPS - 1:
            history.add({"role": "user", "content": f"Next, after {step}."})
    return history


def run_anthropic(lab: Lab) -> History:
    """Messages, streamed by the SDK."""
    import anthropic

    history = History()
    client = anthropic.Anthropic(base_url=lab.url("anthropic", "ok"), api_key="lab", max_retries=0)
    full = client.with_options(base_url=lab.url("anthropic", "overloaded"))
    history.add({"role": "user", "content": "Begin."})
    for step in range(STEPS):
        if step in FAILED_STEPS:
            _refused(anthropic.APIStatusError, lambda: _messages(full, history.messages))
        blocks: Messages = []
        for event in _messages(client, history.messages):
            if event.type == "content_block_start":
                blocks.append(event.content_block.model_dump(mode="json", exclude_none=True))
                if blocks[-1]["type"] == "tool_use":
                    blocks[-1]["input"] = ""
            elif event.type == "content_block_delta":
                _add_delta(blocks[-1], event.delta)
            elif event.type == "content_block_stop" and blocks[-1]["type"] == "tool_use":
                blocks[-1]["input"] = json.loads(blocks[-1]["input"])
            history.keep([{"role": "assistant", "content": blocks}])
        history.add({"role": "assistant", "content": blocks})
        results: Messages = []
        for block in blocks:
            if block["type"] == "tool_use":
                text, is_failed = tool_output(block["name"], step)
                results.append(
                    {
                        "type": "tool_result",
                        "tool_use_id": block["id"],
                        "content": text,
                        "is_error": is_failed,
                    }
                )
                history.keep([{"role": "user", "content": results}])
        if results:
            history.messages.append({"role": "user", "content": results})
        elif step < STEPS - 1:
            history.add({"role": "user", "content": f"Next, after {step}."})
    return history


def _messages(client: "anthropic.Anthropic", messages: Messages) -> Any:
    create: Any = client.messages.create
    return create(model="claude-opus-5", max_tokens=100, messages=messages, stream=True)


def _add_delta(block: dict[str, Any], delta: Any) -> None:
    if delta.type == "text_delta":
        block["text"] += delta.text
    elif delta.type == "thinking_delta":
        block["thinking"] += delta.thinking
    elif delta.type == "signature_delta":
        block["signature"] = delta.signature
    else:
        block["input"] += delta.partial_json


def run_google(lab: Lab) -> History:
    """generateContent, streamed by the SDK."""
    from google.genai import errors as google_errors

    history = History()
    client, full = _google(lab, "ok"), _google(lab, "overloaded")
    history.add({"role": "user", "parts": [{"text": "Begin."}]})
    for step in range(STEPS):
        if step in FAILED_STEPS:
            _refused(google_errors.APIError, lambda: next(_contents(full, history.messages)))
        parts: Messages = []
        for chunk in _contents(client, history.messages):
            new_parts: Any = chunk.candidates[0].content.parts or ()
            parts += [part.model_dump(mode="json", by_alias=True, exclude_none=True) for part in new_parts]
            history.keep([{"role": "model", "parts": parts}])
        history.add({"role": "model", "parts": parts})
        results: Messages = []
        for part in parts:
            if call := part.get("functionCall"):
                text, is_failed = tool_output(call["name"], step)
                response = {"error" if is_failed else "output": text}
                results.append({"functionResponse": {"name": call["name"], "response": response}})
                history.keep([{"role": "user", "parts": results}])
        if results:
            history.messages.append({"role": "user", "parts": results})
        elif step < STEPS - 1:
            history.add({"role": "user", "parts": [{"text": f"Next, after {step}."}]})
    return history


def _google(lab: Lab, scenario: str) -> "GoogleClient":
    from google.genai import Client
    from google.genai import types as google_types

    options = google_types.HttpOptions(base_url=lab.url("google-genai", scenario))
    return Client(api_key="lab", http_options=options)


def _contents(client: "GoogleClient", contents: Messages) -> Iterator[Any]:
    models: Any = client.models
    return iter(models.generate_content_stream(model="gemini-3-lab", contents=contents))


def _refused(kind: type[Exception], call: Callable[[], object]) -> None:
    try:
        call()
    except kind:
        return
    raise AssertionError("the overloaded provider answered")
