"""Replies for `scripted:auto`: a value of the declared output for every request, so that a workflow can be tried without a script."""

from collections.abc import Mapping
from json import dumps
from typing import Any, cast

from failwell.agents.scripted_model__script_file import Script, ScriptedReply

AUTO = "auto"
_TEXT = "text"
_NUMBER = 100
_DEEPEST = 20


def automatic_script(schema: Mapping[str, Any] | None) -> Script:
    """One reply that is given again and again: a text, or JSON that matches `schema`."""
    text = _TEXT if schema is None else dumps(sample(schema), ensure_ascii=False)
    return Script(replies=(ScriptedReply(text=text),), file=f"scripted:{AUTO}", is_repeated=True)


def sample(schema: Mapping[str, Any], depth: int = 0) -> Any:
    """A value that matches a schema: its default, its first choice, `true`, the largest number. Patterns are not solved."""
    if "default" in schema:
        return schema["default"]
    if schema.get("enum"):
        return schema["enum"][0]
    kind: object = schema.get("type", "string")
    if isinstance(kind, list):
        kind = cast("list[object]", kind)[0]
    if depth >= _DEEPEST or kind == "null":
        return None
    if kind == "object":
        properties = cast("Mapping[str, Mapping[str, Any]]", schema.get("properties") or {})
        return {name: sample(inner, depth + 1) for name, inner in properties.items()}
    if kind == "array":
        items = cast("Mapping[str, Any]", schema.get("items") or {"type": "string"})
        return [sample(items, depth + 1)] * max(1, int(schema.get("minItems", 1)))
    if kind == "boolean":
        return True
    if kind in ("number", "integer"):
        return schema.get("maximum", max(_NUMBER, schema.get("minimum", _NUMBER)))
    return _TEXT.ljust(schema.get("minLength", 0), "x")[: schema.get("maxLength")]
