"""The signature of an action: the JSON Schema of its arguments, and its arguments as values of their types."""

import inspect
import typing
from collections.abc import Callable
from typing import Any

from ..failure_report import InvalidCall, attempt
from .conversion import from_json_value, has_own_form, schema_of_type

_NO_VALUE: Any = object()
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Signature:
    """The parameters of one function."""

    def __init__(self, call: Callable[..., Any]) -> None:
        """Read the signature; a function that has none takes every argument."""
        signature = attempt(lambda: inspect.signature(call), None)
        entries = [] if signature is None else list(signature.parameters.values())
        self._parameters = {entry.name: entry for entry in entries if entry.kind in _NAMED}
        self._takes_more = signature is None or any(entry.kind is entry.VAR_KEYWORD for entry in entries)
        # A hint that cannot be resolved is ignored.
        self._hints = attempt(lambda: typing.get_type_hints(call, include_extras=True), dict[str, Any]())
        self._converted = [name for name in self._parameters if self._is_converted(name)]
        self._unreachable = [
            entry.name
            for entry in entries
            if entry.kind is entry.POSITIONAL_ONLY and entry.default is entry.empty
        ]
        self._every_name = None if self._converted or self._unreachable else set(self._parameters)
        """All parameters, if arguments with these names need no further look."""

    def _is_converted(self, name: str) -> bool:
        return attempt(lambda: has_own_form(self._hints.get(name)), otherwise=False)

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments, as an object of names and values."""
        required = [
            name for name, parameter in self._parameters.items() if parameter.default is parameter.empty
        ]
        return {
            "type": "object",
            "properties": {name: self._schema_of(name) for name in self._parameters},
            "required": required,
            "additionalProperties": self._takes_more,
        }

    def _schema_of(self, name: str) -> dict[str, Any]:
        if name not in self._hints:
            return {}
        hint, is_optional = self._hints[name], self._parameters[name].default is None
        return attempt(
            lambda: schema_of_type(typing.Optional[hint] if is_optional else hint),  # noqa: UP045  (`|` does not take every hint)
            dict[str, Any](),
        )

    def values(self, action: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments as values of the types in the signature.

        Raises:
            InvalidCall: an argument is unknown, missing or no value of its type. Every one is named.
        """
        if arguments.keys() == self._every_name:
            return arguments
        mistakes = dict.fromkeys(self._unreachable, "cannot be passed by name")
        if not self._takes_more:
            mistakes |= {name: "is not known" for name in arguments if name not in self._parameters}
        for name, parameter in self._parameters.items():
            if parameter.default is parameter.empty and name not in arguments:
                mistakes[name] = "is missing"
        if not mistakes and not self._converted:
            return arguments
        values = dict(arguments)
        for name in self._converted:
            if name in values:
                values[name] = value = self._converted_value(name, values[name])
                if value is _NO_VALUE:
                    mistakes[name] = "is not a value of its type"
        if mistakes:
            texts = "; ".join(f"`{name}` {words}" for name, words in mistakes.items())
            raise InvalidCall(f"`{action}` cannot take these arguments: {texts}", list(mistakes))
        return values

    def _converted_value(self, name: str, value: Any) -> Any:
        return attempt(lambda: from_json_value(self._hints[name], value), _NO_VALUE)
