"""A bare HTTP service without a model: a status, a `detail`, and a stream of lines."""

import json
from dataclasses import replace

from failwell.testing.laboratory.dialect import Dialect
from failwell.testing.laboratory.lab_reply import Answer, LabCall, Reply, always, as_json

_NO_MODEL = "a bare service has no model behind it"
_LINES = tuple(json.dumps({"line": number}).encode() + b"\n" for number in range(4))


def _error(status: int, detail: str) -> Answer:
    return always(as_json(status, {"detail": detail}))


def _rate_limited(call: LabCall) -> Reply:
    body = {"detail": f"Too many requests.{call.wait.prose}"}
    return as_json(429, body, *call.wait.headers)


_STREAM = Reply(200, (("content-type", "application/x-ndjson"),), pieces=_LINES)

DIALECTS = {
    "plain": Dialect(
        name="plain",
        title="a bare HTTP service",
        streams_by_default=True,
        answers={
            "ok": always(as_json(200, {"status": "ok", "said": "Hello from the lab."})),
            "bad_key": _error(401, "The access token is missing or not valid."),
            "no_permission": _error(403, "You may not do this."),
            "rate_limited": _rate_limited,
            "daily_quota": _error(429, "The daily limit of 1000 requests is used up."),
            "empty_balance": _error(402, "Payment required: the balance is used up."),
            "overloaded": _error(503, "The service is at capacity."),
            "server_error": _error(500, "Internal error."),
            "conflict": _error(409, "Another request holds the lock."),
            "context_too_long": _error(413, "The request body is too large."),
            "bad_schema": always(
                as_json(
                    422,
                    {
                        "detail": [
                            {
                                "type": "int_parsing",
                                "loc": ["body", "count"],
                                "msg": "Input should be an integer",
                            }
                        ]
                    },
                )
            ),
            "empty_reply": always(Reply(200, (("content-type", "application/json"),))),
            "truncated_stream": always(replace(_STREAM, pieces=_LINES[:2], ending="cut")),
            "broken_stream": always(replace(_STREAM, pieces=_LINES[:2], ending="reset")),
        },
        declines={
            "missing_model": _NO_MODEL,
            "content_refused_in": _NO_MODEL,
            "content_refused_out": _NO_MODEL,
            "truncated_output": _NO_MODEL,
            "malformed_tool_call": _NO_MODEL,
            "in_stream_error": "its lines have no form for an error",
            "model_loading": _NO_MODEL,
            "out_of_memory": _NO_MODEL,
        },
    )
}
