"""Fuzz everything that is read from outside: reports, problem documents, tracebacks, replies.

Run `python fuzz/wire_fuzz.py --runs 20000 --seed 1`, or, with atheris installed,
`python fuzz/wire_fuzz.py --atheris --seconds 300`.
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    ROOT = Path(__file__).resolve().parents[1]
    sys.path[:1] = [str(ROOT), str(ROOT / "src")]

import json
from collections.abc import Callable
from typing import Any

from failwell.adapters.log_records.http_reply import describe_reply, parse_reply
from failwell.adapters.log_records.pasted import describe_pasted
from failwell.cli.errors.describe import PastedInput, recognise
from failwell.delivery.http.problem_details import from_problem
from failwell.errors.faults import Validation
from failwell.errors.report import ErrorReport
from failwell.integrations.mcp import from_tool_result
from fuzz.driver import main
from fuzz.letters import letter
from fuzz.oracle import check_report


def read_anything(data: bytes) -> None:
    """Hand the letter that `data` stands for to every reader: each takes it, or refuses it as `Validation`."""
    written = letter(data)
    text = written.decode("utf-8", "surrogateescape" if data[:1] < b"\x10" else "replace")
    readers: list[Callable[[], ErrorReport | None]] = [
        lambda: ErrorReport.from_json(written),
        lambda: ErrorReport.from_json(text),
        lambda: ErrorReport.read(written),
        lambda: describe_pasted(text, policy="full"),
        lambda: describe_reply(parse_reply(text), provider="somebody"),
        lambda: recognise(PastedInput(text)),
    ]
    for read in readers:
        try:
            report = read()
        except Validation:
            continue
        if report is not None:
            check_report(report, with_panel=False, ours=False)
    check_report(from_problem(written), with_panel=False, ours=False)
    result = from_tool_result(_parsed(text))
    if result is not None:
        check_report(result, with_panel=False, ours=False)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return {"isError": True, "content": [{"type": "text", "text": text}]}


if __name__ == "__main__":
    sys.exit(main(read_anything))
