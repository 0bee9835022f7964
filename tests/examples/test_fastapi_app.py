"""The example service, in process and over a real socket."""

import asyncio
import logging
from typing import Any

import httpx
import pytest

from examples.fastapi_app import FAILURES, client_report, create_app
from failwell.delivery.http.caller_report import for_caller
from failwell.errors.report import ErrorReport
from tests.servers import asgi_server

STATUSES = {
    "rate_limit": 503,
    "unavailable": 503,
    "timeout": 504,
    "lost_reply": 502,
    "quota": 503,
    "memory": 503,
    "budget": 409,
    "stopped": 409,
    "credentials": 502,
    "input": 422,
    "content": 422,
    "denied": 403,
    "bug": 500,
    "value": 500,
}


def call(app: Any, path: str, method: str = "GET", **options: Any) -> httpx.Response:
    async def send() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
            return await client.request(method, path, **options)

    return asyncio.run(send())


def test_every_failure_of_the_example_has_its_status_here() -> None:
    assert STATUSES.keys() == FAILURES.keys()


@pytest.mark.acceptance("pipelex 65")
@pytest.mark.parametrize("name", FAILURES)
def test_a_caller_gets_back_the_report_that_the_service_made(name: str) -> None:
    reports: list[ErrorReport] = []

    reply = call(create_app(reports.append), f"/failures/{name}")
    received = client_report(reply)

    assert reply.status_code == STATUSES[name]
    assert received is not None
    sent = for_caller(reports[0])[0]
    assert [received.id] == [report.id for report in reports]
    if received.kind == sent.kind:
        assert received.view("user") == sent.view("user")
    else:
        # A service's own bug, limit or cancel is, for its caller, a failure of a provider.
        assert received.kind.startswith("provider.")
        assert received.details["peer"]["kind"] == sent.kind
    assert "acme" not in reply.text
    assert "hunter22" not in reply.text


@pytest.mark.acceptance("pipelex 65")
def test_only_what_may_be_repeated_names_a_time() -> None:
    app = create_app(lambda report: None)

    waits = {name: call(app, f"/failures/{name}").headers.get("retry-after") for name in FAILURES}

    assert {name: wait for name, wait in waits.items() if wait is not None} == {
        "rate_limit": "4",
        "unavailable": "30",
    }


def test_an_order_that_is_not_valid_names_its_fields() -> None:
    reply = call(create_app(lambda report: None), "/orders", "POST", json={"count": "many"})

    report = client_report(reply)

    assert report is not None
    assert report.kind == "validation.input_invalid"
    assert report.fields_invalid == ("body.name", "body.count")
    assert "many" not in reply.text


def test_an_order_that_does_not_exist_is_said_in_the_routes_own_words() -> None:
    reply = call(create_app(lambda report: None), "/orders/17")

    report = client_report(reply)

    assert reply.status_code == 404
    assert report is not None
    assert report.view("user")["message"] == "there is no order 17"


def test_a_good_order_is_no_failure() -> None:
    reply = call(create_app(), "/orders", "POST", json={"name": "tea", "count": 2})

    assert reply.json() == {"name": "tea", "count": 2}
    assert client_report(reply) is None


def test_over_a_real_socket_the_same_reports_arrive(caplog: pytest.LogCaptureFixture) -> None:
    reports: list[ErrorReport] = []
    with (
        asgi_server(create_app(reports.append)) as url,
        httpx.Client(base_url=url, timeout=20) as client,
        caplog.at_level(logging.INFO),
    ):
        replies = {name: client.get(f"/failures/{name}", headers={"x-request-id": name}) for name in FAILURES}

    received = [client_report(reply) for reply in replies.values()]
    assert {name: reply.status_code for name, reply in replies.items()} == STATUSES
    assert {reply.headers["x-request-id"] for reply in replies.values()} == set(FAILURES)
    assert [one and one.id for one in received] == [report.id for report in reports]
    assert replies["rate_limit"].headers["retry-after"] == "4"
    # The server saw no exception, so it printed no traceback.
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
    assert "hunter22" not in caplog.text
