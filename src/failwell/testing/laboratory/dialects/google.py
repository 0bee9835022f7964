"""Google, by the Gemini API and by Vertex AI: a canonical status, and the facts in typed details."""

import re
from collections.abc import Mapping
from json import loads
from typing import Any

from failwell.testing.laboratory.delay_forms import EVERYWHERE, retry_details
from failwell.testing.laboratory.dialect import Dialect, Differs, Refusal, is_text, items, members
from failwell.testing.laboratory.lab_reply import (
    HELLO,
    HOSTED,
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
    event,
)

_SIGNED_MODELS = re.compile(r"gemini-[3-9]")
"""Models whose function calls carry a signature that must come back."""


def refuse_contents(body: object, path: str) -> Refusal | None:
    """Why this request is refused; `None` if its contents are in order."""
    contents = [members(content) for content in items(members(body).get("contents"))]
    if not contents:
        return Refusal("* GenerateContentRequest.contents: contents is not specified\n")
    for place, content in enumerate(contents):
        refusal = _shape(content, f"* GenerateContentRequest.contents[{place}]")
        if refusal is not None:
            return refusal
    refusal = _order(contents)
    if refusal is None and _SIGNED_MODELS.search(path):
        refusal = _signatures(contents)
    if refusal is None and contents[-1].get("role") == "model":
        return Refusal("Please ensure that multiturn requests ends with a user role or a function response.")
    return refusal


def _shape(content: dict[str, Any], where: str) -> Refusal | None:
    if content.get("role", "user") not in ("user", "model", "function"):
        return Refusal("Please use a valid role: user, model.")
    if not items(content.get("parts")):
        return Refusal(f"{where}.parts: contents.parts must not be empty.\n")
    for position, part in enumerate(items(content["parts"])):
        data = {
            name: value
            for name, value in members(part).items()
            if name not in ("thought", "thoughtSignature")
        }
        if not data or (data.get("text") == "" and "thoughtSignature" not in members(part)):
            return Refusal(
                f"{where}.parts[{position}].data: required oneof field 'data' must have one initialized field\n"
            )
        for kind, name in (("functionCall", "function_call"), ("functionResponse", "function_response")):
            if kind in data and not is_text(members(data[kind]).get("name")):
                return Refusal(f"{where}.parts[{position}].{name}.name: Name cannot be empty.\n")
        arguments = members(data.get("functionCall")).get("args")
        if not (arguments is None or isinstance(arguments, dict)):
            return Refusal(
                f"Invalid value at '{where.removeprefix('* GenerateContentRequest.')}.parts[{position}].function_call.args'"
                " (type.googleapis.com/google.protobuf.Struct)"
            )
        response = members(data.get("functionResponse"))
        if response and not isinstance(response.get("response"), dict):
            return Refusal(f"{where}.parts[{position}].function_response.response: response is required.\n")
    return None


def _order(contents: list[dict[str, Any]]) -> Refusal | None:
    open_calls = 0
    before = ""
    for content in contents:
        calls, responses = _count(content, "functionCall"), _count(content, "functionResponse")
        if responses and not open_calls:
            return Refusal(
                "Please ensure that function response turn comes immediately after a function call turn."
            )
        if responses != open_calls:
            return Refusal(
                "Please ensure that the number of function response parts is equal to the number of function call "
                "parts of the function call turn."
            )
        role = content.get("role", "user")
        if calls and (role != "model" or before not in ("user", "function")):
            return Refusal(
                "Please ensure that function call turn comes immediately after a user turn or after a function "
                "response turn."
            )
        open_calls, before = calls, role
    if open_calls:
        return Refusal(
            "Please ensure that the number of function response parts is equal to the number of function call parts of "
            "the function call turn."
        )
    return None


def _signatures(contents: list[dict[str, Any]]) -> Refusal | None:
    """The first call of every step since the user's last text must be signed."""
    start = 0
    for place, content in enumerate(contents):
        parts = [members(part) for part in items(content["parts"])]
        if content.get("role", "user") == "user" and any("text" in part for part in parts):
            start = place
    for place in range(start, len(contents)):
        calls = [part for part in map(members, items(contents[place]["parts"])) if "functionCall" in part]
        if calls and not calls[0].get("thoughtSignature"):
            name = calls[0]["functionCall"]["name"]
            return Refusal(
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
                "correctly, and missing thought_signature may lead to degraded model performance. Additional data, "
                f"function call `default_api:{name}` , position {place + 1}. Please refer to "
                "https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
            )
    return None


def _count(content: dict[str, Any], kind: str) -> int:
    return sum(kind in members(part) for part in items(content.get("parts")))


def content_turn(call: LabCall, turn: LabTurn, number: int, finish: str = "STOP") -> Reply:
    """The reply of generateContent, whole or streamed. Calls come whole in a stream, as Google sends them."""
    calls: list[dict[str, Any]] = []
    for place, (name, arguments) in enumerate(turn.arguments()):
        # Of parallel calls the first one alone is signed.
        signature = {} if place else {"thoughtSignature": f"c2lnLWxhYi{number:02d}"}
        calls.append({"functionCall": {"name": name, "args": loads(arguments)}, **signature})
    if not call.stream:
        parts: list[dict[str, Any]] = [{"text": turn.thinking, "thought": True}] if turn.thinking else []
        parts += [{"text": turn.text}] if turn.text else []
        return as_json(200, _chunk([*parts, *calls], number, finish), *_HEADERS, kind=_KIND)
    parts = [{"text": piece, "thought": True} for piece in Pieces(turn.thinking)]
    parts += [{"text": piece} for piece in Pieces(turn.text)]
    chunks = [_chunk([part], number, None) for part in [*parts, *calls]]
    return as_events(*map(event, [*chunks, _chunk([], number, finish)]), headers=_HEADERS)


def _chunk(parts: list[dict[str, Any]], number: int, finish: str | None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"index": 0}
    # A refused answer has no content at all.
    if parts or finish == "STOP":
        candidate["content"] = {"role": "model", "parts": parts}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], **_facts(number)}


def _facts(number: int) -> dict[str, Any]:
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 5, "totalTokenCount": 14}
    return {"usageMetadata": usage, "modelVersion": "gemini-lab", "responseId": f"lab{number}"}


_HEADERS = (("server", "scaffolding on HTTPServer2"), ("vary", "Origin"))
_KIND = "application/json; charset=UTF-8"
_TYPES = "type.googleapis.com/google.rpc"


def _body(status: int, name: str, message: str, *details: Mapping[str, Any]) -> dict[str, Any]:
    error = {"code": status, "message": message, "status": name}
    return {"error": {**error, "details": list(details)} if details else error}


def _error(status: int, name: str, message: str, *details: Mapping[str, Any]) -> Answer:
    return always(as_json(status, _body(status, name, message, *details), *_HEADERS, kind=_KIND))


def _reason(reason: str, domain: str = "googleapis.com", **metadata: str) -> dict[str, Any]:
    return {"@type": f"{_TYPES}.ErrorInfo", "reason": reason, "domain": domain, "metadata": metadata}


def _quota(quota: str, value: str) -> dict[str, Any]:
    metric = "generativelanguage.googleapis.com/generate_content_free_tier_requests"
    violation = {"quotaMetric": metric, "quotaId": quota, "quotaValue": value}
    return {"@type": f"{_TYPES}.QuotaFailure", "violations": [violation]}


def _rate_limited(call: LabCall) -> Reply:
    message = f"You exceeded the request rate for this model.{call.wait.prose}"
    details = [
        _quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier", "10"),
        *retry_details(call.wait),
    ]
    body = _body(429, "RESOURCE_EXHAUSTED", message, *details)
    return as_json(429, body, *_HEADERS, *call.wait.headers, kind=_KIND)


def _refuse(call: LabCall) -> Reply | None:
    is_generation = "generatecontent" in call.path.lower()
    refusal = refuse_contents(call.body, call.path) if is_generation else None
    if refusal is None:
        return None
    return as_json(400, _body(400, "INVALID_ARGUMENT", refusal.message), *_HEADERS, kind=_KIND)


def _answer(turn: LabTurn, finish: str = "STOP") -> Answer:
    return lambda call: content_turn(call, turn, 1, finish)


def _bare(**members: Any) -> Answer:
    """An answer without a candidate."""
    body = {**members, **_facts(1)}
    return lambda call: (
        as_events(event(body), headers=_HEADERS) if call.stream else as_json(200, body, *_HEADERS, kind=_KIND)
    )


_FINE = _answer(HELLO)
_OVERLOADED = (503, "UNAVAILABLE", "The model is overloaded. Please try again later.")


_SHARED: dict[str, Answer] = {
    "ok": _FINE,
    "rate_limited": _rate_limited,
    "overloaded": _error(*_OVERLOADED),
    "server_error": _error(500, "INTERNAL", "An internal error has occurred. Please retry."),
    "gateway_timeout": _error(504, "DEADLINE_EXCEEDED", "Deadline expired before operation could complete."),
    "conflict": _error(409, "ABORTED", "The operation was aborted because of a concurrent change."),
    "content_refused_in": _bare(promptFeedback={"blockReason": "PROHIBITED_CONTENT"}),
    "content_refused_out": _answer(NOTHING, "SAFETY"),
    "context_too_long": _error(
        400,
        "INVALID_ARGUMENT",
        "The input token count (1200311) exceeds the maximum number of tokens allowed (1048576).",
    ),
    "bad_schema": _error(
        400,
        "INVALID_ARGUMENT",
        "Invalid value at 'generation_config.temperature' (TYPE_FLOAT), \"hot\"",
        {
            "@type": f"{_TYPES}.BadRequest",
            "fieldViolations": [
                {"field": "generation_config.temperature", "description": "Invalid value (TYPE_FLOAT)"}
            ],
        },
    ),
    "truncated_output": _answer(HELLO, "MAX_TOKENS"),
    "empty_reply": _answer(NOTHING),
    "malformed_tool_call": _answer(NOTHING, "MALFORMED_FUNCTION_CALL"),
    **broken_streams(_FINE, event(_body(*_OVERLOADED))),
}
_DIFFERS = {"malformed_tool_call": Differs("provider.output_rejected")}

DIALECTS = {
    "google-genai": Dialect(
        name="google-genai",
        title="Gemini API",
        refuse=_refuse,
        scripted=content_turn,
        wait="retryinfo",
        forms=EVERYWHERE | {"retryinfo"},
        answers={
            **_SHARED,
            "bad_key": _error(
                400,
                "INVALID_ARGUMENT",
                "API key not valid. Please pass a valid API key.",
                _reason("API_KEY_INVALID", service="generativelanguage.googleapis.com"),
            ),
            "no_permission": _error(
                403,
                "PERMISSION_DENIED",
                "Generative Language API has not been used in project 1 before or it is disabled.",
                _reason(
                    "SERVICE_DISABLED", service="generativelanguage.googleapis.com", consumer="projects/1"
                ),
            ),
            "missing_model": _error(
                404,
                "NOT_FOUND",
                "models/gemini-lab is not found for API version v1beta, or is not supported for "
                "generateContent.",
            ),
            "daily_quota": _error(
                429,
                "RESOURCE_EXHAUSTED",
                "You exceeded your current quota, please check your plan and billing details.",
                _quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier", "250"),
            ),
            "empty_balance": _error(
                429,
                "RESOURCE_EXHAUSTED",
                "Your prepayment credits are depleted. Add credits to your project.",
            ),
        },
        declines=HOSTED,
        differs=_DIFFERS,
    ),
    "google-vertex": Dialect(
        name="google-vertex",
        title="Vertex AI",
        refuse=_refuse,
        scripted=content_turn,
        wait="none",
        forms=EVERYWHERE | {"retryinfo"},
        answers={
            **_SHARED,
            "bad_key": _error(
                401,
                "UNAUTHENTICATED",
                "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie "
                "or other valid authentication credential.",
                _reason("ACCESS_TOKEN_TYPE_UNSUPPORTED", service="aiplatform.googleapis.com"),
            ),
            "no_permission": _error(
                403,
                "PERMISSION_DENIED",
                "Permission 'aiplatform.endpoints.predict' denied on resource "
                "'//aiplatform.googleapis.com/projects/lab/locations/us-central1' (or it may not exist).",
                _reason("IAM_PERMISSION_DENIED", "aiplatform.googleapis.com"),
            ),
            "missing_model": _error(
                404,
                "NOT_FOUND",
                "Publisher Model `projects/lab/locations/us-central1/publishers/google/models/gemini-lab` was "
                "not found or your project does not have access to it.",
            ),
            "daily_quota": _error(
                429,
                "RESOURCE_EXHAUSTED",
                "Quota exceeded for aiplatform.googleapis.com/generate_content_requests_per_day with base "
                "model: gemini-lab.",
                _quota("GenerateContentRequestsPerDayPerProjectPerBaseModel", "1000"),
            ),
            "empty_balance": _error(
                403,
                "PERMISSION_DENIED",
                "This API method requires billing to be enabled. Please enable billing on project lab.",
                _reason("BILLING_DISABLED", service="aiplatform.googleapis.com", consumer="projects/lab"),
            ),
        },
        declines=HOSTED,
        differs=_DIFFERS,
    ),
}
