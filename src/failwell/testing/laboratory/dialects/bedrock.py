"""Amazon Bedrock's Converse: the kind in a header, streams in binary frames, exceptions as events."""

from itertools import pairwise
from typing import Any

from failwell.errors.axes import Certainty
from failwell.testing.laboratory.dialect import Dialect, Differs, Refusal, items, members
from failwell.testing.laboratory.http_wire import aws_event, aws_exception
from failwell.testing.laboratory.lab_reply import (
    BROKEN_CALL,
    HELLO,
    NOTHING,
    Answer,
    LabCall,
    LabTurn,
    Pieces,
    Reply,
    always,
    as_events,
    as_json,
    broken_streams,
)


def refuse_converse(body: object) -> Refusal | None:
    """Why this request is refused; `None` if its messages are in order."""
    messages = [members(message) for message in items(members(body).get("messages"))]
    if not messages:
        return Refusal("The messages field is required. Add at least one message and try again.")
    for place, message in enumerate(messages):
        refusal = _shape(message, place)
        if refusal is not None:
            return refusal
    if messages[0].get("role") != "user":
        return Refusal(
            "A conversation must start with a user message. Try again with a conversation that starts with a user "
            "message."
        )
    if any(first.get("role") == second.get("role") for first, second in pairwise(messages)):
        return Refusal(
            "A conversation must alternate between user and assistant roles. Make sure the conversation alternates "
            "between user and assistant roles and try again."
        )
    return _pairs(messages)


def _shape(message: dict[str, Any], place: int) -> Refusal | None:
    content = items(message.get("content"))
    if not content:
        return Refusal(
            f"The content field in the Message object at messages.{place} is empty. Add a ContentBlock object to the "
            "content field and try again."
        )
    for position, block in enumerate(map(members, content)):
        if "text" in block and not str(block["text"]).strip():
            return Refusal(
                f"The text field in the ContentBlock object at messages.{place}.content.{position} is blank. Add text to "
                "the text field, and try again."
            )
        result = members(block.get("toolResult"))
        if result.get("status") == "error" and not items(result.get("content")):
            return Refusal(
                f"The content field at messages.{place}.content.{position}.toolResult cannot be empty when status value "
                "is error."
            )
    return None


def _pairs(messages: list[dict[str, Any]]) -> Refusal | None:
    open_ids: list[str] = []
    for place, message in enumerate(messages):
        blocks = [members(block) for block in items(message["content"])]
        answers = [members(block["toolResult"]).get("toolUseId") for block in blocks if "toolResult" in block]
        if len(answers) > len(open_ids):
            return Refusal(
                f"The number of toolResult blocks at messages.{place}.content exceeds the number of toolUse blocks of "
                "previous turn."
            )
        missing = [call_id for call_id in open_ids if call_id not in answers]
        if missing:
            return _missing(missing, place)
        open_ids = [str(members(block["toolUse"]).get("toolUseId")) for block in blocks if "toolUse" in block]
    return _missing(open_ids, len(messages)) if open_ids else None


def _missing(ids: list[str], place: int) -> Refusal:
    return Refusal(
        f"Expected toolResult blocks at messages.{place}.content for the following Ids: {', '.join(ids)}"
    )


_METRICS = {"latencyMs": 41}


def converse_turn(call: LabCall, turn: LabTurn, number: int, stop: str | None = None) -> Reply:
    """The reply of Converse, whole or as a stream of binary frames."""
    stop = stop or ("tool_use" if turn.calls else "end_turn")
    if not call.stream:
        message = {"message": {"role": "assistant", "content": _content(turn, number)}}
        body = {"output": message, "stopReason": stop, "usage": _USAGE, "metrics": _METRICS}
        return as_json(200, body, *_HEADERS)
    events = [aws_event("messageStart", {"role": "assistant"})]
    for index, block in enumerate(_content(turn, number)):
        place = {"contentBlockIndex": index}
        deltas: list[dict[str, Any]]
        if "toolUse" in block:
            # Only a tool's block is announced; a text begins with its first words.
            use = block["toolUse"]
            begun = {"toolUseId": use["toolUseId"], "name": use["name"]}
            events.append(aws_event("contentBlockStart", {**place, "start": {"toolUse": begun}}))
            arguments = turn.arguments()[index - bool(turn.text)][1]
            deltas = [{"toolUse": {"input": piece}} for piece in Pieces(arguments)]
        else:
            deltas = [{"text": piece} for piece in Pieces(block["text"])]
        events += [aws_event("contentBlockDelta", {**place, "delta": delta}) for delta in deltas]
        events.append(aws_event("contentBlockStop", place))
    events.append(aws_event("messageStop", {"stopReason": stop}))
    events.append(aws_event("metadata", {"usage": _USAGE, "metrics": _METRICS}))
    return as_events(*events, headers=_HEADERS, kind=_STREAM)


def _content(turn: LabTurn, number: int) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = [{"text": turn.text}] if turn.text else []
    for place, (name, arguments) in enumerate(turn.calls):
        given = arguments if isinstance(arguments, str) else dict(arguments)
        use = {"toolUseId": f"tooluse_{number}_{place}", "name": name, "input": given}
        content.append({"toolUse": use})
    return content


_HEADERS = (("x-amzn-requestid", "lab-1f0c2a"),)
_STREAM = "application/vnd.amazon.eventstream"
_USAGE = {"inputTokens": 9, "outputTokens": 5, "totalTokens": 14}


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


def _answer(turn: LabTurn, stop: str | None = None) -> Answer:
    return lambda call: converse_turn(call, turn, 1, stop)


_FINE = _answer(HELLO)
_BROKE = aws_exception("serviceUnavailableException", "The service is temporarily overloaded.")

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
            "content_refused_in": _answer(HELLO, "guardrail_intervened"),
            "content_refused_out": _answer(HELLO, "content_filtered"),
            "context_too_long": _error(400, "ValidationException", "Input is too long for requested model."),
            "bad_schema": _error(
                400,
                "ValidationException",
                "1 validation error detected: Value '3' at 'inferenceConfig.temperature' failed to satisfy "
                "constraint: Member must have value less than or equal to 1",
            ),
            "truncated_output": _answer(HELLO, "max_tokens"),
            "empty_reply": _answer(NOTHING),
            "malformed_tool_call": _answer(BROKEN_CALL),
            # Its block, its message and its numbers are closed by an event each.
            **broken_streams(_FINE, _BROKE, after=3),
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
