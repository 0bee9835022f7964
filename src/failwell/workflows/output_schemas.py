"""Checks outputs against the schemas that steps declare."""

from collections.abc import Mapping
from typing import Any

from failwell.errors.field_paths import declared_names, field_path


class SchemaMismatch(ValueError):
    """An output of a step that does not match its schema; `field` is the place, if it is known."""

    def __init__(self, reason: str, field: str | None = None) -> None:
        super().__init__(reason)
        self.field = field


class OutputSchemas:
    """Validators of the outputs that steps declare, each compiled once."""

    def __init__(self) -> None:
        self._validators: dict[int, tuple[Mapping[str, Any], Any]] = {}

    def check(self, schema: Mapping[str, Any], parsed: Mapping[str, Any], streams: Mapping[str, Any]) -> None:
        """Check the output of a step against its schema, with the streams that the schema mentions.

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
            raise SchemaMismatch(
                f"`{place or 'the output'}` breaks the rule `{error.kind.name}`", place or None
            )

    def _validator(self, schema: Mapping[str, Any]) -> Any:
        entry = self._validators.get(id(schema))
        if entry is None:
            from jsonschema_rs import validator_for

            # The schema is kept with its validator, so that its id is not reused.
            entry = self._validators[id(schema)] = (schema, validator_for(dict(schema)))
        return entry[1]
