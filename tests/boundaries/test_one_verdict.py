"""One error, one verdict: every border that says where an error arose says the same of it."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# Django and jsonschema have no complete type hints.

import asyncio
import json
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import httpx
import pydantic
import pytest

import failwell
from failwell import Chain, ErrorReport, Fault
from failwell.adapters import check_reply, translate
from failwell.adapters.origin import ORIGINS
from failwell.calls import observe
from failwell.capability import classify_exception, map_bare_exception_to_job_error
from failwell.delivery.logging import report_of
from failwell.errors.facts import Origin
from failwell.errors.report import Scene, TracebackPolicy
from failwell.http import FailwellMiddleware, FailwellWSGIMiddleware
from failwell.integrations import starlette
from failwell.jobs.worker_process.failure_report import class_names_and_text, describe_failure
from failwell.jobs.workers.answer import read_report
from failwell.temporal.plugin import to_application_error
from failwell.workflows.failure import Failure
from tests.cli.running import failwell as command
from tests.django_site import VIEWS, configure_django
from tests.servers import recorded

PAGE = Path(__file__).resolve().parents[2] / "docs/concepts/model.md"


class Order(pydantic.BaseModel):
    size: int


def raised(action: Callable[[], object]) -> Exception:
    try:
        action()
    except Exception as error:
        return error
    raise AssertionError("it did not fail")


def against_a_schema() -> None:
    import jsonschema

    jsonschema.validate("many", {"type": "integer"})


SPECIMENS: dict[str, Callable[[], Exception]] = {
    "KeyError": lambda: raised(lambda: cast("dict[str, int]", {})["size"]),
    "TypeError": lambda: raised(lambda: cast("Any", "a") + 1),
    "ValueError": lambda: raised(lambda: int("many")),
    "LookupError": lambda: raised(lambda: "x".encode("no such codec")),
    "AssertionError": lambda: AssertionError("never"),
    "pydantic.ValidationError": lambda: raised(lambda: Order.model_validate({"size": "many"})),
    "jsonschema.ValidationError": lambda: raised(against_a_schema),
    "json.JSONDecodeError": lambda: raised(lambda: json.loads("{")),
    "UnicodeDecodeError": lambda: raised(b"\xff".decode),
    "FileNotFoundError": lambda: raised(Path("/no/such/file").read_text),
    "PermissionError": lambda: PermissionError(13, "Permission denied", "/x"),
    "TimeoutError": lambda: TimeoutError("timed out"),
    "ConnectionError": lambda: ConnectionError("gone"),
}


def documented() -> dict[str, dict[Origin, str]]:
    """The table on the page about the model: exception → origin → kind."""
    rows = re.findall(r"^\| `([\w.]+Error)` \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    cells = {name: [cell.strip(" `") for cell in line.split("|")] for name, line in rows}
    return {name: dict(zip(ORIGINS, kinds, strict=True)) for name, kinds in cells.items()}


def reported(send: Callable[[Callable[[ErrorReport], None]], object]) -> str:
    reports: list[ErrorReport] = []
    send(reports.append)
    (report,) = reports
    return report.kind


def get(app: Any) -> httpx.Response:
    async def call() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.get("/fail")

    return asyncio.run(call())


def asgi(error: Exception) -> str:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise error

    return reported(lambda keep: get(FailwellMiddleware(app, on_report=keep)))


def wsgi(error: Exception) -> str:
    def app(environ: Any, start_response: Any) -> Any:
        raise error

    def call(keep: Callable[[ErrorReport], None]) -> None:
        list(FailwellWSGIMiddleware(app, on_report=keep)({"PATH_INFO": "/"}, lambda *_: lambda _: None))

    return reported(call)


def in_starlette(error: Exception) -> str:
    from starlette.applications import Starlette
    from starlette.routing import Route

    async def fail(request: Any) -> Any:
        raise error

    def call(keep: Callable[[ErrorReport], None]) -> None:
        app = Starlette(routes=[Route("/fail", fail)])
        starlette.install(app, on_report=keep)
        get(app)

    return reported(call)


def in_fastapi(error: Exception) -> str:
    from fastapi import FastAPI

    async def fail() -> None:
        raise error

    def call(keep: Callable[[ErrorReport], None]) -> None:
        app = FastAPI()
        app.get("/fail")(fail)
        starlette.install(app, on_report=keep)
        get(app)

    return reported(call)


def in_flask(error: Exception) -> str:
    from flask import Flask

    from failwell.integrations import flask

    def fail() -> str:
        raise error

    def call(keep: Callable[[ErrorReport], None]) -> None:
        app = Flask(__name__)
        app.route("/fail")(fail)
        flask.install(app, on_report=keep)
        app.test_client().get("/fail")

    return reported(call)


def in_django(error: Exception) -> str:
    configure_django()
    from django.test import Client

    def fail(request: Any) -> Any:
        raise error

    VIEWS["one_verdict"] = fail
    with recorded() as records:
        Client(raise_request_exception=False).get("/views/one_verdict")
        (line,) = records.take()
    return line.split()[2].rstrip(":")


def logged(error: Exception) -> str:
    record = logging.LogRecord("x", logging.ERROR, "", 1, "failed", (), (type(error), error, None))
    report = report_of(record)
    assert report is not None
    return report.kind


def suppressed(error: Exception) -> str:
    events: list[Any] = []
    with observe(events.append), failwell.suppress(type(error), reason="a test"):
        raise error
    return events[0].report.kind


def retried(error: Exception) -> str:
    @failwell.retry(attempts=1)
    def call() -> None:
        raise error

    again = raised(call)
    report = failwell.describe(again)
    assert [attempt.kind for attempt in report.attempts] == [report.kind]
    return report.kind


def chained(error: Exception) -> str:
    def call(*_: Any, **__: Any) -> str:
        raise error

    chain = Chain(failwell.Entry(provider="acme", model="large", call=call))
    report = failwell.describe(raised(chain.call))
    return report.attempts[-1].kind or ""


def gathered(error: Exception) -> str:
    def call(_: int) -> None:
        raise error

    return failwell.gather(call, [1]).errors[0].kind


def streamed(error: Exception) -> str | None:
    def chunks() -> Iterator[Any]:
        raise error
        yield

    return cast("Fault", raised(lambda: list(failwell.checked("acme", chunks())))).kind


def saved(error: Exception, origin: Origin = "call") -> str:
    cls = type(error)
    module = "" if cls.__module__ == "builtins" else f"{cls.__module__}."
    return failwell.classify(
        {"exception_class": f"{module}{cls.__name__}", "message": str(error)}, origin=origin
    ).kind


def pasted(error: Exception, origin: Origin) -> str:
    cls = type(error)
    module = "" if cls.__module__ == "builtins" else f"{cls.__module__}."
    arguments = ("describe", "--origin", origin, "--format", "json")
    done = command(*arguments, given=f"{module}{cls.__name__}: {error}".splitlines()[0])
    return json.loads(done.out)["kind"]


def in_a_worker(error: Exception) -> str:
    answer = describe_failure(error, policy="strict", scene={"job": "j", "capability": "c"})
    return read_report(answer, Scene(job="j"), TracebackPolicy.STRICT).kind


def from_an_old_worker(error: Exception) -> str:
    answer = {"exception": class_names_and_text(error)}
    return read_report(answer, Scene(job="j"), TracebackPolicy.STRICT).kind


def as_a_job_error(error: Exception) -> str:
    kind = failwell.describe(error, origin="input").kind
    category = failwell.describe(error, origin="input").category.job
    assert map_bare_exception_to_job_error(error).category == classify_exception(error) == category
    return kind


BORDERS: dict[Origin, dict[str, Callable[[Exception], str | None]]] = {
    "code": {
        "describe": lambda error: failwell.describe(error).kind,
        "translate": lambda error: translate(error).kind,
        "asgi": asgi,
        "wsgi": wsgi,
        "starlette": in_starlette,
        "fastapi": in_fastapi,
        "flask": in_flask,
        "django": in_django,
        "log": logged,
        "suppress": suppressed,
        "temporal": lambda error: to_application_error(error).type,
        "workflow": lambda error: Failure.from_exception(error).kind,
        "saved": lambda error: saved(error, "code"),
    },
    "call": {
        "describe": lambda error: failwell.describe(error, origin="call").kind,
        "retry": retried,
        "chain": chained,
        "gather": gathered,
        "checked": streamed,
        "saved": saved,
    },
    "tool": {
        "describe": lambda error: failwell.describe(error, origin="tool").kind,
        "translate": lambda error: translate(error, origin="tool").kind,
        "saved": lambda error: saved(error, "tool"),
    },
    "input": {
        "describe": lambda error: failwell.describe(error, origin="input").kind,
        "worker": in_a_worker,
        "old worker": from_an_old_worker,
        "job error": as_a_job_error,
        "saved": lambda error: saved(error, "input"),
    },
}
KNOWN_BY_BUILTINS_ALONE = {"pydantic.ValidationError", "jsonschema.ValidationError", "json.JSONDecodeError"}
"""What a worker without failwell.errors can only send as the nearest built-in class, `ValueError` or `Exception`."""


def test_the_documented_table_names_every_specimen() -> None:
    assert set(documented()) == set(SPECIMENS)


@pytest.mark.parametrize("origin", ORIGINS)
def test_every_border_gives_the_verdict_of_the_table(origin: Origin) -> None:
    wrong: list[str] = []
    for border, verdict in BORDERS[origin].items():
        for name, make in SPECIMENS.items():
            if border == "old worker" and name in KNOWN_BY_BUILTINS_ALONE:
                continue
            kind = verdict(make())
            if kind != documented()[name][origin]:
                wrong.append(f"{border}: {name} is {kind}")

    assert wrong == []


def test_the_command_line_gives_the_same_verdict_of_printed_text() -> None:
    for origin in ORIGINS:
        for name in ("ValueError", "json.JSONDecodeError", "FileNotFoundError"):
            assert pasted(SPECIMENS[name](), origin) == documented()[name][origin], (name, origin)


def test_a_fault_keeps_its_kind_at_every_border() -> None:
    for borders in BORDERS.values():
        for border, verdict in borders.items():
            if border in ("saved", "old worker", "job error"):
                # They read names of foreign classes, or the category alone.
                continue
            assert verdict(Fault(kind="validation.input_invalid")) == "validation.input_invalid", border


def test_no_border_blames_the_caller_for_a_bug_or_the_end_user_for_a_failed_call() -> None:
    for name, kinds in documented().items():
        for origin in ("code", "call"):
            report = failwell.describe(SPECIMENS[name](), origin=origin)

            assert report.kind == kinds[origin]
            assert report.category not in ("user_input", "denied"), name
            assert report.origin == ("call" if report.kind.startswith("provider.") else "code")


def test_where_it_arose_is_kept_with_the_report_and_does_not_cost_it() -> None:
    report = failwell.describe(ValueError("x"), origin="tool")

    assert (report.origin, ErrorReport.from_json(report.to_json())) == ("tool", report)
    assert failwell.describe(ValueError("x"), origin=cast("Any", "nowhere")).kind == "internal.bug"
    assert failwell.describe(ValueError("x"), origin=cast("Any", ["call"])).kind == "internal.bug"


def test_an_argument_that_a_client_refuses_is_not_the_end_users_mistake() -> None:
    space: dict[str, Any] = {"__name__": "openai.resources"}
    exec("def create():\n    raise TypeError('missing `model`')", space)

    report = failwell.describe(raised(space["create"]))

    assert (report.kind, report.origin) == ("validation.input_invalid", "code")
    row = {"exception_class": "TypeError", "message": "missing `model`", "sdk": "openai"}
    assert failwell.classify(row).kind == "validation.input_invalid"


@pytest.mark.parametrize("code", [502, "502", "rate_limit_exceeded", "insufficient_quota"])
def test_an_error_in_a_good_reply_is_the_same_to_a_check_a_row_and_an_exception(code: object) -> None:
    body = {"error": {"code": code, "message": "see the code"}}

    checked = cast("Fault", raised(lambda: check_reply("openrouter", body)))
    row = failwell.classify({"provider": "openrouter", "http_status": 200, "body": body})
    wrapped = raised(lambda: None if code is None else _sdk_error(body))

    assert {checked.kind, row.kind, failwell.describe(wrapped).kind} == {checked.kind}
    assert checked.kind != "provider.output_invalid"


def _sdk_error(body: object) -> None:
    import openai

    response = httpx.Response(200, json=body, request=httpx.Request("POST", "https://openrouter.ai/api"))
    raise openai.APIError("the reply holds an error", cast("Any", response.request), body=body)
