"""Exceptions as SDKs and the standard library build them, with canaries in every place they have."""

import json
import linecache
import subprocess
from collections.abc import Callable
from typing import Any, cast

import httpx
import pydantic

from failwell.capability import CapabilityInputError
from failwell.errors.axes import ActionKind
from failwell.errors.facts import ProviderMetadata, UserAction
from failwell.errors.fault import Fault
from tests.canary.canaries import BODY, PROMPT, REGISTERED, SAID, SECRETS, all_secrets

Carrier = Callable[[], BaseException]
BY_NAME = {canary.name: canary for canary in SECRETS}

_MESSAGES = [{"role": "system", "content": "be brief"}, {"role": "user", "content": PROMPT}]
_HEADERS = {
    "authorization": f"Bearer {SECRETS[0].text}",
    "x-goog-api-key": SECRETS[1].text,
    "set-cookie": f"sid={SECRETS[2].text}",
    "x-request-id": "req_123",
    "retry-after": "7",
}


def _vendor(module: str, name: str, text: str, **attributes: Any) -> BaseException:
    """An exception of a class that an adapter takes for the vendor's."""
    cls: type[BaseException] = type(name, (Exception,), {"__module__": module})
    error = cls(text)
    for attribute, value in attributes.items():
        setattr(error, attribute, value)
    return error


def _reply(body: Any) -> httpx.Response:
    request = httpx.Request(
        "POST",
        f"https://user:{SECRETS[3].text}@api.acme.test/v1/chat",
        headers=_HEADERS,
        json={"messages": _MESSAGES},
    )
    return httpx.Response(400, headers=_HEADERS, json=body, request=request)


def openai_status() -> BaseException:
    body = {"message": f"{BODY} {all_secrets()}", "type": "invalid_request_error", "code": None}
    reply = _reply({"error": body})
    text = f"Error code: 400 - {{'error': {body}}}"
    return _vendor(
        "openai",
        "BadRequestError",
        text,
        body=body,
        response=reply,
        request=reply.request,
        status_code=400,
        message=text,
    )


def anthropic_status() -> BaseException:
    body = {"type": "error", "error": {"type": "overloaded_error", "message": BODY, "details": all_secrets()}}
    reply = _reply(body)
    return _vendor(
        "anthropic", "APIStatusError", f"{body}", body=body, response=reply, status_code=529, api_message=BODY
    )


def google_client() -> BaseException:
    details = {"error": {"code": 400, "message": f"{BODY}. {all_secrets()}", "status": "INVALID_ARGUMENT"}}
    text = f"400 INVALID_ARGUMENT. {details}"
    return _vendor(
        "google.genai.errors", "ClientError", text, details=details, code=400, response=_reply(details)
    )


def instructor_retries() -> BaseException:
    completion = {"choices": [{"message": {"content": BODY}}], "id": all_secrets()}
    return _vendor(
        "instructor.core.exceptions",
        "InstructorRetryException",
        f"<failed_attempts><generation number='1'><completion>{completion}</completion></generation>",
        last_completion=completion,
        messages=_MESSAGES,
        create_kwargs={"model": "large", "messages": _MESSAGES, "api_key": SECRETS[4].text},
        n_attempts=3,
    )


def litellm_error() -> BaseException:
    text = f"litellm.BadRequestError: OpenAIException - {BODY}\nReceived Messages={_MESSAGES} {all_secrets()}"
    return _vendor(
        "litellm.exceptions",
        "BadRequestError",
        text,
        message=text,
        messages=_MESSAGES,
        body={"error": BODY},
        status_code=400,
        litellm_debug_info=f"\nModel: large\nMessages: `{_MESSAGES}`",
        litellm_response_headers=_HEADERS,
    )


def cohere_error() -> BaseException:
    body = {"message": BODY}
    text = f"headers: {_HEADERS}, status_code: 429, body: {body}"
    return _vendor(
        "cohere.errors", "TooManyRequestsError", text, headers=_HEADERS, body=body, status_code=429
    )


def mistral_error() -> BaseException:
    body = json.dumps(
        {"object": "error", "message": f"{BODY} {all_secrets()}", "type": "invalid_request_error"}
    )
    return _vendor(
        "mistralai.models.sdkerror",
        "SDKError",
        f"API error occurred: Status 400. Body: {body}",
        body=body,
        headers=_HEADERS,
        raw_response=_reply({"x": body}),
        status_code=400,
    )


def bedrock_error() -> BaseException:
    response = {
        "Error": {"Code": "ValidationException", "Message": f"{BODY} {all_secrets()}"},
        "ResponseMetadata": {"HTTPStatusCode": 400, "HTTPHeaders": _HEADERS, "RequestId": "r1"},
    }
    text = f"An error occurred (ValidationException) when calling InvokeModel: {BODY} {all_secrets()}"
    return _vendor(
        "botocore.exceptions", "ClientError", text, response=response, operation_name="InvokeModel"
    )


def aiohttp_error() -> BaseException:
    request = type("RequestInfo", (), {"url": BY_NAME["key in a query"].text, "headers": _HEADERS})()
    text = f"400, message={BODY!r}, url='https://api.acme.test/v1?token={SECRETS[5].text}' {_HEADERS}"
    return _vendor(
        "aiohttp.client_exceptions", "ClientResponseError", text, request_info=request, headers=_HEADERS, status=400,
        message=BODY, body=BODY,
    )  # fmt: skip


def httpx_status() -> BaseException:
    reply = _reply({"error": {"message": BODY, "debug": all_secrets()}})
    return httpx.HTTPStatusError(
        f"Client error for {reply.request.url}: {reply.text}", request=reply.request, response=reply
    )


class Answer(pydantic.BaseModel):
    count: int
    name: str


def pydantic_error() -> BaseException:
    try:
        Answer.model_validate({"count": f"{SAID} {all_secrets()}", "name": {"deep": SAID}})
    except pydantic.ValidationError as error:
        return error
    raise AssertionError


def json_error() -> BaseException:
    try:
        json.loads('{"a": ' + f"{BODY} {all_secrets()}")
    except json.JSONDecodeError as error:
        return error
    raise AssertionError


def process_error() -> BaseException:
    return subprocess.CalledProcessError(
        3,
        ["curl", "-H", f"Authorization: Bearer {SECRETS[0].text}", PROMPT],
        output=BODY,
        stderr=all_secrets(),
    )


def process_timeout() -> BaseException:
    return subprocess.TimeoutExpired(["run", PROMPT, SECRETS[0].text], 3.0, output=BODY.encode())


def plain_arguments() -> BaseException:
    return ValueError(SAID, {"note": all_secrets()}, [canary.text for canary in SECRETS])


def file_error() -> BaseException:
    return OSError(2, f"{SAID} {all_secrets()}", BY_NAME["token as a user"].text)


def undecodable() -> BaseException:
    return UnicodeDecodeError("utf-8", f"{BODY} {all_secrets()}".encode(), 0, 1, SAID)


def ended() -> BaseException:
    return SystemExit(f"{SAID} {all_secrets()}")


def noted() -> BaseException:
    error = RuntimeError("short")
    for canary in SECRETS[:4]:
        error.add_note(f"with {canary.text}")
    error.add_note(f"{SAID} {all_secrets()}")
    return error


def caused() -> BaseException:
    middle = RuntimeError(f"{SAID} {all_secrets()}")
    middle.__cause__ = openai_status()
    outer = ValueError("outside")
    outer.__cause__ = middle
    return outer


def in_context() -> BaseException:
    outer = KeyError(SAID)
    outer.__context__ = httpx_status()
    outer.__context__.__context__ = noted()
    return outer


def grouped() -> BaseException:
    return ExceptionGroup(
        SAID, [cast("Exception", openai_status()), ExceptionGroup("in", [ValueError(all_secrets())])]
    )


def from_source() -> BaseException:
    """A traceback whose source lines hold what should never have been written there."""
    lines = [
        "def fail():\n",
        f"    client = dict(api_key='{REGISTERED.secret}', url='{BY_NAME['password in a url'].text}'); raise RuntimeError('short')\n",
    ]
    linecache.cache["<canary>"] = (sum(map(len, lines)), None, lines, "<canary>")
    scope: dict[str, Any] = {}
    exec(compile("".join(lines), "<canary>", "exec"), scope)
    try:
        scope["fail"]()
    except RuntimeError as error:
        return error
    raise AssertionError


def with_locals() -> BaseException:
    answer, secrets, prompt = BODY, all_secrets(), PROMPT
    try:
        raise RuntimeError("short")
    except RuntimeError as error:
        assert answer
        assert secrets
        assert prompt
        return error


def fault_details() -> BaseException:
    """A fault of ours, filled by an author who does not think about it."""
    return Fault(
        kind="provider.bad_request",
        message=f"refused: {all_secrets()}",
        user_action=UserAction(ActionKind.CHANGE_INPUT, f"look at {SECRETS[6].text}"),
        provider=f"acme {SECRETS[7].text}",
        model=f"large {SECRETS[8].text}",
        provider_metadata=ProviderMetadata(
            code=SECRETS[9].text, request_id=SECRETS[10].text, headers={**_HEADERS, "date": SECRETS[11].text}
        ),
        fields_invalid=[canary.text for canary in SECRETS],
        details={
            "password": REGISTERED.secret,
            "nested": {"api_key": "plain-and-short", "list": [{"Authorization": "x" * 9}, all_secrets()]},
            **{f"value {number}": canary.text for number, canary in enumerate(SECRETS[:40])},
            "url": BY_NAME["password in a url"].text,
            SECRETS[12].text: "as a key",
        },
    )


def fault_around() -> BaseException:
    return Fault.wrap(litellm_error(), "the page could not be written")


def capability_input() -> BaseException:
    error = CapabilityInputError(f"bad value: {all_secrets()}", fields_invalid=[SECRETS[0].text])
    error.__cause__ = plain_arguments()
    return error


CARRIERS: dict[str, Carrier] = {
    make.__name__: make
    for make in (
        openai_status, anthropic_status, google_client, instructor_retries, litellm_error, cohere_error,
        mistral_error, bedrock_error, aiohttp_error, httpx_status, pydantic_error, json_error, process_error,
        process_timeout, plain_arguments, file_error, undecodable, ended, noted, caused, in_context, grouped,
        from_source, with_locals, fault_details, fault_around, capability_input,
    )
}  # fmt: skip
