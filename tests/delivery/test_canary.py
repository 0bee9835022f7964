"""What a foreign exception says about itself leaves through no door."""

import asyncio
import json
import logging
from collections.abc import Callable
from io import StringIO
from typing import Any

import httpx
import pydantic
import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from rich.console import Console
from sentry_sdk import Client
from sentry_sdk.utils import event_from_exception

from failwell.adapters.describe import describe
from failwell.delivery.agent_output import agent_json, agent_markdown
from failwell.delivery.http.asgi import FailwellMiddleware
from failwell.delivery.http.problem_details import from_problem, problem, problem_json
from failwell.delivery.logging import JsonFormatter, ReportFilter, log_report
from failwell.delivery.terminal import panel, render_text
from failwell.delivery.webhook import failure_payload
from failwell.errors.fault import Fault
from failwell.integrations.mcp import from_tool_result, tool_result
from failwell.integrations.structlog import report_exception
from failwell.otel import emit
from failwell.sentry import before_send
from tests.specimens import each

# Made at run time: a source line that is quoted with a stack must not look like a leak.
CANARY = "yranac"[::-1]
CANARIES = [
    f"sk-proj-{CANARY * 4}",
    f"org-Acc0unt{CANARY}",
    f"the model answered {CANARY}",
    f"{CANARY}_prompt_of_ours",
]
BODY = {"error": {"message": " / ".join(CANARIES), "org": CANARIES[1]}, "prompt": CANARIES[3]}


class APIStatusError(Exception):
    """Built as vendors build theirs: the body is rendered into the message."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__(f"Error code: 400 - {body}")
        self.body = body
        self.response = httpx.Response(400, json=body, request=httpx.Request("POST", "https://api.acme.test"))
        self.status_code = 400
        self.code = CANARIES[2]


def an_sdk_error() -> Exception:
    error = APIStatusError(BODY)
    error.add_note(CANARIES[2])
    return error


def an_http_error() -> Exception:
    request = httpx.Request("POST", f"https://user:{CANARIES[0]}@api.acme.test/v1?prompt={CANARIES[3]}")
    reply = httpx.Response(500, json=BODY, request=request)
    return httpx.HTTPStatusError(
        f"Server error for {request.url}: {reply.text}", request=request, response=reply
    )


class Answer(pydantic.BaseModel):
    count: int


def a_validation_error() -> Exception:
    try:
        Answer.model_validate({"count": " ".join(CANARIES)})
    except pydantic.ValidationError as error:
        return error
    raise AssertionError


def a_group() -> Exception:
    return ExceptionGroup(CANARIES[2], [an_sdk_error(), RuntimeError(CANARIES[3])])


def a_wrapped_error() -> Exception:
    middle = RuntimeError(" ".join(CANARIES))
    middle.__cause__ = an_sdk_error()
    return Fault.wrap(middle, "the page could not be written")


ERRORS = [an_sdk_error, an_http_error, a_validation_error, a_group, a_wrapped_error]
Delivery = Callable[[Exception], str]


def raised(error: Exception) -> Exception:
    answer = " ".join(CANARIES)
    try:
        assert answer
        raise error
    except Exception as caught:
        return caught


def through_text(error: Exception) -> str:
    return render_text(describe(error), "user") + render_text(describe(error), "operator")


def through_panel(error: Exception) -> str:
    console = Console(file=StringIO(), width=500, record=True)
    console.print(panel(describe(error), "user"), panel(describe(error), "operator"))
    return console.export_text()


def through_agent(error: Exception) -> str:
    return json.dumps(agent_json(describe(error))) + agent_markdown(describe(error))


def through_problem(error: Exception) -> str:
    strict, verbose = (problem_json(problem(describe(error), disclosure=d)) for d in ("strict", "verbose"))
    return strict.decode() + verbose.decode() + from_problem(verbose).to_json()


def through_http(error: Exception) -> str:
    seen: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise error

    async def call() -> str:
        served: Any = FailwellMiddleware(
            app, disclosure="verbose", on_report=lambda r: seen.append(r.to_json())
        )
        async with httpx.AsyncClient(transport=httpx.ASGITransport(served), base_url="http://test") as client:
            reply = await client.get("/")
        return f"{reply.headers}{reply.text}{seen}"

    return asyncio.run(call())


def through_log(error: Exception) -> str:
    out = StringIO()
    logger = logging.Logger("app")  # noqa: LOG001  (one that nobody else can hear)
    for formatter in (JsonFormatter(), logging.Formatter()):
        handler = logging.StreamHandler(out)
        handler.setFormatter(formatter)
        handler.addFilter(ReportFilter())
        logger.addHandler(handler)
    log_report(logger, describe(error))
    logger.error("failed: %s", error, exc_info=error)
    logger.error(error)
    return out.getvalue()


def through_json_log_alone(error: Exception) -> str:
    out = StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(JsonFormatter())
    logger = logging.Logger("app")  # noqa: LOG001  (one that nobody else can hear)
    logger.addHandler(handler)
    logger.error("failed: %s", error, exc_info=error)
    return out.getvalue()


def through_structlog(error: Exception) -> str:
    return json.dumps(report_exception(None, "error", {"event": "failed", "exc_info": error, "why": error}))


def through_otel(error: Exception) -> str:
    logs, spans = InMemoryLogRecordExporter(), InMemorySpanExporter()
    logger_provider, tracer_provider = LoggerProvider(), TracerProvider()
    logger_provider.add_log_record_processor(SimpleLogRecordProcessor(logs))
    tracer_provider.add_span_processor(SimpleSpanProcessor(spans))
    with tracer_provider.get_tracer("app").start_as_current_span("work"):
        emit(describe(error), signal="both", logger_provider=logger_provider)
    records = [record.to_json() for record in logs.get_finished_logs()]
    return str(records + [span.to_json() for span in spans.get_finished_spans()])


def through_sentry(error: Exception) -> str:
    client = Client(
        dsn="https://key@sentry.invalid/1", default_integrations=False, include_local_variables=True
    )
    event, hint = event_from_exception(raised(error), client_options=client.options)
    event["extra"] = {"why": str(error)}
    return json.dumps(before_send(event, hint), default=str)


def through_mcp(error: Exception) -> str:
    result = tool_result(describe(error, origin="tool"))
    report = from_tool_result(result)
    assert report is not None
    return json.dumps(result) + report.to_json()


def through_webhook(error: Exception) -> str:
    report = describe(error)
    told = [failure_payload(report, run_id="r1", audience=audience) for audience in ("user", "operator")]
    return json.dumps(told)


DELIVERIES: list[Delivery] = [
    through_text,
    through_panel,
    through_agent,
    through_problem,
    through_http,
    through_log,
    through_json_log_alone,
    through_structlog,
    through_otel,
    through_sentry,
    through_mcp,
    through_webhook,
]


@pytest.mark.acceptance("pipelex 67")
@each("make", ERRORS, ids=lambda make: make.__name__)
@each("deliver", DELIVERIES, ids=lambda deliver: deliver.__name__)
def test_no_delivery_repeats_what_a_foreign_exception_said(
    deliver: Delivery, make: Callable[[], Exception]
) -> None:
    delivered = deliver(make())

    assert len(delivered) > 50
    assert [canary for canary in CANARIES if canary in delivered] == []


@pytest.mark.parametrize("make", ERRORS, ids=lambda make: make.__name__)
def test_the_canaries_are_really_there_to_be_found(make: Callable[[], Exception]) -> None:
    error = make()

    said = f"{error} {error.__cause__} {getattr(error, 'exceptions', '')}"

    assert any(canary in said for canary in CANARIES)
