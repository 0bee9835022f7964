"""Starlette and FastAPI: every failure answers alike, whoever raised it."""

import asyncio
import logging
import re
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel, ConfigDict
from starlette.applications import Starlette
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from failwell.delivery.http.problem_details import from_problem
from failwell.errors.report import ErrorReport
from failwell.integrations.starlette import install
from tests.delivery.builders import a_wait, make_fault


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
    app = an_app(make_fault(not_before=a_wait(3.2)), on_report=reports.append)

    reply = call(app, headers={"x-request-id": "q-1"})

    assert reply.status_code == 503
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.headers["retry-after"] == "4"
    assert reply.headers.get_list("x-request-id") == ["q-1"]
    assert [(report.kind, report.id) for report in reports] == [("provider.rate_limited", reply.json()["id"])]


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
    assert reply.json()["errors"] == [
        {"type": "string_type", "loc": ["body", "name"], "msg": "Input should be a valid string"},
        {
            "type": "int_parsing",
            "loc": ["body", "count"],
            "msg": "Input should be a valid integer, unable to parse string as an integer",
        },
        {"type": "extra_forbidden", "loc": ["body", "extra"], "msg": "Extra inputs are not permitted"},
    ]
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
    assert from_problem(reply.content, trusted=True).view("user")["message"] == "no order 17"


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
        raise make_fault("provider.quota_exhausted", not_before=a_wait(600))

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

    reply = call(app)

    assert reply.status_code == 500
    assert reply.json()["kind"] == "internal.bug"
    assert "secret words" not in reply.text


def test_the_answer_to_a_failure_passes_through_middleware_that_was_added_later() -> None:
    app = an_app(RuntimeError("secret words"))
    app.add_middleware(CORSMiddleware, allow_origins=["https://shop.example"])

    reply = call(app, headers={"origin": "https://shop.example"})

    assert reply.status_code == 500
    assert reply.headers["access-control-allow-origin"] == "https://shop.example"


def test_a_handler_of_the_applications_own_keeps_its_answer() -> None:
    app = an_app(KeyError("secret words"))

    @app.exception_handler(KeyError)
    async def own(request: Any, error: Any) -> Any:
        return PlainTextResponse("own", 418)

    assert (call(app).status_code, call(app).text) == (418, "own")


def test_an_app_that_has_started_is_refused() -> None:
    app = FastAPI()
    call(app)

    with pytest.raises(RuntimeError, match="after the app has started"):
        install(app)


def test_the_openapi_schema_shows_the_problem_and_describes_what_is_sent() -> None:
    app = an_app(make_fault(not_before=a_wait(3.2)))

    @app.get("/own", responses={422: {"description": "own"}})
    async def own() -> None: ...

    schema = call(app, path="/openapi.json").json()

    reference = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    replies = schema["paths"]["/orders"]["post"]["responses"]
    assert replies["422"]["content"] == replies["default"]["content"] == reference
    assert schema["paths"]["/own"]["get"]["responses"]["422"] == {"description": "own"}
    assert "HTTPValidationError" not in schema["components"]["schemas"]
    assert call(app, path="/openapi.json").json() == schema
    from jsonschema import Draft202012Validator

    validator: Any = Draft202012Validator(schema["components"]["schemas"]["Problem"])
    for reply in (call(app), call(app, "POST", "/orders", json={}), call(app, path="/nowhere")):
        validator.validate(reply.json())


def test_the_base_of_the_problem_type_can_be_chosen_and_must_be_an_address() -> None:
    base = "https://errors.shop.example/"

    reply = call(an_app(RuntimeError(), type_base=base))

    assert reply.json()["type"] == f"{base}internal.bug"
    for wrong in ("", "errors", "https://shop example/"):
        with pytest.raises(ValueError, match="`type_base` is "):
            install(FastAPI(), type_base=wrong)


def test_options_that_cannot_work_are_refused_at_once() -> None:
    async def later(report: ErrorReport) -> None: ...

    wrong: dict[str, dict[str, Any]] = {
        "`upstream` is 'show'; use 'neutral' or 'transparent'": {"upstream": "show"},
        "`disclosure` is 'open'; use 'strict' or 'verbose'": {"disclosure": "open"},
        "`request_id_header` is 'x request', which is not the name of a header": {
            "request_id_header": "x request"
        },
        "`on_report` must be a function that is not async": {"on_report": later},
    }
    for message, options in wrong.items():
        with pytest.raises(ValueError, match=re.escape(message)):
            install(FastAPI(), **options)


def test_an_answer_of_the_service_that_is_not_valid_is_the_services_bug() -> None:
    reports: list[ErrorReport] = []
    app = an_app(RuntimeError(), on_report=reports.append)

    @app.get("/invalid")
    async def invalid() -> Order:
        return {"name": "canary"}  # pyright: ignore[reportReturnType]

    reply = call(app, path="/invalid")

    assert (reply.status_code, reply.json()["kind"]) == (500, "internal.bug")
    assert "errors" not in reply.json()
    assert [report.error_type for report in reports] == ["ResponseValidationError"]
    assert "canary" not in reply.text


def test_a_mounted_application_of_its_own_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    for is_installed in (True, False):
        app, inner = FastAPI(), an_app(KeyError("secret words")) if is_installed else FastAPI()
        install(app)
        app.mount("/inner", inner)
        if not is_installed:

            @inner.get("/fail")
            async def fail() -> None:
                raise KeyError("secret words")

        caplog.clear()
        reply = call(app, path="/inner/fail")

        assert (reply.status_code, "secret words" in reply.text) == (500, False)
        assert (reply.headers["content-type"] == "application/problem+json") == is_installed
        assert [record.name for record in caplog.records] == ["failwell.http"]
