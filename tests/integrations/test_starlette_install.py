"""Starlette and FastAPI: every failure answers alike, whoever raised it."""

import asyncio
import logging
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel, ConfigDict
from starlette.applications import Starlette
from starlette.routing import Route

from failwell.delivery.problem_details import from_problem
from failwell.integrations.starlette import install
from failwell.report.record import ErrorReport
from tests.delivery.builders import a_fault, a_wait


class Order(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    count: int


def an_app(error: Exception, **options: Any) -> FastAPI:
    app = FastAPI()
    install(app, **options)

    @app.get("/fail")
    async def fail() -> None:
        raise error

    @app.post("/orders")
    async def order(order: Order) -> None: ...

    return app


def call(app: Any, method: str = "GET", path: str = "/fail", **options: Any) -> httpx.Response:
    async def send() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
            return await client.request(method, path, **options)

    return asyncio.run(send())


def test_a_fault_is_answered_with_its_status_and_wait() -> None:
    reports: list[ErrorReport] = []
    app = an_app(a_fault(not_before=a_wait(3.2)), on_report=reports.append)

    reply = call(app, headers={"x-request-id": "q-1"})

    assert reply.status_code == 429
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.headers["retry-after"] == "4"
    assert reply.headers.get_list("x-request-id") == ["q-1"]
    assert from_problem(reply.content).view("user") == reports[0].view("user")
    assert len(reports) == 1


def test_any_other_exception_is_answered_and_not_raised_into_the_server() -> None:
    reports: list[ErrorReport] = []

    reply = call(an_app(RuntimeError("secret words"), on_report=reports.append))

    assert reply.status_code == 500
    assert reply.json()["kind"] == "internal.bug"
    assert "secret words" not in reply.text
    assert [report.error_type for report in reports] == ["RuntimeError"]


def test_a_request_that_fails_validation_names_its_fields_and_no_values() -> None:
    body = {"name": ["canary-value"], "count": "canary-value", "extra": "canary-value"}

    reply = call(an_app(RuntimeError()), "POST", "/orders", json=body)

    assert reply.status_code == 422
    assert reply.json()["kind"] == "validation.input_invalid"
    assert reply.json()["fields_invalid"] == ["body.name", "body.count", "body.extra"]
    assert "canary-value" not in reply.text


def test_a_body_that_is_no_json_is_the_callers_mistake() -> None:
    reply = call(
        an_app(RuntimeError()),
        "POST",
        "/orders",
        content=b"{canary",
        headers={"content-type": "application/json"},
    )

    assert reply.status_code == 422
    assert "canary" not in reply.text


@pytest.mark.parametrize(
    ("status", "kind", "category"),
    [
        (400, "http.rejected", "user_input"),
        (401, "http.unauthorized", "denied"),
        (403, "http.forbidden", "denied"),
        (404, "http.not_found", "user_input"),
        (418, "http.rejected", "user_input"),
        (429, "http.too_many_requests", "transient"),
    ],
)
def test_a_routes_own_refusal_keeps_its_status_words_and_headers(
    status: int, kind: str, category: str
) -> None:
    refusal = HTTPException(status, "no order 17", headers={"WWW-Authenticate": "Bearer"})

    reply = call(an_app(refusal))

    assert reply.status_code == reply.json()["status"] == status
    assert (reply.json()["kind"], reply.json()["category"]) == (kind, category)
    assert reply.json()["detail"] == "no order 17"
    assert reply.headers["www-authenticate"] == "Bearer"
    assert from_problem(reply.content).view("user")["message"] == "no order 17"


def test_the_detail_of_a_server_error_is_held_back_unless_verbose_is_asked_for() -> None:
    refusal = HTTPException(500, "psycopg: password authentication failed for canary")

    strict = call(an_app(refusal))
    verbose = call(an_app(refusal, disclosure="verbose"))

    assert strict.status_code == verbose.status_code == 500
    assert "canary" not in strict.text
    assert "canary" in verbose.json()["detail"]


def test_a_detail_that_is_no_text_is_not_shown() -> None:
    reply = call(an_app(HTTPException(409, {"internal": "canary"})))

    assert reply.status_code == 409
    assert "canary" not in reply.text


def test_unknown_paths_and_methods_answer_with_problems_too() -> None:
    app = an_app(RuntimeError())

    assert call(app, path="/nowhere").json()["kind"] == "http.not_found"
    refused = call(app, "DELETE")
    assert refused.json()["kind"] == "http.method_not_allowed"
    assert refused.headers["allow"] == "GET"


def test_a_redirect_raised_as_an_exception_stays_one() -> None:
    reply = call(an_app(HTTPException(304, headers={"etag": "x"})))

    assert reply.status_code == 304
    assert reply.content == b""
    assert reply.headers["etag"] == "x"


def test_plain_starlette_is_served_as_well(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(request: Any) -> Any:
        raise a_fault("provider.quota_exhausted", not_before=a_wait(600))

    app = Starlette(routes=[Route("/fail", fail)])
    install(app)

    with caplog.at_level(logging.DEBUG, logger="failwell.http"):
        reply = call(app)

    assert reply.status_code == 503
    assert "retry-after" not in reply.headers
    assert len(caplog.records) == 1


def test_a_failure_in_a_middleware_outside_ours_is_still_a_problem() -> None:
    async def broken(scope: Any, receive: Any, send: Any) -> None:
        raise RuntimeError("secret words")

    app = an_app(RuntimeError())
    app.add_middleware(lambda app: broken)

    async def send() -> httpx.Response:
        # The framework raises again after answering; a server would only log it.
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.get("/fail")

    reply = asyncio.run(send())

    assert reply.status_code == 500
    assert reply.json()["kind"] == "internal.bug"
    assert "secret words" not in reply.text
