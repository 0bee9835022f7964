"""What stands before every line of a log that passes on the output of others is taken off."""

import pytest

from failwell.adapters.log_records.log_record import classify
from failwell.adapters.log_records.pasted import describe_pasted
from failwell.adapters.text.message import without_prefixes

LOCKED = """Traceback (most recent call last):
  File "/usr/lib/python3/site-packages/sqlalchemy/engine/base.py", line 1236, in _execute_context
    cursor, statement, parameters, context
sqlite3.OperationalError: database is locked"""


@pytest.mark.parametrize(
    "prefix",
    ["Jun 05 03:02:14 db1.example.com worker[19997]: ", "[rank0]: ", "web_1    | ", "#12 34.567 ", "2026-06-05T03:02:14.123456Z "],
)  # fmt: skip
def test_a_traceback_is_read_behind_the_prefixes_of_its_lines(prefix: str) -> None:
    text = "\n".join(prefix + line for line in LOCKED.splitlines())

    assert without_prefixes(text) == LOCKED
    assert describe_pasted(text).kind == describe_pasted(LOCKED).kind == "tool.busy"
    row = {"exception_class": "sqlite3.OperationalError", "message": text}
    assert classify(row).kind == "tool.busy"


@pytest.mark.parametrize(
    "text",
    [
        "Jun 05 03:02:14 db1 worker[9]: ready\nJun 05 03:02:15 db1 worker[9]: HTTP 429",
        "[rank0]: one\ntwo",
        "a | b",
        "[rank0]: alone",
        "",
    ],
)
def test_times_of_records_and_prefixes_of_single_lines_stay(text: str) -> None:
    assert without_prefixes(text) == text


def test_a_long_log_is_read_in_bounds() -> None:
    lines = "\n".join(["[rank0]: x"] * 10_000)

    assert without_prefixes(lines).count("\n") == 9_999
