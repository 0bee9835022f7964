"""Streams of SDK exceptions, no two of them alike, and what classifying one costs in this interpreter.

Every exception is made anew for its only reading, with an id, a wait, counts and a sentence of its own,
so that nothing is measured but what a program pays that meets one failure after another. It is made by
the SDK's own classes and never raised, so it has no traceback.
"""

import gc
import json
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

Make = Callable[[int], BaseException]
Call = Callable[[BaseException], object]

_MODELS = ("large-4", "large-4-mini", "small-2", "vision-1", "embed-3")
_URLS = {
    "openai": "https://api.openai.com/v1/chat/completions",
    "anthropic": "https://api.anthropic.com/v1/messages",
}


def headers(sdk: str, i: int, content: str, length: int) -> dict[str, str]:
    """The headers of one reply, as many as the two services really send."""
    left, reset = i * 7 % 900, f"{i % 50 + 1}.{i % 997}s"
    around = {
        "date": f"Thu, 0{i % 9 + 1} Jan 2026 10:{i % 60:02}:{i * 7 % 60:02} GMT",
        "content-type": content,
        "content-length": str(length),
        "connection": "keep-alive",
        "server": "cloudflare",
        "cf-ray": f"{i * 2654435761 % 2**64:016x}-FRA",
        "cf-cache-status": "DYNAMIC",
        "strict-transport-security": "max-age=31536000; includeSubDomains; preload",
        "x-content-type-options": "nosniff",
    }  # fmt: skip
    if sdk == "openai":
        limits = {
            "x-request-id": f"req_{i * 40503 % 2**64:032x}",
            "openai-processing-ms": str(i % 400),
            "openai-version": "2020-10-01",
            "x-ratelimit-limit-requests": "900",
            "x-ratelimit-remaining-requests": str(left),
            "x-ratelimit-reset-requests": reset,
            "set-cookie": f"__cf_bm={i:040x}; path=/; HttpOnly; Secure",
        }
    else:
        limits = {
            "request-id": f"req_{i * 40503 % 2**64:024x}",
            "anthropic-ratelimit-requests-limit": "900",
            "anthropic-ratelimit-requests-remaining": str(left),
            "anthropic-ratelimit-requests-reset": f"2026-01-01T10:{i % 60:02}:00Z",
            "anthropic-ratelimit-tokens-limit": "80000",
            "anthropic-ratelimit-tokens-remaining": str(left * 10),
            "x-should-retry": "true",
        }
    return around | limits


def refused_key(sdk: str, i: int) -> Any:
    if sdk == "openai":
        said = f"Incorrect API key provided: sk-{i:08x}***. You can find your API key in your account's settings."
        return {
            "error": {
                "message": said,
                "type": "invalid_request_error",
                "param": None,
                "code": "invalid_api_key",
            }
        }
    return {
        "type": "error",
        "error": {"type": "authentication_error", "message": f"invalid x-api-key ({i:06x})"},
        "request_id": f"req_{i:024x}",
    }


def limited(sdk: str, i: int) -> Any:
    model, wait = _MODELS[i % 5], f"{i % 59 + 1}.{i % 997:03}s"
    if sdk == "openai":
        said = (
            f"Rate limit reached for {model} in organization org-{i:024x} on tokens per min (TPM): "
            f"Limit {30_000 + i}, Used {29_000 + i}, Requested {1_200 + i % 77}. Please try again in {wait}."
        )
        return {"error": {"message": said, "type": "tokens", "param": None, "code": "rate_limit_exceeded"}}
    said = (
        f"This request would exceed your organization's rate limit of {30_000 + i} input tokens per minute "
        f"(org: {i:032x}, model: {model}). Please try again later or reduce the prompt length."
    )
    return {
        "type": "error",
        "error": {"type": "rate_limit_error", "message": said},
        "request_id": f"req_{i:024x}",
    }


def page(i: int) -> str:
    return (
        "<html>\r\n<head><title>500 Internal Server Error</title></head>\r\n<body>\r\n"
        f"<center><h1>500 Internal Server Error</h1></center>\r\n<hr><center>cloudflare {i:08x}</center>\r\n"
        f"<p>Ray id {i * 2654435761:016x}</p>\r\n</body>\r\n</html>\r\n"
    )


def status_error(sdk: str, status: int, body: Callable[[int], Any]) -> Make:
    """What the SDK's own client makes of a reply."""
    vendor, http = import_module(sdk), _http(sdk)
    client = (vendor.OpenAI if sdk == "openai" else vendor.Anthropic)(api_key="k")
    make: Any = getattr(client, "_make_status_error_from_response")  # noqa: B009  (what its own calls use)
    request = http.Request("POST", _URLS[sdk])

    def one(i: int) -> BaseException:
        told = body(i)
        text = told if isinstance(told, str) else json.dumps(told)
        content = "text/html; charset=UTF-8" if isinstance(told, str) else "application/json"
        known = headers(sdk, i, content, len(text))
        if status == 429:
            known |= {"retry-after": str(i % 59 + 1)} | (
                {"retry-after-ms": str(i % 59_000)} if sdk == "openai" else {}
            )
        response = http.Response(status, headers=known, content=text.encode(), request=request)
        return make(response)

    return one


def transport_error(sdk: str, name: str, below: str) -> Make:
    """What the SDK raises where no reply came, with the transport's own exception as its cause."""
    vendor, http = import_module(sdk), _http(sdk)
    request = http.Request("POST", _URLS[sdk])

    def one(i: int) -> BaseException:
        error = getattr(vendor, name)(request=request)
        error.__cause__ = getattr(http, below)(f"[Errno {i % 120}] attempt {i} failed", request=request)
        return error

    return one


def client_error(code: str, status: int, said: str) -> Make:
    made: Any = import_module("botocore.exceptions").ClientError

    def one(i: int) -> BaseException:
        around = {
            "RequestId": f"{i:08x}-0000-4000-8000-{i * 7:012x}",
            "HTTPStatusCode": status,
            "HTTPHeaders": {
                "date": f"Thu, 01 Jan 2026 10:{i % 60:02}:00 GMT",
                "content-type": "application/json",
                "content-length": str(100 + i % 50),
                "connection": "keep-alive",
                "x-amzn-requestid": f"{i:08x}-0000-4000-8000-{i * 7:012x}",
                "x-amzn-errortype": f"{code}:http://internal.amazon.com/coral/com.amazon.bedrock/",
            },
            "RetryAttempts": 0,
        }
        told = {"Error": {"Message": said.format(i), "Code": code}, "ResponseMetadata": around}
        return made(told, "Converse")

    return one


def _http(sdk: str) -> Any:
    """The HTTP library under this version of the SDK: newer ones have moved to httpx2."""
    base = import_module(f"{sdk}._base_client")
    return vars(base).get("httpx2") or vars(base)["httpx"]


def shapes() -> dict[str, Make]:
    """Every shape that the SDKs installed here can take."""
    found: dict[str, Make] = {}
    for sdk in _URLS:
        try:
            found |= {
                f"{sdk}, connection error": transport_error(sdk, "APIConnectionError", "ConnectError"),
                f"{sdk}, read time-out": transport_error(sdk, "APITimeoutError", "ReadTimeout"),
                f"{sdk}, 401": status_error(sdk, 401, lambda i, sdk=sdk: refused_key(sdk, i)),
                f"{sdk}, 429, headers and body": status_error(sdk, 429, lambda i, sdk=sdk: limited(sdk, i)),
                f"{sdk}, 500, a page": status_error(sdk, 500, page),
            }
        except ModuleNotFoundError:
            continue
    with suppress(ModuleNotFoundError):
        found |= {
            "botocore, throttled": client_error(
                "ThrottlingException", 429, "Too many tokens ({}), please wait before trying again."
            ),
            "botocore, access denied": client_error(
                "AccessDeniedException",
                403,
                "You don't have access to the model with the specified model ID ({}).",
            ),
        }
    return found


def calls() -> dict[str, Call]:
    """What is measured: classifying, reading, describing, and LiteLLM's mapping where it is installed.

    Classifying is gathering the facts and deciding: the kind with the rule and its runners-up, what
    the limit counts over how long, how far the call got, when to come back. A reading says it besides: the
    sentence, the safe headers and the record of the evidence.
    """
    from failwell import describe
    from failwell.adapters.classify import LIMITS, window_of
    from failwell.adapters.precedence import rules_for
    from failwell.adapters.registry import entries, read
    from failwell.adapters.retry_after import wait_of

    def classified(error: BaseException) -> object:
        door: Any = entries(type(error))[0][0]
        facts = door.facts(error)
        wait, _ = wait_of(facts)
        kind = rules_for(facts, wait)[0].kind
        return kind, wait, window_of(facts, kind) if kind in LIMITS else None

    found: dict[str, Call] = {"classify": classified, "read": read, "describe": describe}
    try:
        litellm = import_module("litellm")
        exception_type = import_module("litellm.litellm_core_utils.exception_mapping_utils").exception_type
    except ImportError:
        return found
    vars(litellm)["suppress_debug_info"] = True

    def by_litellm(error: BaseException) -> object:
        home = type(error).__module__.partition(".")[0]
        provider = "bedrock" if home == "botocore" else home
        try:
            return exception_type(model="m", original_exception=error, custom_llm_provider=provider)
        except Exception as raised:  # noqa: BLE001  (it raises what it found)
            return raised

    return found | {"litellm": by_litellm}


def measured(make: Make, call: Call, *, number: int, first: int) -> float:
    """Microseconds of CPU time for one exception; each of `number` is made for this one call.

    Collecting the garbage that making them leaves is not part of it, as in `timeit`.
    """
    gc.collect()
    gc.disable()
    errors = [make(first + i) for i in range(number)]
    before = time.thread_time_ns()
    for error in errors:
        call(error)
    spent = time.thread_time_ns() - before
    gc.enable()
    return spent / 1_000 / number


def main(arguments: list[str]) -> None:
    rounds, number = (3, 20) if "--quick" in arguments else (15, 100)
    tools, known = calls(), shapes()
    told = {shape: {name: [0.0] * rounds for name in tools} for shape in known}
    # The modules of the SDKs are many objects, and looking through them again each round takes minutes.
    gc.collect()
    gc.freeze()
    for make in known.values():
        for call in tools.values():
            call(make(0))
    # Ids are counted on: no shape and no round must find those of another one known.
    first = 1
    # The shapes take turns, so that a slow minute of the machine is slow for all alike.
    for turn in range(rounds):
        for shape, make in known.items():
            for name, call in tools.items():
                told[shape][name][turn] = measured(make, call, number=number, first=first)
                first += number
    versions: dict[str, str] = {}
    for name in ("openai", "anthropic", "botocore", "litellm"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    print(json.dumps({"versions": versions, "spent": told}))


if __name__ == "__main__":
    main(sys.argv[1:])
