"""Why a request is refused, and the small questions that every check asks."""

from dataclasses import dataclass
from typing import Any, cast


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a provider says about a conversation that it does not accept."""

    message: str
    param: str | None = None
    """The member of the request, where the provider names one."""
    code: str | None = None
    """The provider's code, where it has one."""
    kind: str | None = None
    """The provider's type of the error, where it has several."""


def members(value: object) -> dict[str, Any]:
    """A JSON object, or an empty one if the value is something else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    """A JSON list, or an empty one if the value is something else."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def is_text(value: object) -> bool:
    """Whether the value is a string with at least one letter."""
    return isinstance(value, str) and value != ""
