"""Switch a vendor client's own retries off, so that one loop decides about every repeat.

A client that repeats by itself makes calls that no ledger knows, and multiplies the waits. Where its
retries cannot be switched off from outside, the error says where to do it instead.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar, cast

from failwell.adapters.answers import take
from failwell.adapters.safe_getattr import safe_call, safe_getattr
from failwell.fault.base import Fault
from failwell.report.failure_context import Layer

C = TypeVar("C")

_NEVER = frozenset({"ollama", "linkup", "httpx", "httpx2", "aiohttp", "huggingface_hub"})
"""Clients that never retry by themselves."""
_ELSEWHERE = {
    "fal_client": "set `fal_client.client.MAX_ATTEMPTS = 1`, which holds for the whole process",
    "azure": "make it with `retry_total=0`",
    "instructor": "switch off the retries of the client inside it, and pass `max_retries=1` with every call",
    "litellm": "pass `num_retries=0` with every call",
    "langchain_openai": "make it with `max_retries=0`",
    "langchain_anthropic": "make it with `max_retries=0`",
}


class RetriesNotSwitchable(Fault, kind="validation.config_invalid"):
    """The client repeats calls by itself, and that cannot be changed from outside."""

    client: str
    instead: str
    """What to do where the client is made."""

    def summary(self) -> str:
        return f"the retries of `{self.client}` cannot be switched off from outside: {self.instead}"


def without_sdk_retries(client: C) -> C:
    """The client with its own retries off: itself, or a copy where the vendor makes one.

    Args:
        client: A client of openai, anthropic, groq, together (or of the same make), google-genai,
            mistralai, boto3, cohere, replicate or requests, or one that never repeats by itself.

    Raises:
        RetriesNotSwitchable: it repeats calls and cannot be stopped from outside, or it is unknown. The
            message says what to do instead.
    """
    home = type(client).__module__.partition(".")[0]
    if home in _NEVER:
        return client
    switch_off = _SWITCH_OFF.get(home)
    if switch_off is None and home not in _ELSEWHERE and callable(safe_getattr(client, "with_options")):
        switch_off = _by_options
    switched = None if switch_off is None else switch_off(client)
    if switched is None:
        advice = _ELSEWHERE.get(home, "it is not known here; switch them off where the client is made")
        raise RetriesNotSwitchable(client=f"{home}.{type(client).__name__}", instead=advice)
    return cast("C", switched)


def sdk_calls(error: BaseException) -> Layer | None:
    """The calls that the client behind `error` made by itself before it raised, if there were several."""
    home = type(error).__module__.partition(".")[0]
    read = _COUNTED.get(home)
    retries = None if read is None else read(error)
    if type(retries) is str and retries.isdecimal():
        retries = int(retries[:4])
    return Layer(f"{home} client", retries + 1, is_sdk=True) if type(retries) is int and retries > 0 else None


def _stainless(error: Any) -> Any:
    """The clients of one make number each of their retries in a header of the request."""
    headers = safe_getattr(safe_getattr(error, "request"), "headers")
    return safe_call(headers.get, None, "x-stainless-retry-count") if headers is not None else None


def _boto(error: Any) -> Any:
    return take(take(safe_getattr(error, "response"), "ResponseMetadata"), "RetryAttempts")


def _urllib3(error: Any) -> Any:
    retries = safe_getattr(safe_getattr(safe_getattr(error, "response"), "raw"), "retries")
    history: object = safe_getattr(retries, "history")
    return len(cast("tuple[object, ...]", history)) if type(history) is tuple else None


_COUNTED: dict[str, Callable[[Any], Any]] = {
    "openai": _stainless,
    "anthropic": _stainless,
    "groq": _stainless,
    "together": _stainless,
    "cerebras": _stainless,
    "botocore": _boto,
    "requests": _urllib3,
}
"""Reads how often a client repeated a call, by the module of its exceptions."""


def _by_options(client: Any) -> Any:
    """Clients of one make (openai, anthropic, groq, together and more) copy themselves."""
    return (
        client.with_options(max_retries=0) if isinstance(safe_getattr(client, "max_retries"), int) else None
    )


def _google(client: Any) -> Any:
    inside = safe_getattr(client, "_api_client")
    options = safe_getattr(inside, "_http_options")
    if options is None:
        return None
    if safe_getattr(options, "retry_options") is not None:
        once = import_module("tenacity").stop_after_attempt(1)
        for name in ("_retry", "_async_retry"):
            setattr(inside, name, getattr(inside, name).copy(stop=once))
    return client


def _mistral(client: Any) -> Any:
    configuration = safe_getattr(client, "sdk_configuration")
    if configuration is None:
        return None
    configuration.retry_config = None
    return client


def _botocore(client: Any) -> Any:
    meta = safe_getattr(client, "meta")
    service = safe_getattr(safe_getattr(safe_getattr(meta, "service_model"), "service_id"), "hyphenize")
    if not callable(service):
        return None
    name = service()
    meta.events.unregister(f"needs-retry.{name}", unique_id=f"retry-config-{name}")
    return client


def _cohere(client: Any) -> Any:
    wrapper = safe_getattr(client, "_client_wrapper")
    inner = safe_getattr(wrapper, "httpx_client")
    if not isinstance(safe_getattr(inner, "base_max_retries"), int):
        return None
    inner.base_max_retries = 0
    return client


def _replicate(client: Any) -> Any:
    for name in ("_client", "_async_client"):
        transport = safe_getattr(safe_getattr(client, name), "_transport")
        if not isinstance(safe_getattr(transport, "max_attempts"), int):
            return None
        transport.max_attempts = 0
    return client


def _requests(client: Any) -> Any:
    adapters: dict[str, Any] = safe_getattr(client, "adapters") or {}
    for adapter in adapters.values():
        adapter.max_retries = type(adapter.max_retries)(0, read=False)
    return client


_SWITCH_OFF: dict[str, Callable[[Any], Any]] = {
    "google": _google,
    "mistralai": _mistral,
    "botocore": _botocore,
    "cohere": _cohere,
    "replicate": _replicate,
    "requests": _requests,
}
