"""Checks the arguments of a job against the parameters of its capability, and converts them to JSON.

Messages name arguments and types, never values: an argument may be a secret or a prompt.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from failwell.errors.faults import CapabilityInputError
from failwell.errors.missing_extra import need
from failwell.files.suggestions import unknown_word
from failwell.jobs.job import TOO_DEEP, JobRequest, unserializable
from failwell.jobs.settings import mistakes_of, type_text
from failwell.jobs.settings_schema import TYPES, path_text
from failwell.jobs.worker_process.types.conversion import to_json_value

Parameters = Mapping[str, Mapping[str, Any]]
"""Action → the JSON Schema of its arguments, as the worker reports them."""
_MOST = 10
"""How many mistakes are named."""


class ArgumentCheck:
    """The parameters of one capability. Without them, every argument passes and the worker alone checks."""

    def __init__(self, name: str, parameters: Parameters | None) -> None:
        self._name = name
        self._parameters = parameters
        self._validators: dict[tuple[str, bool], Any] = {}

    def as_json(self, request: JobRequest, arguments: Mapping[str, Any]) -> JobRequest:
        """The request with these arguments; paths, dates, enums, dataclasses and the like as JSON has them.

        Raises:
            CapabilityInputError: an argument contains itself, or is nested too deeply.
        """
        fields: Mapping[str, Any] = self._schema(request).get("properties", {})
        try:
            plain = {name: to_json_value(value, fields.get(name)) for name, value in arguments.items()}
        except RecursionError:
            raise self._invalid({"arguments": TOO_DEEP}) from None
        return replace(request, arguments=plain)

    def check(self, request: JobRequest) -> None:
        """Check the action and the arguments.

        Raises:
            CapabilityInputError: an argument is unknown, missing or of the wrong type. Every one is named.
        """
        parameters = self._parameters
        if parameters is None:
            return
        key = (request.action, request.stream)
        validator = self._validators.get(key)
        if validator is not None and self._takes(validator, request.arguments):
            return
        schema = self._schema(request)
        if not schema:
            names = ", ".join(f"`{name}`" for name in parameters)
            raise CapabilityInputError(
                f"`{self._name}` has no action `{request.action}`; it has {names or 'none'}",
                fields_invalid=["action"],
            )
        if validator is None:
            need("jsonschema_rs", "engine")
            from jsonschema_rs import Draft202012Validator

            validator = self._validators[key] = Draft202012Validator(dict(schema))
        if not self._takes(validator, request.arguments):
            self._refuse(request, schema, validator.iter_errors(request.arguments))

    def _takes(self, validator: Any, arguments: Mapping[str, Any]) -> bool:
        try:
            return validator.is_valid(arguments)
        except RecursionError:
            raise self._invalid({"arguments": TOO_DEEP}) from None
        except ValueError:
            mistakes: dict[str, str] = {}
            for name, value in arguments.items():
                mistakes |= unserializable(value, name, has_text_keys=True)
            raise self._invalid(mistakes or {"arguments": "cannot be written as JSON"}) from None

    def _schema(self, request: JobRequest) -> Mapping[str, Any]:
        parameters = self._parameters or {}
        if request.stream and request.action == "execute" and "execute_stream" in parameters:
            return parameters["execute_stream"]
        return parameters.get(request.action, {})

    def _refuse(self, request: JobRequest, schema: Mapping[str, Any], errors: Iterable[Any]) -> None:
        mistakes: dict[str, str] = {}
        for steps, words in mistakes_of(errors, request.arguments, _type_of):
            is_unknown = len(steps) == 1 and steps[0] not in schema["properties"]
            text = unknown_word(str(steps[0]), schema["properties"]) if is_unknown else words
            mistakes[path_text(steps)] = text
        raise self._invalid(mistakes, request.action)

    def _invalid(self, mistakes: Mapping[str, str], action: str = "execute") -> CapabilityInputError:
        texts = [f"`{place}` {words}" for place, words in mistakes.items()]
        what = self._name if action == "execute" else f"{self._name}.{action}"
        return CapabilityInputError(
            f"`{what}` cannot take these arguments: {'; '.join(texts[:_MOST])}"
            + (f"; and {len(texts) - _MOST} more" if len(texts) > _MOST else ""),
            fields_invalid=sorted({place.partition(".")[0].partition("[")[0] for place in mistakes}),
        )


def _type_of(keyword: str, value: object) -> str:
    """What a message says about a value: its type where that is the mistake, and never the value."""
    if keyword != "type":
        return ""
    names = [name for name, classes in TYPES.items() if type(value) in classes]
    return f", not {type_text(names[0])}" if names else ""
