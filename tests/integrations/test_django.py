"""Django: views, addresses without a view, middleware and streams answer as elsewhere."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# Django has no type hints.

import json
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import Any

import httpx
import pytest
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.exceptions import BadRequest, ImproperlyConfigured, PermissionDenied
from django.core.wsgi import get_wsgi_application
from django.http import Http404, StreamingHttpResponse
from django.test import override_settings

from failwell import Fault
from failwell.errors import NotBefore
from failwell.integrations.django import FailwellMiddleware
from tests.delivery.builders import make_fault
from tests.django_site import VIEWS, configure_django
from tests.servers import Records, asgi_server, recorded, wsgi_server

WORDS = "the patient is called Ada"

VIEWS["words"] = WORDS


def raising(error: BaseException) -> Callable[[Any], Any]:
    def fail(request: Any) -> Any:
        raise error

    return fail


@pytest.fixture(scope="module")
def address() -> Generator[str]:
    configure_django()
    with wsgi_server(get_wsgi_application()) as url:
        yield url


@pytest.fixture(scope="module")
def async_address() -> Generator[str]:
    configure_django()
    with asgi_server(get_asgi_application()) as url:
        yield url


@pytest.fixture
def log() -> Generator[Records]:
    with recorded() as records:
        yield records


@pytest.mark.parametrize(
    ("error", "status", "kind", "logged"),
    [
        (KeyError(WORDS), 500, "internal.bug", "CRITICAL internal.bug"),
        (Fault(kind="validation.input_invalid"), 422, "validation.input_invalid", "WARNING validation."),
        (
            Fault(kind="provider.quota_exhausted"),
            503,
            "http.unavailable",
            "CRITICAL provider.quota_exhausted",
        ),
        (Fault(kind="provider.auth"), 502, "http.bad_gateway", "CRITICAL provider.auth"),
        (Http404("there is no order 17"), 404, "http.not_found", "WARNING http.not_found"),
        (PermissionDenied("ask the owner"), 403, "http.forbidden", "WARNING http.forbidden"),
        (BadRequest(WORDS), 400, "http.rejected", "WARNING http.rejected"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
@pytest.mark.parametrize("server", ["address", "async_address"])
def test_what_a_view_raises_is_answered_and_recorded_once(
    error: Exception,
    status: int,
    kind: str,
    logged: str,
    server: str,
    request: pytest.FixtureRequest,
    log: Records,
) -> None:
    url = request.getfixturevalue(server)
    VIEWS["fail"] = raising(error)

    reply = httpx.get(f"{url}/views/fail", headers={"x-request-id": "q-1"})

    (line,) = log.take()
    assert (reply.status_code, reply.json()["kind"]) == (status, kind)
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.headers["x-request-id"] == reply.json()["request_id"] == "q-1"
    assert reply.json()["instance"] == "/views/fail"
    assert line.startswith(f"failwell.http {logged}")
    assert reply.json()["id"] in line
    assert WORDS not in line + reply.text


def test_a_refusal_keeps_the_words_that_django_would_show(address: str) -> None:
    VIEWS["fail"] = raising(Http404("there is no order 17"))

    assert httpx.get(f"{address}/views/fail").json()["detail"] == "there is no order 17"


def test_an_address_without_a_view_is_a_problem_too(address: str, log: Records) -> None:
    reply = httpx.get(f"{address}/nowhere")

    assert (reply.status_code, reply.json()["kind"]) == (404, "http.not_found")
    assert "views/" not in reply.text
    assert len(log.take()) == 1


def test_a_failure_in_a_middleware_is_a_problem_too(address: str, log: Records) -> None:
    reply = httpx.get(f"{address}/broken-middleware")

    assert (reply.status_code, reply.json()["kind"]) == (500, "internal.bug")
    (line,) = log.take()
    assert line.startswith("failwell.http CRITICAL internal.bug: ")
    assert "in __call__" in line
    assert WORDS not in line + reply.text


def test_a_wait_is_passed_on(address: str) -> None:
    VIEWS["fail"] = raising(Fault(kind="provider.rate_limited", not_before=NotBefore(after=3.2)))

    reply = httpx.get(f"{address}/views/fail")

    assert (reply.status_code, reply.headers["retry-after"]) == (503, "4")


def test_an_answer_that_succeeds_has_a_request_id_and_nothing_else(address: str, log: Records) -> None:
    VIEWS["fine"] = lambda request: "fine"

    reply = httpx.get(f"{address}/views/fine")

    assert (reply.text, len(reply.headers["x-request-id"])) == ("fine", 32)
    assert log.take() == []


def pieces() -> Iterator[bytes]:
    yield b"data: 1\n\n"
    raise make_fault("provider.overloaded")


async def async_pieces() -> AsyncIterator[bytes]:
    yield b"data: 1\n\n"
    raise make_fault("provider.overloaded")


@pytest.mark.parametrize(("server", "body"), [("address", pieces), ("async_address", async_pieces)])
def test_a_stream_that_fails_ends_in_its_protocols_way(
    server: str, body: Callable[[], Any], request: pytest.FixtureRequest, log: Records
) -> None:
    url = request.getfixturevalue(server)
    VIEWS["events"] = lambda _: StreamingHttpResponse(body(), content_type="text/event-stream")
    VIEWS["text"] = lambda _: StreamingHttpResponse(body(), content_type="text/plain")

    events = httpx.get(f"{url}/views/events")
    (line,) = log.take()
    problem = json.loads(events.text.partition("event: error\ndata: ")[2])
    assert (problem["kind"], problem["retryable"]) == ("http.unavailable", True)
    assert problem["id"] in line
    assert line.startswith("failwell.http ERROR provider.overloaded: ")

    with pytest.raises(httpx.RemoteProtocolError, match="incomplete"):
        httpx.get(f"{url}/views/text")
    (line,) = log.take()
    assert line.startswith("failwell.http ERROR provider.overloaded: ")


def test_the_settings_choose_the_options_and_a_wrong_one_is_named() -> None:
    configure_django()
    base = "https://errors.shop.example/"

    with override_settings(FAILWELL={"type_base": base}):
        middleware = FailwellMiddleware(lambda request: None)
    assert middleware.border.type_base == base
    with override_settings(FAILWELL={"on_report": "tests.integrations.test_django.raising"}):
        assert FailwellMiddleware(lambda request: None).border.on_report is raising

    with (
        override_settings(FAILWELL={"type_bas": base}),
        pytest.raises(
            ImproperlyConfigured, match="FAILWELL has no option 'type_bas'; use one of disclosure,"
        ),
    ):
        FailwellMiddleware(lambda request: None)


def test_a_request_without_a_token_is_a_problem_too(address: str, log: Records) -> None:
    VIEWS["fine"] = lambda request: "fine"
    csrf = {
        "MIDDLEWARE": [*settings.MIDDLEWARE, "django.middleware.csrf.CsrfViewMiddleware"],
        "CSRF_FAILURE_VIEW": "failwell.integrations.django.csrf_failure",
    }

    with override_settings(**csrf), wsgi_server(get_wsgi_application()) as url:
        reply = httpx.post(f"{url}/views/fine")

    assert (reply.status_code, reply.json()["kind"]) == (403, "http.forbidden")
    assert any(line.startswith("failwell.http WARNING http.forbidden: ") for line in log.take())
