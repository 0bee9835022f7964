"""Drives other libraries' classification over rows on stdin, in the interpreter that has them.

Each is given what its own adapters would have handed to it, and its answer is read generously: a class
counts as right wherever it leads a caller to the right reaction.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, cast

Row = dict[str, Any]
Verdict = dict[str, Any]

NAMES = {
    "azure-openai": "azure", "google-gemini": "gemini", "google-vertex": "vertex_ai", "together": "together_ai",
    "openai-compatible": "openai", "generic": "openai", "huggingface-router": "huggingface", "aws-bedrock": "bedrock",
}  # fmt: skip
LITELLM = {
    "RateLimitError": "transient", "ServiceUnavailableError": "transient", "InternalServerError": "transient",
    "BadGatewayError": "transient", "APIConnectionError": "transient", "AuthenticationError": "configuration",
    "PermissionDeniedError": "configuration", "NotFoundError": "configuration", "BadRequestError": "user_input",
    "UnprocessableEntityError": "user_input", "UnsupportedParamsError": "user_input", "InvalidRequestError": "user_input",
    "ContextWindowExceededError": "content", "ContentPolicyViolationError": "content", "Timeout": "ambiguous",
    "PaymentRequiredError": "capacity", "BudgetExceededError": "capacity",
}  # fmt: skip
PYDANTIC_AI = {
    "ModelRateLimitError": "transient", "ModelOverloadedError": "transient", "ModelUnavailableError": "transient",
    "ModelServerError": "transient", "ModelQuotaExceededError": "capacity", "ModelAuthenticationError": "configuration",
    "ModelNotFoundError": "configuration", "ModelContextWindowExceededError": "content",
    "ModelRequestRejectedError": "user_input",
}  # fmt: skip
PHASES = {
    "ConnectError": "connect", "ConnectTimeout": "connect", "PoolTimeout": "pool", "ReadTimeout": "read",
    "ReadError": "read", "WriteError": "write", "WriteTimeout": "write", "RemoteProtocolError": "read",
}  # fmt: skip


def text(row: Row) -> str:
    return str(row.get("message") or row.get("body") or "")


def error_of(row: Row) -> Mapping[str, Any]:
    body = row.get("body")
    outer = cast("dict[str, Any]", body) if isinstance(body, dict) else {}
    inner = outer.get("error", outer)
    return cast("dict[str, Any]", inner) if isinstance(inner, dict) else {}


def litellm_driver() -> Callable[[Row], Verdict]:
    litellm, httpx = import_module("litellm"), import_module("httpx")
    exception_type = import_module("litellm.litellm_core_utils.exception_mapping_utils").exception_type
    made_by_a_provider = import_module("litellm.llms.base_llm.chat.transformation").BaseLLMException
    wait_of = vars(import_module("litellm.utils"))["_get_retry_after_from_exception_header"]
    vars(litellm)["suppress_debug_info"] = True
    request = httpx.Request("POST", "https://example.invalid/v1")

    def original(row: Row) -> Any:
        named = str(row.get("exception_class") or "Exception")
        status = row.get("http_status")
        if status is None:
            home, _, name = named.rpartition(".")
            real = getattr(httpx, name, None) if home in ("httpx", "httpx2") else None
            made = (
                real(text(row), request=request)
                if real is not None
                else type(name, (Exception,), {"message": text(row)})(text(row))
            )
        else:
            response = httpx.Response(status, headers=row["headers"], request=request)
            said = json.dumps(row["body"]) if isinstance(row["body"], dict) else text(row)
            made = made_by_a_provider(
                status, said, headers=response.headers, response=response, body=row["body"]
            )
        return made

    def drive(row: Row) -> Verdict:
        provider = NAMES.get(row["provider"], row["provider"])
        given = original(row)
        try:
            raised = exception_type(model="m", original_exception=given, custom_llm_provider=provider)
        except Exception as error:  # noqa: BLE001  (it raises what it found)
            raised = error
        name = type(raised).__name__
        category = LITELLM.get(name, "unknown")
        wait = wait_of(httpx.Headers(row["headers"]))
        return {
            "category": category,
            "retryable": category == "transient",
            "model_not_found": name == "NotFoundError",
            "retry_after_s": float(wait) if wait and wait > 0 else None,
        }

    return drive


def pydantic_ai_driver() -> Callable[[Row], Verdict]:
    rules = import_module("pydantic_ai._model_errors")
    wait_of = vars(import_module("pydantic_ai.exceptions"))["_parse_retry_after"]
    anthropic = import_module("pydantic_ai.models.anthropic._errors")

    def category_of(row: Row) -> str:
        error, provider, status = error_of(row), str(row["provider"]), row["http_status"]
        code, kind = error.get("code"), error.get("type")
        code = None if code is None else str(code)
        message = error.get("message") or text(row)
        if provider == "anthropic" and status:
            made = anthropic.api_error(
                "m", "anthropic", status_code=status, body=row["body"], message=text(row),
                headers=row["headers"], in_stream=row["transport"] == "stream",
            )  # fmt: skip
            return PYDANTIC_AI.get(type(made).__name__, "unknown")
        if provider.startswith("google"):
            reason = rules.google_error_reason(error.get("details"))
            found = rules.google_status_category(error.get("status"), message, reason)
        elif "bedrock" in provider:
            named = row["headers"].get("x-amzn-errortype") or str(row.get("exception_class") or "")
            found = rules.bedrock_code_category(named.rpartition(".")[2].partition(":")[0], message)
        else:
            known = status or rules.openai_compatible_status(code, kind)
            found = rules.openai_compatible_category(known, code, kind, message)
        found = found or (rules.http_status_category(status, message) if status else None)
        if found is not None:
            return PYDANTIC_AI.get(found.__name__, "unknown")
        causes: list[dict[str, Any]] = row.get("cause_chain") or []
        chain = [str(row.get("exception_class") or ""), *(str(cause.get("class")) for cause in causes)]
        phase = next((PHASES[n] for one in chain if (n := one.rpartition(".")[2]) in PHASES), None)
        if phase is None:
            return "unknown"
        return "transient" if phase in ("connect", "pool") else "ambiguous"

    def drive(row: Row) -> Verdict:
        category = category_of(row)
        return {
            "category": category,
            "retryable": category == "transient",
            "model_not_found": category == "configuration" and row["http_status"] == 404,
            "retry_after_s": wait_of(row["headers"]),
        }

    return drive


def failwell_driver() -> Callable[[Row], Verdict]:
    from failwell.adapters.log_records.log_record import classify

    def drive(row: Row) -> Verdict:
        report = classify(row)
        return {
            "category": report.category.value,
            "retryable": report.retryable,
            "model_not_found": report.kind == "provider.model_not_found",
            "retry_after_s": None if report.not_before is None else report.not_before.after,
        }

    return drive


DRIVERS = {
    "litellm": ("litellm", litellm_driver),
    "pydantic-ai": ("pydantic-ai-slim", pydantic_ai_driver),
    "failwell": (None, failwell_driver),
}


def microseconds(drive: Callable[[Row], Verdict], rows: list[Row]) -> float:
    """Time for one row: the median of five rounds over all of them."""
    rounds: list[float] = []
    for _ in range(5):
        before = time.perf_counter()
        for row in rows:
            drive(row)
        rounds.append((time.perf_counter() - before) / len(rows) * 1e6)
    return statistics.median(rounds)


def main() -> None:
    rows = [json.loads(line) for line in sys.stdin]
    told: dict[str, Any] = {}
    for name in sys.argv[1:]:
        distribution, make = DRIVERS[name]
        try:
            found = version(distribution) if distribution else ""
            drive = make()
        except (PackageNotFoundError, ImportError) as missing:
            told[name] = {"missing": str(missing)}
            continue
        told[name] = {
            "version": found,
            "verdicts": [drive(row) for row in rows],
            "us": microseconds(drive, rows),
        }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
