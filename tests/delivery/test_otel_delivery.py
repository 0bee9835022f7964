"""OpenTelemetry: log records and span events through the real SDK."""

import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from opentelemetry.sdk._logs import LoggerProvider, ReadableLogRecord
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from failwell.errors.report import ErrorReport
from failwell.otel import OPT_IN, Signal, emit
from tests.delivery.builders import NOON, a_full_report, make_report, summary_of


def emitted(
    report: ErrorReport, signal: Signal | None = None
) -> tuple[Sequence[ReadableLogRecord], ReadableSpan]:
    """What the SDK exported when `report` was emitted inside a span."""
    logs, spans = InMemoryLogRecordExporter(), InMemorySpanExporter()
    logger_provider, tracer_provider = LoggerProvider(), TracerProvider()
    logger_provider.add_log_record_processor(SimpleLogRecordProcessor(logs))
    tracer_provider.add_span_processor(SimpleSpanProcessor(spans))
    with tracer_provider.get_tracer("app").start_as_current_span("work"):
        emit(report, signal=signal, logger_provider=logger_provider)
    return logs.get_finished_logs(), spans.get_finished_spans()[0]


ATTRIBUTES: dict[str, Any] = {
    "error.type": "provider.rate_limited",
    "exception.type": "RateLimitError",
    "gen_ai.provider.name": "acme",
    "gen_ai.request.model": "acme/large[preview]",
    "http.response.status_code": 429,
    "failwell.id": "err_1",
    "failwell.category": "transient",
    "failwell.domain": "runtime",
    "failwell.certainty": "rejected",
    "failwell.blame": "account",
    "failwell.retryable": True,
    "failwell.fingerprint": "f1-0011223344556677",
    "failwell.wait": 7.5,
    "failwell.provider.code": "rate_limit_exceeded",
    "failwell.provider.request_id": "req_77",
    "failwell.run": "r1",
    "failwell.node": "summarise",
    "failwell.severity": "error",
    "failwell.attempt": 2,
}


def test_a_provider_failure_is_the_conventional_event_as_a_warning() -> None:
    (exported,), span = emitted(a_full_report())

    record = exported.log_record
    assert record.event_name == "gen_ai.client.operation.exception"
    assert (record.severity_text, record.severity_number and record.severity_number.value) == ("WARN", 13)
    assert record.body == summary_of("provider.rate_limited")
    assert dict(record.attributes or {}) == ATTRIBUTES
    assert record.timestamp == int(NOON.timestamp()) * 1_000_000_000
    assert span.context is not None
    assert record.span_id == span.context.span_id
    assert span.events == ()
    assert span.status.is_unset


@pytest.mark.parametrize(
    ("kind", "severity"),
    [("validation.input_invalid", "WARN"), ("internal.bug", "FATAL"), ("worker.oom", "ERROR")],
)
def test_any_other_failure_is_our_event_with_its_severity(kind: str, severity: str) -> None:
    (exported,), _ = emitted(make_report(kind))

    assert exported.log_record.event_name == "failwell.error"
    assert exported.log_record.severity_text == severity


def test_a_span_event_is_sent_where_it_is_asked_for() -> None:
    logs, span = emitted(a_full_report(), "span")

    assert logs == ()
    (event,) = span.events
    assert event.name == "exception"
    assert dict(event.attributes or {}) == ATTRIBUTES
    assert not span.status.is_ok
    assert span.status.description == "provider.rate_limited"
    assert (span.attributes or {})["error.type"] == "provider.rate_limited"


@pytest.mark.parametrize(
    ("value", "logs", "events"),
    [(None, 1, 0), ("logs", 1, 0), ("logs/dup", 1, 1), ("http, logs/dup", 1, 1), ("nonsense", 1, 0)],
)
def test_the_environment_chooses_the_signal(
    value: str | None, logs: int, events: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(OPT_IN, raising=False)
    if value is not None:
        monkeypatch.setenv(OPT_IN, value)

    records, span = emitted(make_report())

    assert (len(records), len(span.events)) == (logs, events)


def test_outside_of_any_span_a_span_event_goes_nowhere() -> None:
    logs, spans = InMemoryLogRecordExporter(), InMemorySpanExporter()
    logger_provider, tracer_provider = LoggerProvider(), TracerProvider()
    logger_provider.add_log_record_processor(SimpleLogRecordProcessor(logs))
    tracer_provider.add_span_processor(SimpleSpanProcessor(spans))
    with tracer_provider.get_tracer("app").start_as_current_span("work"):
        pass

    emit(make_report(), signal="span", logger_provider=logger_provider)

    assert [span.events for span in spans.get_finished_spans()] == [()]
    assert not logs.get_finished_logs()


def test_a_kind_of_a_newer_peer_is_its_own_body() -> None:
    (exported,), _ = emitted(make_report("newer.peer.kind"))

    assert exported.log_record.body == "newer.peer.kind"


def test_without_the_library_the_missing_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from failwell.otel import emit\n"
        "from tests.delivery.builders import make_report\n"
        "emit(make_report())\n"
    )

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert ran.returncode == 1
    assert ran.stderr.splitlines()[-1].endswith(
        "MissingExtra: `opentelemetry` is not installed; pip install 'failwell[otel]'"
    )
