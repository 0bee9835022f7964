"""The wire page: every field of a report's JSON, read from the JSON Schema that is shipped."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

SCHEMA = Path(__file__).resolve().parents[2] / "src/failwell/report/schema/error-v1.json"

Schema = Mapping[str, Any]


def wire_page() -> str:
    """One table for the report and one for each record inside it."""
    schema: Schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    lines = [
        "# The wire",
        "",
        f"{_sentence(schema)} The schema itself ships in the wheel as `failwell/report/schema/{SCHEMA.name}`.",
        "A field that has nothing to say is left out; null is never written.",
        "",
        "## report",
        "",
        *_table(schema),
    ]
    definitions: Schema = schema.get("$defs", {})
    for name, definition in definitions.items():
        lines += ["", f"## {name}", ""]
        if "description" in definition:
            lines += [_sentence(definition), ""]
        lines += _table(definition) if "properties" in definition else [f"Type: {_type(definition)}."]
    return "\n".join(lines) + "\n"


def _table(schema: Schema) -> Iterator[str]:
    required = set(cast("list[str]", schema.get("required", [])))
    yield "| field | type | required | what it says |"
    yield "| --- | --- | --- | --- |"
    properties: Mapping[str, Schema] = schema.get("properties", {})
    for name, field in properties.items():
        always = "yes" if name in required else ""
        yield f"| `{name}` | {_type(field)} | {always} | {_cell(field.get('description', ''))} |"


def _type(schema: Schema) -> str:
    """How a reader would say the type: `string`, `list of cause`, `one of "a", "b"`."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rsplit("/", 1)[-1]
        return "report" if name == "#" else f"[{name}](#{name.lower()})"
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return "one of " + ", ".join(f"`{json.dumps(value)}`" for value in schema["enum"])
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            return " or ".join(_type(option) for option in schema[choice])
    kind = schema.get("type", "anything")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if isinstance(kind, list):
        return " or ".join(cast("list[str]", kind))
    return f"{kind} ({schema['format']})" if "format" in schema else str(kind)


def _sentence(schema: Schema) -> str:
    text = str(schema.get("description", schema.get("title", ""))).strip()
    return text if text.endswith(".") else f"{text}."


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
