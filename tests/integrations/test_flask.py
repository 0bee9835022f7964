"""Flask: views, refusals and what Flask answers itself are problem documents."""

import logging
from typing import Any

import pytest
from flask import Flask, abort, redirect, request
from werkzeug.exceptions import Conflict

from failwell import Fault
from failwell.errors import NotBefore
from failwell.errors.report import ErrorReport
from failwell.integrations.flask import install

WORDS = "the patient is called Ada"


def an_app(error: BaseException | None = None, **options: Any) -> Any:
    app = Flask("shop")
    install(app, **options)

    @app.get("/fail")
    def fail() -> Any:
        if error is not None:
            raise error
        return "fine"

    @app.get("/orders/<int:number>")
    def order(number: int) -> Any:
        abort(404, f"there is no order {number}")

    @app.post("/orders")
    def add() -> Any:
        return {"name": request.json["name"]}

    @app.get("/old")
    def old() -> Any:
        abort(redirect("/fail"))

    return app.test_client()


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (KeyError(WORDS), 500, "internal.bug"),
        (Fault(kind="validation.input_invalid", fields_invalid=["page"]), 422, "validation.input_invalid"),
        (Fault(kind="provider.rate_limited", not_before=NotBefore(after=3.2)), 503, "http.unavailable"),
        (Fault(kind="provider.bad_request"), 502, "http.bad_gateway"),
        (Fault(kind="provider.timeout"), 504, "http.gateway_timeout"),
        (Conflict("taken"), 409, "http.rejected"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_every_failure_is_a_problem_with_one_record(
    error: Exception, status: int, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        reply = an_app(error).get("/fail", headers={"X-Request-ID": "q-1"})

    document = reply.get_json(force=True)
    assert (reply.status_code, document["kind"], document["status"]) == (status, kind, status)
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.headers.getlist("x-request-id") == ["q-1"]
    assert reply.headers.getlist("content-length") == [str(len(reply.data))]
    assert document["instance"] == "/fail"
    assert reply.headers.get("retry-after") == (
        "4" if "rate" in str(error) or kind == "http.unavailable" else None
    )
    (record,) = caplog.records
    assert (record.name, document["id"] in record.getMessage()) == ("failwell.http", True)
    assert WORDS not in caplog.text + reply.text


def test_a_refusal_keeps_its_words_and_headers() -> None:
    client = an_app()

    missing = client.get("/orders/17")
    refused = client.delete("/fail")
    unknown = client.get("/nowhere")

    assert missing.get_json(force=True)["detail"] == "there is no order 17"
    assert (refused.status_code, refused.get_json(force=True)["kind"]) == (405, "http.method_not_allowed")
    assert "GET" in refused.headers["allow"]
    assert unknown.get_json(force=True)["detail"] == "The request was not accepted."


def test_a_body_that_is_no_json_is_the_callers_mistake() -> None:
    reply = an_app().post("/orders", data=b"{canary", content_type="application/json")

    assert (reply.status_code, reply.get_json(force=True)["kind"]) == (400, "http.rejected")
    assert "canary" not in reply.text


def test_redirects_and_answers_that_succeed_pass() -> None:
    client = an_app()

    assert (client.get("/old").status_code, client.get("/old").headers["location"]) == (302, "/fail")
    fine = client.get("/fail")
    assert (fine.text, len(fine.headers["x-request-id"])) == ("fine", 32)


def test_observers_and_the_base_of_the_type_are_options() -> None:
    reports: list[ErrorReport] = []
    client = an_app(KeyError(WORDS), on_report=reports.append, type_base="https://errors.shop.example/")

    document = client.get("/fail").get_json(force=True)

    assert document["type"] == "https://errors.shop.example/internal.bug"
    assert [report.id for report in reports] == [document["id"]]


def test_a_failure_outside_of_the_views_is_a_problem_too(caplog: pytest.LogCaptureFixture) -> None:
    app = Flask("shop")

    def broken(environ: Any, start_response: Any) -> Any:
        raise KeyError(WORDS)

    app.wsgi_app = broken
    install(app)

    reply = app.test_client().get("/fail")

    assert (reply.status_code, reply.get_json(force=True)["kind"]) == (500, "internal.bug")
    assert len(caplog.records) == 1
