"""The promised API as text: one line per name or kind, so that a change to it shows in a diff.

`python -m tools.api` prints it; the copy in tests/house/api.txt is what we promised.
"""

import dataclasses
import inspect
import sys
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from typing import cast, get_args

from failwell.errors.kinds_table import CATALOGUE

PROMISED = (
    "failwell",
    "failwell.adapters",
    "failwell.agents",
    "failwell.agents.people",
    "failwell.calls",
    "failwell.capability",
    "failwell.delivery",
    "failwell.errors",
    "failwell.files",
    "failwell.http",
    "failwell.integrations.celery",
    "failwell.integrations.claude_agent_sdk",
    "failwell.integrations.dbos",
    "failwell.integrations.django",
    "failwell.integrations.fastapi",
    "failwell.integrations.fastmcp",
    "failwell.integrations.flask",
    "failwell.integrations.google_adk",
    "failwell.integrations.instructor",
    "failwell.integrations.langchain",
    "failwell.integrations.langgraph",
    "failwell.integrations.litellm",
    "failwell.integrations.mcp",
    "failwell.integrations.openai_agents",
    "failwell.integrations.prefect",
    "failwell.integrations.pydantic_ai",
    "failwell.integrations.stamina",
    "failwell.integrations.starlette",
    "failwell.integrations.structlog",
    "failwell.integrations.tenacity",
    "failwell.jobs",
    "failwell.logging",
    "failwell.otel",
    "failwell.sentry",
    "failwell.sessions",
    "failwell.store",
    "failwell.temporal",
    "failwell.temporal.plugin",
    "failwell.testing",
    "failwell.workflows",
)
"""The public modules: their `__all__` is API. Names elsewhere may move between releases."""


def api_text() -> str:
    """Every promised name with what a caller depends on: parameters, fields, members, axes."""
    lines = [line for module in PROMISED for line in _lines(module)]
    return "".join(f"{line}\n" for line in [*lines, *_kinds()])


def _kinds() -> Iterator[str]:
    for kind in CATALOGUE:
        yield f"kind {kind.name}: {kind.category} {kind.certainty} {kind.blame} {kind.status}"


def _lines(module_name: str) -> Iterator[str]:
    module = import_module(module_name)
    for name in sorted(module.__all__):
        yield f"{module_name}.{name}{_shape(getattr(module, name))}"


def _shape(value: object) -> str:
    if isinstance(value, type):
        return _class_shape(cast("type[object]", value))
    if words := get_args(value):
        return " = " + " | ".join(map(str, words))
    return _parameters(value) if callable(value) else f": {type(value).__name__}"


def _class_shape(value: type[object]) -> str:
    if issubclass(value, Enum):
        return " = " + " | ".join(str(member.value) for member in value)
    if dataclasses.is_dataclass(value):
        fields = ", ".join(
            field.name for field in dataclasses.fields(value) if not field.name.startswith("_")
        )
        return f": record({fields})"
    parents = ", ".join(parent.__name__ for parent in value.__bases__)
    return f": {parents}{_parameters(value)}"


def _parameters(value: object) -> str:
    """Names and order of the parameters, with the marks for positional- and keyword-only."""
    try:
        given = inspect.signature(value)  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError):
        return ""
    bare = [
        parameter.replace(annotation=inspect.Parameter.empty, default=_default(parameter))
        for parameter in given.parameters.values()
    ]
    text = str(given.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    unpacked = [
        get_args(each.annotation) for each in given.parameters.values() if each.kind == each.VAR_KEYWORD
    ]
    return text + "".join(f" of {types[0].__name__}" for types in unpacked if types)


class _Some:
    """Stands for a default: that there is one is a promise, its repr may hold an address."""

    def __repr__(self) -> str:
        return "…"


def _default(parameter: inspect.Parameter) -> object:
    return inspect.Parameter.empty if parameter.default is inspect.Parameter.empty else _Some()


if __name__ == "__main__":
    sys.stdout.write(api_text())
