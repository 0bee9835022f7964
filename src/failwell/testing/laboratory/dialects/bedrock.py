"""Amazon Bedrock's Converse: the kind in a header, streams in binary frames, exceptions as events."""

from dataclasses import replace
from typing import Any

from failwell.errors.axes import Certainty
from failwell.testing.laboratory.dialect import Dialect, Differs
from failwell.testing.laboratory.dialects.bedrock__bedrock_converse import refuse_converse
from failwell.testing.laboratory.dialects.bedrock__scripts_bedrock import converse_turn
from failwell.testing.laboratory.http_wire__eventstream import aws_event, aws_exception
from failwell.testing.laboratory.lab_reply import Answer, LabCall, Reply, always, as_events, as_json, cut

_HEADERS = (("x-amzn-requestid", "lab-1f0c2a"),)
_STREAM = "application/vnd.amazon.eventstream"
_TEXT = ("Hello", " from", " the lab.")
_BROKEN_JSON = '{"city": "Par'
_USAGE = {"inputTokens": 9, "outputTokens": 5, "totalTokens": 14}
_CALL = {"toolUseId": "tooluse_lab1", "name": "find_city"}


def _error(status: int, code: str, message: str) -> Answer:
    return always(as_json(status, {"message": message}, *_HEADERS, ("x-amzn-errortype", code)))


def _rate_limited(call: LabCall) -> Reply:
    body = {"message": f"Too many requests, please wait before trying again.{call.wait.prose}"}
    return as_json(429, body, *_HEADERS, ("x-amzn-errortype", "ThrottlingException"), *call.wait.headers)


def _refuse(call: LabCall) -> Reply | None:
    refusal = refuse_converse(call.body) if "/converse" in call.path else None
    if refusal is None:
        return None
    return _error(400, "ValidationException", refusal.message)(call)


def _answer(stop: str = "end_turn", *, text: bool = True, broken_call: bool = False) -> Answer:
    def whole() -> Reply:
        content: list[dict[str, Any]] = [{"text": "".join(_TEXT)}] if text else []
        if broken_call:
            content = [{"toolUse": {**_CALL, "input": _BROKEN_JSON}}]
        message = {"message": {"role": "assistant", "content": content}}
        body = {"output": message, "stopReason": stop, "usage": _USAGE, "metrics": {"latencyMs": 41}}
        return as_json(200, body, *_HEADERS)

    def streamed() -> Reply:
        deltas: list[dict[str, Any]] = [{"text": part} for part in _TEXT]
        if broken_call:
            deltas = [{"toolUse": {"input": _BROKEN_JSON}}]
        block = {"contentBlockIndex": 0}
        events = [aws_event("messageStart", {"role": "assistant"})]
        if broken_call:
            # Only a tool's block is announced; a text begins with its first words.
            events.append(aws_event("contentBlockStart", {**block, "start": {"toolUse": _CALL}}))
        if text or broken_call:
            events += [aws_event("contentBlockDelta", {**block, "delta": delta}) for delta in deltas]
            events.append(aws_event("contentBlockStop", block))
        events.append(aws_event("messageStop", {"stopReason": stop}))
        events.append(aws_event("metadata", {"usage": _USAGE, "metrics": {"latencyMs": 41}}))
        return as_events(*events, headers=_HEADERS, kind=_STREAM)

    return lambda call: streamed() if call.stream else whole()


_FINE = _answer()
_AFTER_CONTENT = 3
"""The events that close a stream: of its block, of its message, of its numbers."""


def _failing(call: LabCall) -> Reply:
    begun = cut(_FINE(call), "whole", without=_AFTER_CONTENT)
    broke = aws_exception("serviceUnavailableException", "The service is temporarily overloaded.")
    return replace(begun, pieces=(*(begun.pieces or ()), broke))


DIALECTS = {
    "bedrock": Dialect(
        name="bedrock",
        title="Amazon Bedrock",
        refuse=_refuse,
        scripted=converse_turn,
        wait="none",
        answers={
            "ok": _FINE,
            "bad_key": _error(
                403, "UnrecognizedClientException", "The security token included in the request is invalid."
            ),
            "no_permission": _error(
                403,
                "AccessDeniedException",
                "You don't have access to the model with the specified model ID.",
            ),
            "missing_model": _error(400, "ValidationException", "The provided model identifier is invalid."),
            "rate_limited": _rate_limited,
            "daily_quota": _error(
                429, "ThrottlingException", "Too many tokens per day, please wait before trying again."
            ),
            "overloaded": _error(
                503, "ServiceUnavailableException", "Bedrock is unable to process your request."
            ),
            "server_error": _error(
                500,
                "InternalServerException",
                "The system encountered an unexpected error during processing. Try your request again.",
            ),
            "gateway_timeout": _error(408, "ModelTimeoutException", "The request took too long to process."),
            "conflict": _error(400, "ConflictException", "Another operation was in the way of this one."),
            "content_refused_in": _answer("guardrail_intervened"),
            "content_refused_out": _answer("content_filtered"),
            "context_too_long": _error(400, "ValidationException", "Input is too long for requested model."),
            "bad_schema": _error(
                400,
                "ValidationException",
                "1 validation error detected: Value '3' at 'inferenceConfig.temperature' failed to satisfy "
                "constraint: Member must have value less than or equal to 1",
            ),
            "truncated_output": _answer("max_tokens"),
            "empty_reply": _answer(text=False),
            "malformed_tool_call": _answer("tool_use", broken_call=True),
            "in_stream_error": _failing,
            "truncated_stream": lambda call: cut(_FINE(call), "whole", without=_AFTER_CONTENT),
            "broken_stream": lambda call: cut(_FINE(call), "reset", without=_AFTER_CONTENT),
            "model_loading": _error(
                429,
                "ModelNotReadyException",
                "The model specified in the request is not ready to serve inference requests.",
            ),
        },
        declines={
            "empty_balance": "an account is billed afterwards and has no balance",
            "out_of_memory": "it does not show its hosts",
        },
        # A guardrail stops a request and an answer with the same word, and both are billed.
        differs={"content_refused_in": Differs("provider.content_refused", Certainty.PARTIAL)},
    )
}
