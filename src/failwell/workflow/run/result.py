"""The output of a script, built from its streams and checked against its schema."""

from collections.abc import Mapping
from typing import Any, cast

from failwell.adapters.vendors.field_paths import declared_names, field_path
from failwell.workflow.envelope import Malformed, NotStorable, parse

_LONGEST_WORD = 16
"""More characters than a literal or an escape has, which may be cut in half."""


def output_of(
    stdout: str, stderr: str, exit_code: int | None, stdout_file: str | None, stderr_file: str | None
) -> dict[str, Any]:
    """The output of a script: its streams, its exit code, and the files with output that was too long."""
    output: dict[str, Any] = {"stdout": stdout, "stderr": stderr}
    if exit_code is not None:
        output["exit_code"] = exit_code
    if stdout_file is not None:
        output["stdout_file"] = stdout_file
    if stderr_file is not None:
        output["stderr_file"] = stderr_file
    return output


def object_of(text: str) -> dict[str, Any] | None:
    """The JSON object in a script's stdout, if stdout is exactly one.

    Raises:
        NotStorable: it is one, but holds what cannot be recorded.
    """
    bare = text.strip()
    if not (bare.startswith("{") and bare.endswith("}")):
        return None
    try:
        value = parse(bare.encode("utf-8"))
    except NotStorable:
        raise
    except Malformed:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def is_cut_object(head: str, text: str) -> bool:
    """Whether a stdout that was cut is one JSON object: `head` is its uncut beginning, and `text` ends as it does.

    An object that ends within the head is the first line of many, as a log in JSON lines is.
    """
    from json import JSONDecodeError, JSONDecoder

    bare = head.lstrip()
    if not bare.startswith("{") or not text.rstrip().endswith("}"):
        return False
    try:
        JSONDecoder().raw_decode(bare)
    except JSONDecodeError as error:
        return error.pos >= len(bare) - _LONGEST_WORD or error.msg.startswith("Unterminated string")
    except (RecursionError, ValueError):
        return True
    return False


class SchemaMismatch(ValueError):
    """An output that does not match its schema; `field` is the place, if it is known."""

    def __init__(self, reason: str, field: str | None = None) -> None:
        super().__init__(reason)
        self.field = field


class OutputSchemas:
    """Validators of declared outputs, each compiled once."""

    def __init__(self) -> None:
        self._validators: dict[int, tuple[Mapping[str, Any], Any]] = {}

    def check(self, schema: Mapping[str, Any], parsed: dict[str, Any], streams: dict[str, Any]) -> None:
        """Check an output against its schema, with the streams that the schema mentions.

        Raises:
            SchemaMismatch: it does not match; the reason names the place and the rule, never a value or a key
                that the schema does not declare.
        """
        keys = {*schema.get("properties", ()), *schema.get("required", ())}
        value = {**{key: inner for key, inner in streams.items() if key in keys}, **parsed}
        for error in self._validator(schema).iter_errors(value):
            path = error.instance_path
            place = field_path(path, declared_names(error.evaluation_path)) if path else ""
            key = getattr(error.kind, "property", None)
            if key is not None:
                field = f"{place}.{key}" if place else str(key)
                raise SchemaMismatch(f"`{field}` is missing", field)
            raise SchemaMismatch(f"`{place or 'stdout'}` breaks the rule `{error.kind.name}`", place or None)

    def _validator(self, schema: Mapping[str, Any]) -> Any:
        entry = self._validators.get(id(schema))
        if entry is None:
            from jsonschema_rs import validator_for

            # The schema is kept with its validator, so that its id is not reused.
            entry = self._validators[id(schema)] = (schema, validator_for(dict(schema)))
        return entry[1]
