"""Answers that a route chose itself: the caller gets the status, the operator the stack of what was behind it."""

import asyncio
import io
import logging
from collections.abc import Iterator

import httpx
import pytest
import structlog
from fastapi import FastAPI, HTTPException
from flask import Flask, abort

from failwell import retry
from failwell.integrations import fastapi, flask
from failwell.integrations.structlog import report_exception


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What the log of a service shows."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    logging.getLogger("failwell.http").addHandler(handler)
    yield text
    logging.getLogger("failwell.http").removeHandler(handler)


def get(app: FastAPI) -> httpx.Response:
    async def call() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
            return await client.get("/")

    return asyncio.run(call())


def deep() -> float:
    return 1 / 0


@pytest.mark.parametrize("status", [500, 503])
def test_an_answer_with_5xx_keeps_the_stack_of_its_cause(log: io.StringIO, status: int) -> None:
    app = FastAPI()
    fastapi.install(app)

    @app.get("/")
    def route() -> None:
        try:
            deep()
        except ZeroDivisionError as error:
            raise HTTPException(status, "database of customer 17 is down") from error

    reply = get(app)

    assert reply.status_code == status
    assert "customer 17" not in reply.text + log.getvalue()
    assert "ZeroDivisionError" in log.getvalue()
    assert "in deep" in log.getvalue()
    assert reply.json()["id"] in log.getvalue()


def test_an_abort_in_flask_keeps_it_too(log: io.StringIO) -> None:
    app = Flask("service")
    flask.install(app)

    @app.get("/")
    def route() -> str:
        try:
            return str(deep())
        except ZeroDivisionError:
            abort(500, "database is down")

    reply = app.test_client().get("/")

    assert reply.status_code == 500
    assert "ZeroDivisionError" in log.getvalue()
    assert "in deep" in log.getvalue()


def test_an_answer_with_4xx_is_one_line(log: io.StringIO) -> None:
    app = FastAPI()
    fastapi.install(app)

    @app.get("/")
    def route() -> None:
        raise HTTPException(409, "it exists")

    reply = get(app)

    assert reply.json()["detail"] == "it exists"
    assert "Traceback" not in log.getvalue()


def test_a_call_that_waits_long_says_nothing_of_the_provider_to_the_caller(log: io.StringIO) -> None:
    app = FastAPI()
    fastapi.install(app)

    @retry(attempts=3)
    def call() -> None:
        request = httpx.Request("POST", "https://provider.example/v1/chat")
        httpx.Response(429, headers={"retry-after": "7200"}, request=request).raise_for_status()

    @app.get("/")
    def route() -> None:
        call()

    reply = get(app)

    assert reply.status_code == 503
    assert reply.json()["detail"] == "A service that this one depends on is not available."
    assert "blocked until" in log.getvalue()


def test_structlog_keeps_the_exception_whatever_rendered_it_before() -> None:
    for earlier in (structlog.processors.dict_tracebacks, structlog.processors.format_exc_info):
        text = io.StringIO()
        logger = structlog.wrap_logger(
            structlog.PrintLogger(text),
            processors=[earlier, report_exception, structlog.processors.JSONRenderer()],
        )
        try:
            deep()
        except ZeroDivisionError:
            logger.exception("failed")

        assert "ZeroDivisionError" in text.getvalue()
        assert "in deep" in text.getvalue()
        assert "division by zero" not in text.getvalue()


def test_structlog_says_so_when_the_exception_is_gone() -> None:
    event = report_exception(None, "error", {"event": "failed", "exception": "Traceback ...: my secret"})

    assert "put `report_exception` before" in event["error"]["hint"]
    assert "my secret" not in str(event)
