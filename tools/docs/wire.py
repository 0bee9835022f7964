"""The wire page: every field of what we write as JSON, read from the JSON Schemas that are shipped."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

FOLDER = Path(__file__).resolve().parents[2] / "src/failwell/errors/schema"
DOCUMENTS = {"report": "error-v1.json", "problem": "problem-v1.json"}

Schema = Mapping[str, Any]


def wire_page() -> str:
    """One table for each document and one for each record inside it."""
    lines = [
        "# The wire",
        "",
        "What failwell writes as JSON, field by field. A field that has nothing to say is left out, and null is",
        "never written. The schemas ship in the wheel; `failwell schema` prints them.",
    ]
    for name, file in DOCUMENTS.items():
        lines += _Document(name, json.loads((FOLDER / file).read_text(encoding="utf-8"))).lines(file)
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class _Document:
    name: str
    schema: Schema

    def lines(self, file: str) -> Iterator[str]:
        yield from (
            "",
            f"## {self.name}",
            "",
            f"{_said(self.schema)} Schema: `failwell/errors/schema/{file}`.",
            "",
        )
        yield from self._table(self.schema)
        for name, record in self._records().items():
            yield from ("", f"### {self.name}.{name}", "")
            if said := _said(record):
                yield from (said, "")
            if "properties" in record:
                yield from self._table(record)
            else:
                yield f"Type: {self._type(record)}."

    def _records(self) -> Mapping[str, Schema]:
        return self.schema.get("$defs", {})

    def _table(self, schema: Schema) -> Iterator[str]:
        required = set(cast("list[str]", schema.get("required", [])))
        yield "| field | type | always | what it says |"
        yield "| --- | --- | --- | --- |"
        properties: Mapping[str, Schema] = schema.get("properties", {})
        for name, field in properties.items():
            said = _said(field) or _said(self._records().get(_target(field), {}))
            yield f"| `{name}` | {self._type(field)} | {'yes' if name in required else ''} | {_cell(said)} |"

    def _type(self, schema: Schema) -> str:
        """How a reader would say the type: `string`, `list of cause`, `one of "a", "b"`."""
        if "$ref" in schema:
            name = _target(schema)
            return f"[{name}](#{self.name}{name.lower()})" if name else f"[{self.name}](#{self.name})"
        if "const" in schema:
            return f"`{json.dumps(schema['const'])}`"
        if "enum" in schema:
            return "one of " + ", ".join(f"`{value}`" for value in schema["enum"])
        for choice in ("anyOf", "oneOf"):
            if choice in schema:
                return " or ".join(self._type(option) for option in schema[choice])
        return self._plain_type(schema)

    def _plain_type(self, schema: Schema) -> str:
        kind = schema.get("type", "anything")
        if isinstance(kind, list):
            return " or ".join(cast("list[str]", kind))
        if kind == "array":
            return f"list of {self._type(schema.get('items', {}))}"
        return f"{kind} ({schema['format']})" if "format" in schema else str(kind)


def _target(schema: Schema) -> str:
    """The record that a `$ref` leads to; empty for none and for the document itself."""
    return str(schema.get("$ref", "")).rpartition("/")[2].removeprefix("#")


def _said(schema: Schema) -> str:
    return " ".join(str(schema.get("description", "")).split())


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
