"""Whose server a client was talking to: one SDK serves many providers, and the host says which.

A host that is not in the table may belong to anybody, so it is given no name. Whoever made the call
knows whom it called and can say so.
"""

from functools import lru_cache
from typing import Any, cast

from failwell.adapters.safe_getattr import safe_getattr

HOSTS: tuple[tuple[str, str], ...] = (
    (".openai.com", "openai"),
    (".anthropic.com", "anthropic"),
    ("openai.azure.com", "azure-openai"),
    ("cognitiveservices.azure.com", "azure-openai"),
    (".azure.com", "azure"),
    ("bedrock", "bedrock"),
    ("aiplatform.googleapis.com", "google-vertex"),
    ("generativelanguage.googleapis.com", "google"),
    ("openrouter.ai", "openrouter"),
    ("api.deepseek.com", "deepseek"),
    ("api.x.ai", "xai"),
    ("api.perplexity.ai", "perplexity"),
    ("dashscope", "dashscope"),
    ("api.groq.com", "groq"),
    ("api.together.", "together"),
    ("api.mistral.ai", "mistral"),
    ("api.cohere.", "cohere"),
    ("huggingface.co", "huggingface"),
)
"""A part of a host's name → the provider; the first that occurs counts."""
_MOST_HOSTS = 256


def provider_of(error: BaseException, otherwise: str) -> str | None:
    """Who was called: by the request's host; `otherwise` where no request is at hand, so no host differs."""
    try:
        host: object = cast("Any", error).request.url.host
    except BaseException:  # noqa: BLE001  (the way there may bite anywhere; then it is gone step by step)
        host = None
    if type(host) is str and host:
        return _provider_at(host)
    request = safe_getattr(error, "request")
    url = None if request is None else safe_getattr(request, "url")
    if url is None:
        return otherwise
    host = safe_getattr(url, "host")
    return _provider_at(host if type(host) is str and host else str(url)[:200])


@lru_cache(maxsize=_MOST_HOSTS)
def _provider_at(host: str) -> str | None:
    return next((name for part, name in HOSTS if part in host), None)
