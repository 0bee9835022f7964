"""The page of workflow files: every key, read from the JSON Schema that the checker's own tables make."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

Schema = Mapping[str, Any]

_LINKS = {
    "route": ("a [route](#routes)", "Routes"),
    "retry": ("a [retry](#retry-of-a-step)", "Retry of a step"),
    "output_field": ("a [field](#fields-of-an-output)", "Fields of an output"),
    "provider": ("a [provider](#providers)", "Providers"),
    "plugin": ("a [plugin](#plugins)", "Plugins"),
    "step": ("a [step](#steps)", ""),
    "stage": ("a [stage](#stages)", ""),
    "parallel": ("a [parallel group](#parallel)", ""),
    "for_each": ("a [for_each group](#for_each)", ""),
}
"""Parts that are said once: how a table names them, and their heading where it is not their own section."""
_VARIABLE = r"\$\{"
_KIND = r"[a-z0-9_]*(?:\."


def workflow_file_page() -> str:
    """One table for each part of a file."""
    from failwell.workflows.compile.json_schema import workflow_schema

    page = _Page(workflow_schema())
    return "\n".join(page.lines()) + "\n"


def value_words(schema: Schema) -> str:
    """What a value may be, in a few words, from its JSON Schema."""
    return _Page({"$defs": {}}).words(schema)


class _Page:
    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.parts: Mapping[str, Schema] = schema["$defs"]

    def lines(self) -> Iterator[str]:
        top: Mapping[str, Schema] = self.schema["properties"]
        yield from (
            "# The workflow file",
            "",
            "Every key of a workflow file, as `failwell validate` knows it. Files are YAML 1.2; a key that is not listed is a",
            "mistake. `failwell schema workflow` prints the same as JSON Schema, for editors. See",
            "[the guide](../guides/workflows.md) for what to do with them.",
            "",
            "Texts that are used while the run goes on (prompts, arguments, values, conditions, messages) are templates and may",
            "hold `{{ }}`; names, kinds, references and `env` may not. `${VARIABLE}` and `${VARIABLE:-default}` are replaced from",
            "the environment everywhere, before anything else. `NAME` in a key below stands for names of your own.",
            "",
            "## The file",
            "",
        )
        linked = {name: {"items": {"$ref": f"#/$defs/{part}"}} for name, part in
                  (("stages", "stage"), ("parallel", "parallel"), ("for_each", "for_each"))}  # fmt: skip
        whole = {key: {**value, "anyOf": [{"type": "array", **linked[key]}]} if key in linked else value
                 for key, value in top.items() if key != "workflow"}  # fmt: skip
        yield from self._rows(whole, frozenset(), "")
        yield from ("", "## workflow", "")
        yield from self._table(top["workflow"])
        yield from self._steps()
        for name, title in (("stage", "stages"), ("parallel", "parallel"), ("for_each", "for_each")):
            yield from ("", f"## {title}", "", str(self.parts[name].get("description", "")), "")
            yield from self._table(self.parts[name])
        for name, (_, title) in _LINKS.items():
            if title:
                yield from ("", f"## {title}", "")
                if said := self.parts[name].get("description"):
                    yield from (str(said), "")
                part = self._inner(self.parts[name])[0] or self.parts[name]
                yield from self._table(part)
                yield from self._rules(part)

    def _steps(self) -> Iterator[str]:
        steps = {
            name.removeprefix("step_"): part for name, part in self.parts.items() if name.startswith("step_")
        }
        first: Mapping[str, Schema] = next(iter(steps.values()))["properties"]
        common = [
            key for key in first if all(step["properties"].get(key) == first[key] for step in steps.values())
        ]
        yield from ("", "## Steps", "", "Every step, whatever its type, has these:", "")
        yield from self._rows({key: first[key] for key in common}, frozenset({"name"}), "")
        for kind, step in steps.items():
            also = " (the same as `tool`, as conductor spells it)" if kind == "mcp" else ""
            yield from ("", f"### type: {kind}", "")
            if also:
                yield from (f"A call of a tool{also}.", "")
            yield from self._table(step, skip=frozenset(common))
            yield from self._rules(step)

    def _rules(self, step: Schema) -> Iterator[str]:
        for rule in cast("list[Schema]", step.get("allOf", [])):
            if "anyOf" in rule:
                words = ", ".join(f"`{one['required'][0]}`" for one in rule["anyOf"])
                yield from ("", f"Exactly one of {words}.")

    def _table(self, schema: Schema, skip: frozenset[str] = frozenset()) -> Iterator[str]:
        kept = {key: value for key, value in schema["properties"].items() if key not in skip}
        yield from self._rows(kept, frozenset(schema.get("required", [])), "")

    def _rows(self, keys: Mapping[str, Schema], required: frozenset[str], prefix: str) -> Iterator[str]:
        if not prefix:
            yield "| key | value | must | what it says |"
            yield "| --- | --- | --- | --- |"
        for key, schema in keys.items():
            said = str(schema.get("description", "")).replace("|", "\\|")
            must = "yes" if key in required else ""
            yield f"| `{prefix}{key}` | {self.words(schema)} | {must} | {said} |"
            inner, path = self._inner(schema)
            if inner is not None:
                below = frozenset(cast("list[str]", inner.get("required", [])))
                yield from self._rows(inner["properties"], below, f"{prefix}{key}{path}.")

    def _inner(self, schema: Schema) -> tuple[Schema | None, str]:
        """The closed mapping that a value is or holds, and how its keys are reached."""
        for one in _choices(schema):
            if "properties" in one:
                return one, ""
            held, path = one.get("additionalProperties"), ".NAME"
            if one.get("type") == "array":
                held, path = one.get("items"), "[]"
            if isinstance(held, Mapping):
                found, deeper = self._inner(cast("Schema", held))
                if found is not None:
                    return found, path + deeper
        return None, ""

    def words(self, schema: Schema) -> str:
        told = list(dict.fromkeys(self._one(one) for one in _choices(schema)))
        for one in told:
            if f"list of {one}" in told:
                told[told.index(f"list of {one}")] = "a list of them"
        return " or ".join(told) if told else "anything"

    def _one(self, schema: Schema) -> str:
        if "$ref" in schema:
            return _LINKS[str(schema["$ref"]).rpartition("/")[2]][0]
        if "const" in schema:
            return f"`{str(schema['const']).lower()}`"
        if "enum" in schema:
            return " ".join(f"`{word}`" for word in schema["enum"] if word is not None)
        match schema.get("type"):
            case "string":
                return "kind" if _KIND in str(schema.get("pattern", "")) else "text"
            case "boolean":
                return "`true` `false`"
            case "integer" | "number" as kind:
                return _bounded("whole number" if kind == "integer" else "number", schema)
            case "array":
                return f"list of {self.words(schema.get('items', {})).replace('a [', '[')}"
            case "object":
                held = schema.get("additionalProperties")
                return (
                    f"name → {self.words(cast('Schema', held))}" if isinstance(held, Mapping) else "mapping"
                )
            case _:
                return "anything"


def _choices(schema: Schema) -> Iterator[Schema]:
    """The alternatives of a value, without null and without a variable's text: both go without saying."""
    if "anyOf" in schema:
        for one in schema["anyOf"]:
            yield from _choices(one)
    elif schema.get("type") != "null" and schema.get("pattern") != _VARIABLE and _says(schema):
        yield schema


def _says(schema: Schema) -> bool:
    return any(key in schema for key in ("$ref", "const", "enum", "type"))


def _bounded(words: str, schema: Schema) -> str:
    least, most, above = (
        int(bound) if isinstance(bound, float) and bound.is_integer() else bound
        for bound in (schema.get(key) for key in ("minimum", "maximum", "exclusiveMinimum"))
    )
    if least is not None and most is not None:
        return f"{words} {least:,}–{most:,}"
    if above is not None:
        return f"{words} above {above:,}" + (f", up to {most:,}" if most is not None else "")
    return f"{words} from {least:,}" if least is not None else words
