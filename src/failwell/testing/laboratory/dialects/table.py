"""The dialects by name; a dialect is imported when it is used."""

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from failwell.testing.laboratory.dialect import Dialect

_MODULES = {
    "openai": "openai",
    "azure-openai": "azure",
    "openrouter": "openrouter",
    "anthropic": "anthropic",
    "google-genai": "google",
    "google-vertex": "google",
    "mistral": "mistral",
    "bedrock": "bedrock",
    "huggingface": "huggingface",
    "fal": "fal",
    "cohere": "cohere",
    "groq": "groq",
    "together": "together",
    "ollama": "ollama",
    "replicate": "replicate",
    "linkup": "linkup",
    "plain": "plain",
}


def dialect_names() -> tuple[str, ...]:
    """Every dialect there is."""
    return tuple(_MODULES)


@cache
def dialect(name: str) -> "Dialect | None":
    """The dialect called `name`, if there is one."""
    module = _MODULES.get(name)
    if module is None:
        return None
    loaded = import_module(f"failwell.testing.laboratory.dialects.{module}")
    return cast("dict[str, Dialect]", loaded.DIALECTS)[name]
