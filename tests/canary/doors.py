"""Every way out of the house, as one function from an exception to all the text that left.

How much is recorded follows the environment, as in a program that sets `FAILWELL_TRACEBACK`.
"""

import asyncio
import json
import logging
import pickle
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from io import StringIO
from typing import Any, Literal

import httpx
import sentry_sdk
import structlog
from fastapi import FastAPI
from flask import Flask
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from rich.console import Console
from sentry_sdk.envelope import Envelope
from sentry_sdk.transport import Transport

from failwell.adapters.describe import describe
from failwell.adapters.job_errors import map_bare_exception_to_job_error
from failwell.adapters.revival import revive, translate
from failwell.agents.tool_errors import ToolCalls
from failwell.calls.suppress import catch
from failwell.delivery.agent_output import agent_json, agent_markdown
from failwell.delivery.http.asgi import FailwellMiddleware
from failwell.delivery.http.problem_details import from_problem, problem, problem_json
from failwell.delivery.http.wsgi import FailwellWSGIMiddleware
from failwell.delivery.logging import JsonFormatter, ReportFilter, log_report
from failwell.delivery.terminal import panel, render_text
from failwell.delivery.webhook import failure_payload
from failwell.errors.fault import Fault
from failwell.errors.report import ErrorReport, default_policy
from failwell.integrations.django import FailwellMiddleware as DjangoMiddleware
from failwell.integrations.flask import install as install_in_flask
from failwell.integrations.mcp import from_tool_result, tool_result
from failwell.integrations.starlette import install
from failwell.integrations.structlog import report_exception
from failwell.otel import emit
from failwell.sentry import before_send
from tests.canary.canaries import SECRETS
from tests.django_site import a_request, configure_django

Audience = Literal["shown", "operator"]
"""Shown to users, callers and models; or for those who run the program."""


_latest: list[tuple[BaseException, object, ErrorReport]] = []


def _report(error: BaseException) -> ErrorReport:
    """The report of `error`. Doors that write a report without touching the error share one."""
    policy = default_policy()
    if not _latest or _latest[0][:2] != (error, policy):
        _latest[:] = [(error, policy, describe(error))]
    return _latest[0][2]


@dataclass(frozen=True, slots=True)
class Door:
    """One way out."""

    module: str
    """Which module of `failwell.delivery` it leads through; empty for the core's own."""
    audience: Audience
    open: Callable[[BaseException], str]


def _view(audience: Any, **options: Any) -> Callable[[BaseException], str]:
    return lambda error: json.dumps(_report(error).view(audience, **options), ensure_ascii=False)


def _wire(error: BaseException) -> str:
    report = _report(error)
    return report.to_json() + repr(report) + repr(revive(report))


def _job(error: BaseException) -> str:
    job = map_bare_exception_to_job_error(error, traceback_policy=default_policy())
    return json.dumps(job.to_dict(), ensure_ascii=False) + repr(job)


def _pickled(error: BaseException) -> str:
    # What a fault itself was given travels as it is; what it was raised from travels as a report.
    sent = [Fault.wrap(error, kind="tool.failed", message="outside"), Fault.wrap(error, "outside")]
    if not isinstance(error, Fault):
        sent.append(translate(error))
    return (
        "".join(pickle.dumps(fault).decode("latin-1") for fault in sent)
        if not isinstance(error, Fault)
        else "-" * 60
    )


def _text(audience: Any) -> Callable[[BaseException], str]:
    return lambda error: render_text(_report(error), audience)


def _panel(audience: Any) -> Callable[[BaseException], str]:
    def opened(error: BaseException) -> str:
        console = Console(file=StringIO(), width=4_000, record=True)
        console.print(panel(_report(error), audience))
        return console.export_text()

    return opened


def _tool(error: BaseException) -> str:
    """What a model gets from a tool that raised."""
    passes = f"{type(error).__name__} is raised again, and the model gets no result of the tool"
    if not isinstance(error, Exception):
        return passes
    result, _ = catch(
        partial(ToolCalls(observer=str).failed, error, tool="search", arguments={"city": "Oslo"})
    )
    return passes if result is None else f"{result.text} {json.dumps(result.content)}"


def _agent(error: BaseException) -> str:
    report = _report(error)
    return json.dumps(agent_json(report), ensure_ascii=False) + agent_markdown(report)


def _problem(error: BaseException) -> str:
    report = _report(error)
    strict, verbose = (
        problem_json(problem(report, disclosure=one)).decode() for one in ("strict", "verbose")
    )
    return strict + verbose + from_problem(verbose).to_json()


def _mcp(error: BaseException) -> str:
    result = tool_result(describe(error, origin="tool"))
    back = from_tool_result(result)
    assert back is not None
    return json.dumps(result, ensure_ascii=False) + back.to_json()


def _webhook(audience: Any) -> Callable[[BaseException], str]:
    return lambda error: json.dumps(
        failure_payload(_report(error), run_id="r1", audience=audience), ensure_ascii=False
    )


def _get(app: Any) -> str:
    async def call() -> str:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://here.test") as client:
            reply = await client.post("/work", json={"count": "no number"})
        return f"{reply.status_code} {reply.headers.multi_items()} {reply.content.decode()}"

    return asyncio.run(call())


def _asgi(error: BaseException) -> str:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise _as_exception(error)

    with _quiet():
        return "".join(_get(FailwellMiddleware(app, disclosure=one)) for one in ("strict", "verbose"))


def _fastapi(error: BaseException) -> str:
    app = FastAPI()
    install(app, disclosure="verbose")

    @app.post("/work")
    def work() -> None:
        raise _as_exception(error)

    with _quiet():
        return _get(app)


def _streamed(error: BaseException) -> str:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"data: 1\n\n", "more_body": True})
        raise _as_exception(error)

    with _quiet():
        return _get(FailwellMiddleware(app, disclosure="verbose"))


def _call_wsgi(app: Any) -> str:
    transport = httpx.WSGITransport(app, raise_app_exceptions=False)
    with _quiet(), httpx.Client(transport=transport, base_url="http://here.test") as client:
        reply = client.post("/work", json={"count": "no number"})
    return f"{reply.status_code} {reply.headers.multi_items()} {reply.content.decode()}"


def _wsgi(error: BaseException) -> str:
    def app(environ: Any, start_response: Any) -> Any:
        raise _as_exception(error)

    return _call_wsgi(FailwellWSGIMiddleware(app, disclosure="verbose"))


def _flask(error: BaseException) -> str:
    app = Flask("work")
    install_in_flask(app, disclosure="verbose")

    @app.post("/work")
    def work() -> Any:
        raise _as_exception(error)

    return _call_wsgi(app)


def _django(error: BaseException) -> str:
    configure_django()
    request = a_request("/work")
    middleware = DjangoMiddleware(lambda _: None)
    middleware.border = replace(middleware.border, disclosure="verbose")
    with _quiet():
        reply: Any = middleware.process_exception(request, _as_exception(error))
    return f"{reply.status_code} {list(reply.items())} {reply.content.decode()}"


def _as_exception(error: BaseException) -> Exception:
    # A server lets the others end it, so a route that raises one is answered by nobody.
    return error if isinstance(error, Exception) else RuntimeError(str(error))


@contextmanager
def _quiet() -> Generator[None]:
    # What is logged beside an answer leaves by the door of logging.
    log = logging.getLogger("failwell.http")
    log.addHandler(nobody := logging.NullHandler())
    log.propagate, before = False, log.propagate
    try:
        yield
    finally:
        log.removeHandler(nobody)
        log.propagate = before


def _logging(error: BaseException) -> str:
    out = StringIO()
    logger = logging.Logger("app")  # noqa: LOG001  (a logger of its own, that no other test hears)
    for formatter in (JsonFormatter(), logging.Formatter("%(levelname)s %(message)s")):
        stream = logging.StreamHandler(out)
        stream.setFormatter(formatter)
        stream.addFilter(ReportFilter())
        logger.addHandler(stream)
    log_report(logger, describe(error))
    logger.error("failed: %s", error, exc_info=error)
    logger.error(error)
    logger.error(
        "failed", extra={"why": error, "headers": {"cookie": SECRETS[0].text, "x": [SECRETS[1].text]}}
    )
    return out.getvalue()


def _structlog(error: BaseException) -> str:
    out = StringIO()
    steps: list[Any] = [report_exception, structlog.processors.JSONRenderer()]
    logger: Any = structlog.wrap_logger(structlog.PrintLogger(out), processors=steps)
    logger.error(
        "failed", exc_info=error, why=error, headers={"cookie": SECRETS[0].text, "x": [SECRETS[1].text]}
    )
    logger.error("failed", report=describe(error))
    return out.getvalue()


def _otel(error: BaseException) -> str:
    logs, spans = InMemoryLogRecordExporter(), InMemorySpanExporter()
    logger_provider, tracer_provider = LoggerProvider(), TracerProvider()
    logger_provider.add_log_record_processor(SimpleLogRecordProcessor(logs))
    tracer_provider.add_span_processor(SimpleSpanProcessor(spans))
    with tracer_provider.get_tracer("app").start_as_current_span("work"):
        emit(describe(error), signal="both", logger_provider=logger_provider)
    sent = [record.to_json() for record in logs.get_finished_logs()]
    return "".join([*map(str, sent), *(str(span.to_json()) for span in spans.get_finished_spans())])


class _Mailbox(Transport):
    """Keeps what Sentry's own client would have sent."""

    def __init__(self) -> None:
        super().__init__({"dsn": None})
        self.letters: list[str] = []

    def capture_envelope(self, envelope: Envelope) -> None:
        self.letters.append(envelope.serialize().decode())


def _sentry(error: BaseException) -> str:
    mailbox = _Mailbox()
    client = sentry_sdk.Client(
        dsn="https://key@sentry.invalid/1",
        transport=mailbox,
        before_send=before_send,
        default_integrations=False,
        include_local_variables=True,
    )
    with sentry_sdk.isolation_scope() as scope, sentry_sdk.new_scope() as inner:
        scope.set_client(client)
        inner.add_breadcrumb(message=f"failed: {error}", data={"error": str(error)})
        inner.set_extra("why", str(error))
        inner.capture_exception(error)
    return "".join(mailbox.letters)


def _temporal(error: BaseException) -> str:
    from temporalio.api.failure.v1 import Failure
    from temporalio.converter import DataConverter

    from failwell.temporal.plugin import to_application_error

    stored = Failure()
    converter = DataConverter.default
    converter.failure_converter.to_failure(to_application_error(error), converter.payload_converter, stored)
    return str(stored)


DOORS: dict[str, Door] = {
    "view for users": Door("", "shown", _view("user")),
    "view for models": Door("", "shown", _view("model")),
    "view for models that debug": Door("", "operator", _view("model", debug=True)),
    "view for operators": Door("", "operator", _view("operator")),
    "view for auditors": Door("", "operator", _view("audit")),
    "wire": Door("", "operator", _wire),
    "job error": Door("", "operator", _job),
    "pickle": Door("", "operator", _pickled),
    "text for users": Door("delivery.terminal", "shown", _text("user")),
    "text for operators": Door("delivery.terminal", "operator", _text("operator")),
    "panel for users": Door("delivery.terminal", "shown", _panel("user")),
    "panel for operators": Door("delivery.terminal", "operator", _panel("operator")),
    "agents": Door("delivery.agent_output", "shown", _agent),
    "problem documents": Door("delivery.http", "shown", _problem),
    "tool results": Door("integrations.mcp", "shown", _mcp),
    "tools of agents": Door("agents.tool_errors", "shown", _tool),
    "webhooks": Door("delivery.webhook", "shown", _webhook("user")),
    "webhooks for operators": Door("delivery.webhook", "operator", _webhook("operator")),
    "asgi": Door("delivery.http", "shown", _asgi),
    "event stream": Door("delivery.http", "shown", _streamed),
    "fastapi": Door("integrations.starlette", "shown", _fastapi),
    "wsgi": Door("delivery.http", "shown", _wsgi),
    "flask": Door("integrations.flask", "shown", _flask),
    "django": Door("integrations.django", "shown", _django),
    "logging": Door("delivery.logging", "operator", _logging),
    "structlog": Door("integrations.structlog", "operator", _structlog),
    "otel": Door("otel", "operator", _otel),
    "sentry": Door("sentry", "operator", _sentry),
    "temporal": Door("temporal.plugin.errors", "operator", _temporal),
}

_WRITERS = (
    "view for", "wire", "text for", "panel for", "agents", "problem documents", "webhooks",
)  # fmt: skip
GROUPS: dict[str, list[str]] = {
    "reports": [name for name in DOORS if name.startswith(_WRITERS)],
    **{name: [name] for name in DOORS if not name.startswith(_WRITERS)},
}
"""The doors by what they are given: those of the first group write one and the same report, the others take an error."""

PARTS: Mapping[str, str] = {
    "delivery.logging_values": "logging",
    "delivery.paging": "logging",
    "delivery.tool_result": "tool results",
    "delivery.plain_text": "text for users",
    "integrations.fastapi": "fastapi",
    **{
        f"integrations.{name}": "tools of agents"
        for name in (
            "_tool_server",
            "claude_agent_sdk",
            "fastmcp",
            "google_adk",
            "langchain",
            "openai_agents",
        )
    },
}
"""Modules that write nothing themselves, each with a door that is built of it."""
BRIDGES = frozenset(
    f"integrations.{name}"
    for name in (
        "celery",
        "dbos",
        "instructor",
        "langgraph",
        "litellm",
        "prefect",
        "pydantic_ai",
        "stamina",
        "tenacity",
    )
)
"""Modules that repeat calls for other libraries and write nothing."""
