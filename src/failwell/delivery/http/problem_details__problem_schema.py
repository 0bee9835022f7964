"""The JSON Schema of a problem document, and how an OpenAPI document shows it."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, cast

from failwell.delivery.http.problem_details import MEDIA_TYPE
from failwell.errors.axes import ActionKind, Category

_NAME = "Problem"
_METHODS = frozenset({"get", "put", "post", "delete", "options", "head", "patch", "trace"})
_FASTAPI_VALIDATION = "#/components/schemas/HTTPValidationError"

PROBLEM_SCHEMA: dict[str, Any] = {
    "title": "Problem",
    "description": "A failure as a problem document (RFC 9457).",
    "type": "object",
    "required": ["type", "title", "status", "detail", "id", "kind", "category", "retryable"],
    "properties": {
        "type": {"type": "string", "description": "A URI that ends in the kind."},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What happened, in one sentence."},
        "instance": {"type": "string", "description": "The path of the request."},
        "request_id": {"type": "string"},
        "id": {"type": "string", "description": "The id under which the service has logged the failure."},
        "kind": {"type": "string", "description": "The stable name of this way to fail. Branch on it."},
        "category": {"type": "string", "enum": [category.value for category in Category]},
        "retryable": {
            "type": "boolean",
            "description": "Whether the same request may be repeated after a wait.",
        },
        "user_action": {
            "type": "object",
            "required": ["kind"],
            "properties": {
                "kind": {"type": "string", "enum": [action.value for action in ActionKind]},
                "detail": {"type": "string"},
            },
        },
        "not_before": {
            "type": "object",
            "description": "When a repeat may make sense.",
            "properties": {
                "after": {"type": "number", "description": "Seconds from `occurred_at`."},
                "at": {"type": "string", "format": "date-time"},
            },
        },
        "fields_invalid": {"type": "array", "items": {"type": "string"}},
        "errors": {
            "type": "array",
            "description": "The reasons for which a request failed validation.",
            "items": {
                "type": "object",
                "required": ["type", "loc", "msg"],
                "properties": {
                    "type": {"type": "string"},
                    "loc": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
                    "msg": {"type": "string"},
                },
            },
        },
        "occurred_at": {"type": "string", "format": "date-time"},
    },
}
"""What a caller may rely on; a document may hold more."""


def with_problems(document: dict[str, Any]) -> dict[str, Any]:
    """An OpenAPI `document` in which every operation answers failures with a problem. It is changed in place.

    The replies that a framework documents for a failed validation are replaced; replies that the application documents itself stay.
    """
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    schemas[_NAME] = deepcopy(PROBLEM_SCHEMA)
    for path in document.get("paths", {}).values():
        for method, operation in cast("Mapping[str, Any]", path).items():
            if method in _METHODS:
                replies = operation.setdefault("responses", {})
                if _FASTAPI_VALIDATION in str(replies.get("422", "")):
                    replies["422"] = _reply("The request is not valid.")
                replies.setdefault("default", _reply("The request failed."))
    if _FASTAPI_VALIDATION not in str(document.get("paths", "")):
        schemas.pop("HTTPValidationError", None)
        schemas.pop("ValidationError", None)
    return document


def _reply(description: str) -> dict[str, Any]:
    return {
        "description": description,
        "content": {MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{_NAME}"}}},
    }
