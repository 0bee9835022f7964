"""What must hold for any exception and any report at all, checked without mercy.

Nothing raises, nothing is larger than it may be, everything is JSON and UTF-8, and what was written
reads back as the same.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from typing import Any, Literal, cast

from rich.console import Console

from failwell.adapters.describe import describe
from failwell.adapters.log_records.peer import claimed_kind
from failwell.adapters.revival import revive, translate
from failwell.capability import JobError, classify_exception, map_bare_exception_to_job_error
from failwell.delivery.agent_output import agent_json, agent_markdown
from failwell.delivery.http.problem_details import from_problem, problem, problem_json, retry_after_header
from failwell.delivery.logging import log_line
from failwell.delivery.terminal import panel, render_text
from failwell.delivery.webhook import failure_payload
from failwell.errors.facts import DENYING
from failwell.errors.fault import Fault
from failwell.errors.report import SCHEMA, ErrorReport, TracebackPolicy
from failwell.integrations.mcp import from_tool_result, tool_result
from failwell.otel import attributes

TEXT_CAP = 2_000
TRACEBACK_CAP = 12_000
REPORT_CAP = 65_536
_UNIQUE = ("id", "occurred_at", "fingerprint")
"""What differs between two reports of like failures."""
_checked: set[int] = set()
_drawn: set[str] = set()
JOB_CATEGORIES = ("user_input", "transient", "resource", "fatal")


def check_exception(error: BaseException, *, with_panel: bool = True) -> None:
    """Describe `error` in every way there is, and look at every outcome."""
    for policy in TracebackPolicy:
        drawn = with_panel and policy in (TracebackPolicy.FULL, TracebackPolicy.STRICT)
        check_report(describe(error, policy=policy), with_panel=drawn)
        job = map_bare_exception_to_job_error(error, "tool", "tool-1", policy)
        told = job.to_dict()
        bounded(told)
        assert JobError.from_dict(told) == job
    assert classify_exception(error) in JOB_CATEGORIES
    fault = translate(error)
    assert issubclass(type(fault), Fault)
    # A fault is its own translation, and may itself be the hostile one.
    if fault is not error:
        check_report(describe(fault), with_panel=False)


def check_report(report: ErrorReport, *, with_panel: bool = True, ours: bool = True) -> None:
    """Take `report` through every way out and back. One that arrived may hold longer texts than `ours`."""
    text = report.to_json()
    assert len(text.encode("utf-8")) <= REPORT_CAP
    # Three of four specimens end in a report that another one had too: its ways out are gone once.
    content = {name: value for name, value in report.to_dict().items() if name not in _UNIQUE}
    key = hash((json.dumps(content), with_panel, ours))
    if key in _checked:
        return
    _checked.add(key)
    if report.schema == SCHEMA and not report.extra:
        assert ErrorReport.from_json(text).to_json() == text
    assert ErrorReport.read(text).to_json() == text
    bounded(report.to_dict(), ours=ours)
    for audience in ("user", "model", "operator", "audit"):
        bounded(report.view(audience), ours=ours)
    bounded(report.view("model", debug=True), ours=ours)
    again = revive(report)
    assert describe(again).to_json() == text
    _deliver(report, ours=ours)
    if with_panel:
        for audience in ("user", "operator"):
            _check_panel(report, audience)


def _check_panel(report: ErrorReport, audience: Literal["user", "operator"]) -> None:
    # A panel shows the lines of the plain text. Drawing takes half of the whole check, so reports that
    # differ in id, time and fingerprint alone are drawn once.
    lines = render_text(report, audience).splitlines()
    text = "\n".join(line for line in lines if not line.startswith(("  id: ", "  at: ", "  fingerprint: ")))
    if text in _drawn:
        return
    _drawn.add(text)
    console = Console(file=StringIO(), width=100)
    console.print(panel(report, audience))
    plain(cast("StringIO", console.file).getvalue())


def bounded(told: Any, *, ours: bool = True) -> None:
    """`told` is JSON, is UTF-8, and no text in it is longer than it may be."""
    encoded = json.dumps(told, allow_nan=False, ensure_ascii=False).encode("utf-8")
    assert len(encoded) <= REPORT_CAP + 1_024
    for path, text in _texts(told):
        limit = TRACEBACK_CAP if path.endswith("traceback") else TEXT_CAP
        assert len(text) <= limit or not ours, f"{path} has {len(text)} characters"


def plain(text: str) -> None:
    """`text` moves no cursor, is UTF-8, and can be read in this life."""
    assert len(text.encode("utf-8")) <= 8 * REPORT_CAP
    assert not set(text) & set("\x00\x07\x08\x1b\x7f\u202e\u2066")


def _deliver(report: ErrorReport, *, ours: bool) -> None:
    for audience in ("user", "operator"):
        plain(render_text(report, audience))
        bounded(failure_payload(report, run_id="run", audience=audience), ours=ours)
    for disclosure in ("strict", "verbose"):
        document = problem(report, disclosure=disclosure, instance="/x", request_id="r")
        bounded(document, ours=ours)
        sent = problem_json(document)
        for trusted in (False, True):
            back = from_problem(sent, trusted=trusted)
            assert claimed_kind(back.kind, trusted=True) == back.kind
            assert back.retryable <= report.retryable
        if claimed_kind(report.kind, trusted=True) is not None and document["status"] not in DENYING:
            assert from_problem(sent, trusted=True).kind == report.kind
    plain(agent_markdown(report))
    bounded(agent_json(report), ours=ours)
    result = tool_result(report)
    json.dumps(result, allow_nan=False).encode()
    assert from_tool_result(result) is not None
    assert from_tool_result(result, trusted=True) is not None
    assert all(isinstance(value, str | bool | int | float) for value in attributes(report).values())
    plain(log_line(report))
    retry_after_header(report)
    # Somebody may hold a report whose kind no registry knows any more.
    replace(report, kind="zoo.unheard_of").view("user")


def _texts(told: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(told, str):
        yield path, told
    elif isinstance(told, dict):
        for key, inner in cast("dict[str, Any]", told).items():
            yield f"{path}.{key} (key)", key
            yield from _texts(inner, f"{path}.{key}")
    elif isinstance(told, list | tuple):
        for inner in cast("list[Any]", told):
            yield from _texts(inner, path)
