"""structlog: exceptions become fields under `error`, in real pipelines."""

import json
import sys
from typing import Any

import pytest
import structlog

from failwell.integrations.structlog import report_exception
from tests.delivery.builders import a_full_report, make_report


def logged(**event: Any) -> dict[str, Any]:
    """What a JSON pipeline with our step writes for one event."""
    lines: list[str] = []

    class Keeping:
        def msg(self, message: str) -> None:
            lines.append(message)

        error = msg

    logger = structlog.wrap_logger(
        Keeping(),
        processors=[
            report_exception,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
    )
    logger.error("failed", **event)
    return json.loads(lines[0])


def test_a_report_is_written_as_the_operators_view() -> None:
    report = a_full_report()

    assert logged(report=report, order=17) == {
        "event": "failed",
        "order": 17,
        "error": report.view("operator"),
    }


@pytest.mark.parametrize("form", ["true", "exception", "tuple", "report", "exception key"])
def test_an_exception_is_described_in_whatever_form_it_comes(form: str) -> None:
    try:
        raise OSError(28, "secret words")
    except OSError as error:
        forms: dict[str, dict[str, Any]] = {
            "true": {"exc_info": True},
            "exception": {"exc_info": error},
            "tuple": {"exc_info": sys.exc_info()},
            "report": {"report": error},
            "exception key": {"exception": error},
        }
        line = logged(**forms[form])

    assert line["error"]["kind"] == "resource.disk"
    assert line.keys() == {"event", "error"}
    assert "secret words" not in json.dumps(line)


def test_a_traceback_that_was_already_rendered_is_replaced_by_a_hint() -> None:
    line = logged(exception="Traceback (most recent call last): secret words")

    assert line.keys() == {"event", "error"}
    assert "put `report_exception` before" in line["error"]["hint"]


def test_nothing_is_added_where_nothing_failed() -> None:
    assert logged(exc_info=False, order=17) == {"event": "failed", "order": 17}


def test_other_exceptions_in_the_event_are_named_and_keys_masked() -> None:
    key = "sk-" + "q1w2e3r4t5y6u7i8o9"

    line = logged(report=make_report(), first=RuntimeError("secret words"), note=f"with {key}")

    assert line["first"] == "RuntimeError (internal.bug)"
    assert line["note"] == "with [redacted]"
