"""The three services of `examples/service` behind real servers, in front of the lab, failure by failure."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# Django has no type hints.

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from failwell.http import from_problem
from failwell.testing import lab
from tests.django_site import configure_django
from tests.servers import Records, asgi_server, recorded, wsgi_server

ROOT = Path(__file__).resolve().parents[2]
SERVICES = ("fastapi", "flask", "django")
EACH = ("fastapi", *(pytest.param(name, marks=pytest.mark.slow) for name in ("flask", "django")))
BASE = "https://errors.example.com/"
OPERATORS = ("plan", "billing", "balance", "api key", "account", "openai", "lab-large")
"""Words of the operator's, which no caller reads."""


class Expected(NamedTuple):
    status: int
    kind: str
    """What the caller reads."""
    logged: str
    """What the operator reads."""
    hint: str
    wait: str | None = None


UPSTREAM = {
    "rate_limited": Expected(503, "http.unavailable", "provider.rate_limited", "Wait 7 s", "7"),
    "rate_limited@none": Expected(503, "http.unavailable", "provider.rate_limited", "Wait for the window"),
    "daily_quota": Expected(503, "http.unavailable", "provider.quota_exhausted", "Check the plan and the balance"),
    "empty_balance": Expected(503, "http.unavailable", "provider.quota_exhausted", "Check the plan and the balance"),
    "bad_schema": Expected(502, "http.bad_gateway", "provider.bad_request", "Correct the request's parameters"),
    "bad_key": Expected(502, "http.bad_gateway", "provider.auth", "Check that the right key"),
    "no_permission": Expected(502, "http.bad_gateway", "provider.permission", "Ask the account's owner"),
    "missing_model": Expected(502, "http.bad_gateway", "provider.model_not_found", "Check the model's name"),
    "overloaded": Expected(503, "http.unavailable", "provider.overloaded", "Wait a moment"),
    "server_error": Expected(503, "http.unavailable", "provider.unavailable", "Wait a moment"),
    "html_502": Expected(503, "http.unavailable", "provider.unavailable", "Wait a moment"),
    "slow_headers": Expected(502, "http.bad_gateway", "provider.outcome_unknown", "Check whether the work"),
    "reset_after_read": Expected(502, "http.bad_gateway", "provider.outcome_unknown", "Check whether the work"),
    "garbage_json": Expected(502, "http.bad_gateway", "provider.output_invalid", "Simplify the requested form"),
    "truncated_output": Expected(502, "http.bad_gateway", "provider.output_truncated", "Allow a longer answer"),
}  # fmt: skip
CONTENT = {
    "content_refused_in": Expected(422, "provider.content_refused", "provider.content_refused", "Change the content"),
    "content_refused_out": Expected(422, "provider.content_refused", "provider.content_refused", "Change the content"),
    "context_too_long": Expected(422, "provider.context_too_long", "provider.context_too_long", "Shorten the input"),
}  # fmt: skip


@pytest.fixture(scope="module")
def addresses() -> Generator[dict[str, str]]:
    # Every process that runs tests would load them otherwise.
    from django.core.wsgi import get_wsgi_application
    from django.test import override_settings

    from examples.service import fastapi_service, flask_service

    configure_django()
    with ExitStack() as stack:
        fake = stack.enter_context(lab(stall=2))
        environment = stack.enter_context(pytest.MonkeyPatch.context())
        environment.setenv("LAB", fake.url("openai", "ok").removesuffix("/openai/ok"))
        stack.enter_context(
            override_settings(
                ROOT_URLCONF="examples.service.django_service",
                MIDDLEWARE=["failwell.integrations.django.FailwellMiddleware"],
                FAILWELL={"type_base": BASE},
            )
        )
        yield {
            "fastapi": stack.enter_context(asgi_server(fastapi_service.app)),
            "flask": stack.enter_context(wsgi_server(flask_service.app)),
            "django": stack.enter_context(wsgi_server(get_wsgi_application())),
        }


@pytest.fixture
def log() -> Generator[Records]:
    with recorded() as records:
        yield records


def ask(url: str, scenario: str, question: str = "why?") -> httpx.Response:
    return httpx.post(f"{url}/ask", params={"scenario": scenario}, json={"question": question}, timeout=20)


def said(document: dict[str, Any]) -> str:
    return json.dumps(
        {key: value for key, value in document.items() if key not in ("id", "request_id")}
    ).lower()


FAILURES = ("ERROR", "CRITICAL")
"""The first of its kind in an hour calls a person; whether it is the first depends on the tests before."""


def logged_as(kind: str) -> tuple[str, ...]:
    return tuple(f"failwell.http {level} {kind}: " for level in FAILURES)


@pytest.mark.parametrize("service", EACH)
def test_a_failed_call_of_the_service_is_not_its_callers_failure(
    service: str, addresses: dict[str, str], log: Records
) -> None:
    for scenario, expected in {**UPSTREAM, **CONTENT}.items():
        reply = ask(addresses[service], scenario)

        document = reply.json()
        assert (reply.status_code, document["kind"]) == (expected.status, expected.kind), scenario
        assert reply.headers["content-type"] == "application/problem+json"
        assert document["type"] == BASE + expected.kind
        assert reply.headers.get("retry-after") == expected.wait, scenario
        assert [word for word in OPERATORS if word in said(document)] == [], scenario
        assert from_problem(reply.content, status=reply.status_code).retryable == (
            expected.kind == "http.unavailable" and expected.logged != "provider.quota_exhausted"
        ), scenario
        levels = ("WARNING",) if scenario in CONTENT else FAILURES
        (line,) = log.take()
        assert line.startswith(tuple(f"failwell.http {level} {expected.logged}: " for level in levels)), (
            scenario
        )
        assert document["id"] in line
        assert f"hint: {expected.hint}" in line, scenario
        assert len(line.splitlines()) == 1, scenario


@pytest.mark.parametrize("service", EACH)
def test_a_bug_of_the_service_shows_its_stack_to_operators_alone(
    service: str, addresses: dict[str, str], log: Records
) -> None:
    reply = httpx.get(f"{addresses[service]}/topics/sk-live-canary")

    document = reply.json()
    assert (reply.status_code, document["kind"]) == (500, "internal.bug")
    assert "File" not in reply.text
    (text,) = log.take()
    first, *rest = text.splitlines()
    assert first.startswith(logged_as("internal.bug"))
    assert document["id"] in first
    assert f" KeyError at {ROOT}/examples/service/{service}_service.py:" in first
    assert rest[0] == "Traceback (most recent call last):"
    assert rest[-1] == "KeyError: [withheld]"
    assert rest[-2].startswith(f'  File "{ROOT}/examples/service/{service}_service.py", line ')
    assert rest[-2].endswith(", in topic")
    assert "canary" not in text


@pytest.mark.parametrize("service", EACH)
def test_what_the_caller_did_wrong_is_the_callers(
    service: str, addresses: dict[str, str], log: Records
) -> None:
    reply = ask(addresses[service], "ok", question=" ")

    assert (reply.status_code, reply.json()["kind"]) == (422, "validation.input_invalid")
    assert reply.json()["detail"] == "the question is empty"
    assert reply.json()["fields_invalid"] == ["question"]
    (line,) = log.take()
    assert line.startswith("failwell.http WARNING validation.input_invalid: the question is empty [")


def test_fastapi_keeps_the_reasons_of_its_validation(addresses: dict[str, str], log: Records) -> None:
    reply = httpx.post(f"{addresses['fastapi']}/ask", json={"question": ["canary"]})

    assert reply.status_code == 422
    assert reply.json()["errors"] == [
        {"type": "string_type", "loc": ["body", "question"], "msg": "Input should be a valid string"}
    ]
    assert "canary" not in reply.text + log.take()[0]


@pytest.mark.parametrize("service", EACH)
def test_an_unknown_address_and_a_good_answer(service: str, addresses: dict[str, str], log: Records) -> None:
    missing = httpx.get(f"{addresses[service]}/nowhere")
    assert (missing.status_code, missing.json()["kind"]) == (404, "http.not_found")
    assert log.take()[0].startswith("failwell.http WARNING http.not_found: ")

    good = ask(addresses[service], "ok")
    assert good.status_code == 200
    assert good.json()["answer"]
    whole = httpx.get(f"{addresses[service]}/events")
    assert whole.text.startswith("data: ")
    assert "event: error" not in whole.text
    assert httpx.get(f"{addresses[service]}/text").text
    assert log.take() == []


STREAMS = {
    "in_stream_error": ("provider.unavailable", "http.unavailable"),
    "broken_stream": ("provider.stream_interrupted", "http.bad_gateway"),
}


@pytest.mark.parametrize("service", EACH)
def test_a_stream_that_breaks_in_the_middle_ends_in_its_protocols_way(
    service: str, addresses: dict[str, str], log: Records
) -> None:
    for scenario, (logged, kind) in STREAMS.items():
        events = httpx.get(f"{addresses[service]}/events", params={"scenario": scenario})

        before, _, data = events.text.partition("event: error\ndata: ")
        document = json.loads(data)
        assert (events.status_code, before[:6]) == (200, "data: ")
        assert (document["kind"], document["type"]) == (kind, BASE + kind)
        assert [word for word in OPERATORS if word in said(document)] == []
        (line,) = log.take()
        assert line.startswith(logged_as(logged)), scenario
        assert document["id"] in line

        with pytest.raises(httpx.RemoteProtocolError, match="incomplete"):
            httpx.get(f"{addresses[service]}/text", params={"scenario": scenario})
        (line,) = log.take()
        assert line.startswith(logged_as(logged)), scenario


@pytest.mark.parametrize("service", EACH)
def test_a_stream_whose_model_refuses_at_once_tells_the_operator_why(
    service: str, addresses: dict[str, str], log: Records
) -> None:
    reply = httpx.get(f"{addresses[service]}/events", params={"scenario": "bad_key"})

    # Flask has sent nothing yet and answers; the others have begun, and end the stream.
    document = json.loads(reply.text.removeprefix("event: error\ndata: "))
    assert (document["status"], document["kind"]) == (502, "http.bad_gateway")
    assert reply.status_code == (502 if service == "flask" else 200)
    (line,) = log.take()
    assert line.startswith(logged_as("provider.auth"))
    assert "hint: Check that the right key" in line


def test_the_fastapi_service_documents_its_problems(addresses: dict[str, str]) -> None:
    schema = httpx.get(f"{addresses['fastapi']}/openapi.json").json()

    for path in schema["paths"].values():
        for operation in path.values():
            assert list(operation["responses"]["default"]["content"]) == ["application/problem+json"]


@pytest.mark.slow
def test_the_django_service_runs_as_a_program() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples/service/django_service.py"), "check"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
