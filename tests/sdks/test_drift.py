"""Every exception class that an installed SDK exports is known here, or listed as left alone."""

from importlib import import_module
from importlib.util import find_spec

import pytest

from failwell.adapters.registry import HOMES, find

EXPORTS = {
    "aiohttp": ("aiohttp",),
    "anthropic": ("anthropic",),
    "botocore": ("botocore.exceptions",),
    "cohere": ("cohere", "cohere.core.api_error"),
    "fal_client": ("fal_client",),
    "google.genai": ("google.genai.errors",),
    "groq": ("groq",),
    "httpx": ("httpx",),
    "httpx2": ("httpx2",),
    "huggingface_hub": ("huggingface_hub.errors",),
    "instructor": ("instructor.core.exceptions",),
    "linkup": ("linkup",),
    "litellm": ("litellm.exceptions",),
    "mistralai": ("mistralai.client.errors", "mistralai.models.mistralerror", "mistralai.models.sdkerror"),
    "ollama": ("ollama",),
    "openai": ("openai",),
    "replicate": ("replicate.exceptions",),
    "requests": ("requests.exceptions",),
    "together": ("together",),
    "urllib3": ("urllib3.exceptions",),
}
"""An SDK → the modules in which it, or an earlier major of it, shows its exceptions."""

LEFT_ALONE = {
    "litellm.exceptions.ModifyResponseException": "how a guardrail hands back another answer; litellm catches it",
}
"""Classes that need no entry, each with the reason."""

INSTALLED = [sdk for sdk in EXPORTS if find_spec(sdk.partition(".")[0]) is not None]


def _exported(sdk: str) -> set[type[BaseException]]:
    top = sdk.partition(".")[0]
    return {
        thing
        for module in EXPORTS[sdk]
        for thing in _held_by(module)
        if isinstance(thing, type)
        and issubclass(thing, BaseException)
        and not issubclass(thing, Warning)
        and thing.__module__.partition(".")[0] == top
    }


def _held_by(module: str) -> list[object]:
    try:
        return list(vars(import_module(module)).values())
    except ModuleNotFoundError:
        return []


def _is_known(cls: type[BaseException]) -> bool:
    return any(
        find(above.__module__, above.__name__) is not None
        for above in cls.__mro__
        if above.__module__ != "builtins"
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.acceptance("pipelex 38")
@pytest.mark.parametrize("sdk", INSTALLED)
def test_every_exception_class_of_an_sdk_is_mapped(sdk: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # litellm fetches a price list when it is imported, unless it is told to use its own.
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")

    exported = _exported(sdk)

    unknown = sorted(f"{cls.__module__}.{cls.__name__}" for cls in exported if not _is_known(cls))

    assert exported
    assert HOMES.get(sdk.partition(".")[0]) is not None
    assert [name for name in unknown if name not in LEFT_ALONE] == []
