"""pydantic's validation errors: which fields and which rules, never the values.

A `ValidationError` prints the input it refused, and that is often a model's whole answer.
"""

from dataclasses import replace
from itertools import islice
from typing import Any, cast

from failwell.adapters.classification import Classification
from failwell.adapters.registry import Table
from failwell.adapters.sdk_exceptions import text_of
from failwell.adapters.traceback_frames import reply_in, unparsed_reply
from failwell.errors.field_paths import field_details, field_path, whole_path
from failwell.errors.foreign_objects import safe_getattr, str_attr

_MOST = 20
_REPLIES = ("Response", "Completion", "Chunk", "Result")
"""How clients name the classes of replies; those of requests are checked in the same frames."""
_SETTINGS = "Settings"
"""How the models that pydantic-settings fills from the environment are named."""


def _read(error: BaseException) -> Classification:
    reading = _invalid_data(error)
    if not _is_reply(error):
        return reading
    instead = _error_instead(error)
    if instead is not None:
        return instead
    # A client that cannot fit a reply into its own classes has a provider's answer, not its caller's input.
    return replace(
        reading,
        kind="provider.output_invalid",
        evidence=(replace(reading.evidence[0], rule="provider.unparsed_reply", basis="origin"),),
        message="The provider's reply does not have the form that its client expects.",
    )


def _title(error: BaseException) -> str:
    """The name of the model that the data does not fit. A row that was saved has it in its text alone."""
    title = str_attr(error, "title")
    if title is not None:
        return title
    first = text_of(error)[:200].partition("\n")[0]
    return first.rpartition(" for ")[2] if "validation error" in first else ""


def _is_reply(error: BaseException) -> bool:
    title = _title(error)
    parsed = unparsed_reply(error)
    return parsed is not None and (title.endswith(_REPLIES) or reply_in(error, parsed.client) is not None)


def _error_instead(error: BaseException) -> Classification | None:
    """The error that a provider sent where its client expects a piece of an answer, judged like any other."""
    from failwell.adapters.classify import classify
    from failwell.adapters.facts import Facts, codes_of, message_of

    for row in _rows(error, include_input=True):
        body = _error_in(row)
        if body is not None:
            facts = Facts(
                exception_type=type(error).__name__,
                codes=codes_of(body),
                message=message_of(body),
                body=body,
                in_stream=True,
            )
            return classify(facts)
    return None


def _error_in(row: Any) -> dict[str, Any] | None:
    value = cast("dict[str, Any]", row).get("input") if isinstance(row, dict) else None
    if not isinstance(value, dict):
        return None
    body = cast("dict[str, Any]", value)
    is_error = "error" in (body.get("object"), body.get("type")) or isinstance(body.get("error"), dict)
    return body if is_error else None


def _invalid_data(error: BaseException) -> Classification:
    fields = _fields(error)
    names = ", ".join(f"`{where}` ({why})" for where, _, why in fields[:5])
    more = "" if len(fields) <= 5 else f" and {len(fields) - 5} more"
    return Classification.from_rule(
        kind="validation.config_invalid" if _title(error).endswith(_SETTINGS) else "validation.shape_invalid",
        rule="pydantic.ValidationError",
        saw="ValidationError",
        message=f"The data does not fit its model: {names}{more}." if fields else None,
        fields_invalid=tuple(dict.fromkeys(where for where, _, _ in fields)) or None,
        details=field_details(fields) if fields else {},
    )


def _fields(error: BaseException) -> list[tuple[str, str, str]]:
    return [field for row in _rows(error) if (field := _field(row)) is not None]


def _rows(error: BaseException, *, include_input: bool = False) -> list[Any]:
    errors = safe_getattr(error, "errors")
    if not callable(errors):
        return []
    try:
        rows = errors(include_url=False, include_context=False, include_input=include_input)
    except TypeError:
        rows = errors()
    return list(islice(cast("list[Any]", rows), _MOST))


def _field(row: Any) -> tuple[str, str, str] | None:
    """The path of an invalid field, its whole path and the rule that it breaks."""
    if not isinstance(row, dict):
        return None
    known = cast("dict[str, Any]", row)
    parts: list[object] = list(islice(known.get("loc", ()), _MOST))
    rule = str(known.get("type", "invalid"))[:60]
    shown = list(parts)
    if shown and rule == "extra_forbidden":
        # No model declares it.
        shown[-1] = None
    for index, part in enumerate(parts[1:]):
        if part == "[key]":
            shown[index] = None
    return field_path(shown), whole_path(parts), rule


TABLES: dict[str, Table] = {
    "pydantic_core": {
        "ValidationError": _read,
        "SchemaError": Classification.from_rule(
            kind="internal.bug", rule="pydantic.SchemaError", saw="SchemaError"
        ),
    },
    "fastapi": {
        **{
            name: Classification.from_rule(kind="validation.input_invalid", rule=f"fastapi.{name}", saw=name)
            for name in ("ValidationException", "RequestValidationError", "WebSocketRequestValidationError")
        },
        # What a route returned does not fit the type that it declares, or the application is put together wrongly.
        **{
            name: Classification.from_rule(kind="internal.bug", rule=f"fastapi.{name}", saw=name)
            for name in ("ResponseValidationError", "FastAPIError", "PydanticV1NotSupportedError")
        },
    },
    "pydantic": {
        "ValidationError": _read,
        "PydanticUserError": Classification.from_rule(
            kind="internal.bug", rule="pydantic.PydanticUserError", saw="PydanticUserError"
        ),
    },
}
