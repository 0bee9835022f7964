"""A run of forty steps, killed at every event: after `repair` the provider accepts the next request."""

import json
from collections import Counter
from collections.abc import Callable
from http.client import HTTPConnection
from typing import Any

import pytest

from failwell.agents import repair
from failwell.testing import Lab, lab
from tests.agents.recorded_runs import (
    STEPS,
    History,
    Messages,
    run_anthropic,
    run_google,
    run_openai,
    run_responses,
    script,
)

FORMATS: dict[str, tuple[Callable[[Lab], History], str, str, Callable[[Messages], dict[str, Any]]]] = {
    "openai": (
        run_openai, "openai", "/v1/chat/completions", lambda messages: {"model": "gpt-lab", "messages": messages},
    ),
    "openai-responses": (
        run_responses, "openai", "/v1/responses", lambda messages: {"model": "gpt-lab", "input": messages},
    ),
    "anthropic": (
        run_anthropic, "anthropic", "/v1/messages",
        lambda messages: {"model": "claude-opus-5", "max_tokens": 9, "messages": messages},
    ),
    "google": (
        run_google, "google-genai", "/v1beta/models/gemini-3-lab:generateContent",
        lambda messages: {"contents": messages},
    ),
}  # fmt: skip


def calls_and_results(messages: Messages, name: str) -> tuple[list[str], list[str]]:
    """The ids of all calls and of all results; names where Google has no ids."""
    calls: list[str] = []
    results: list[str] = []
    for message in messages:
        calls += [call["id"] for call in message.get("tool_calls", [])]
        if message.get("role") == "tool":
            results.append(message["tool_call_id"])
        if message.get("type") == "function_call":
            calls.append(message["call_id"])
        if message.get("type") == "function_call_output":
            results.append(message["call_id"])
        blocks: Any = message.get("content") if name == "anthropic" else ()
        for block in () if isinstance(blocks, str) else blocks:
            if block["type"] == "tool_use":
                calls.append(block["id"])
            if block["type"] == "tool_result":
                results.append(block["tool_use_id"])
        for part in message.get("parts", []):
            if "functionCall" in part:
                calls.append(part["functionCall"]["name"])
            if "functionResponse" in part:
                results.append(part["functionResponse"]["name"])
    return calls, results


@pytest.mark.parametrize(
    "name",
    [
        "openai",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("anthropic", "google", "openai-responses")),
    ],
)
def test_a_run_that_is_killed_at_any_event_goes_on_after_repair(name: str) -> None:
    run, dialect, path, body = FORMATS[name]
    with lab(strict=True) as fake:
        fake.script(dialect, *script())
        history = run(fake)
        assert fake.calls(dialect, "ok") == STEPS
        connection = HTTPConnection("127.0.0.1", fake.port)

        def answer(messages: Messages) -> tuple[int, str]:
            connection.request("POST", f"/{dialect}/ok{path}", json.dumps(body(messages)).encode())
            reply = connection.getresponse()
            return reply.status, reply.read().decode()

        refused = 0
        for place, cut in enumerate(history.cuts):
            if place % 3 == 0:
                refused += answer(cut)[0] == 400

            repaired = repair(cut, format=name, continue_with="Continue.")

            assert answer(repaired.messages)[0] == 200, (place, cut[-3:], answer(repaired.messages))
            calls, results = calls_and_results(repaired.messages, name)
            assert Counter(calls) == Counter(results), (place, cut[-3:])
            assert repair(repaired.messages, format=name, continue_with="Continue.").changes == ()
        connection.close()

    assert len(history.cuts) > STEPS * 5
    # Most events lie inside of messages, where a conversation cannot be continued as it stands.
    assert refused > len(history.cuts) / 3 / 2
