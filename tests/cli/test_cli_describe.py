"""`describe` recognises what it is given, shows it to the right reader, and says why when it cannot."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from failwell.adapters.describe import describe
from failwell.cli.errors.describe import MOST_BYTES
from failwell.cli.exit_codes import Exit
from failwell.delivery.http.problem_details import problem
from failwell.errors.fault import Fault
from failwell.errors.report import ErrorReport
from tests.cli.running import environment, failwell

TRACEBACK = """\
Traceback (most recent call last):
  File "/srv/shop/pay.py", line 12, in pay
    charge(card)
TimeoutError: secret words
"""
REPLY = "HTTP/2 429\r\nretry-after: 20\r\nx-request-id: req_1\r\n\r\n"
QUOTA = '{"error": {"code": "insufficient_quota", "message": "secret words"}}'


def make_report() -> ErrorReport:
    return describe(Fault(kind="tool.busy", message="the printer is taken", details={"tool": "printer"}))


def a_log_record() -> str:
    return json.dumps({"level": "error", "event": {"exc_info": TRACEBACK}})


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (TRACEBACK, "provider.outcome_unknown"),
        (a_log_record(), "provider.outcome_unknown"),
        ("{broken\n" + TRACEBACK, "provider.outcome_unknown"),
        (REPLY, "provider.rate_limited"),
        (REPLY + QUOTA, "provider.quota_exhausted"),
        (f"* Connected\n> GET / HTTP/2\n>\n< HTTP/2 429\n<\n{QUOTA}", "provider.quota_exhausted"),
        ('{"status": 503, "headers": {}}', "provider.overloaded"),
        (make_report().to_json(), "tool.busy"),
        ("\ufeff" + make_report().to_json(), "tool.busy"),
        (json.dumps(problem(make_report())), "tool.busy"),
        (json.dumps(problem(make_report(), disclosure="verbose")), "tool.busy"),
        ('{"type": "about:blank", "status": 401}', "provider.auth"),
        ('{"title": "Not Found", "status": 404, "detail": "x"}', "provider.rejected"),
        (f"HTTP/1.1 503 X\ncontent-type: application/problem+json\n\n{json.dumps(problem(make_report()))}", "tool.busy"),
        ("HTTP/1.1 401 X\ncontent-type: application/problem+json\n\n{}", "provider.auth"),
    ],
    ids=[
        "traceback", "log record", "broken JSON with a traceback", "reply", "reply with a body", "verbose reply",
        "reply as JSON", "report", "report with a mark", "problem", "verbose problem", "foreign problem",
        "foreign problem by its words", "reply with our problem", "reply with a foreign problem",
    ],
)  # fmt: skip
def test_what_is_given_is_recognised(given: str, kind: str) -> None:
    done = failwell("describe", "--json", given=given)

    assert (done.code, done.err) == (0, "")
    assert done.data["kind"] == kind


@pytest.mark.parametrize(
    ("form", "given", "kind"),
    [
        ("traceback", TRACEBACK, "provider.outcome_unknown"),
        ("reply", REPLY, "provider.rate_limited"),
        ("report", make_report().to_json(), "tool.busy"),
        ("problem", json.dumps(problem(make_report())), "tool.busy"),
    ],
)
def test_what_it_is_can_be_said(form: str, given: str, kind: str) -> None:
    done = failwell("describe", "--as", form, "--json", given=given)

    assert done.data["kind"] == kind


def test_a_file_is_read_like_stdin(tmp_path: Path) -> None:
    path = tmp_path / "saved reply.txt"
    path.write_bytes(REPLY.encode())

    done = failwell("describe", str(path), "--provider", "acme", "--model", "large", "--json")

    assert (done.data["provider"], done.data["model"]) == ("acme", "large")
    assert done.data["not_before"]["after"] == 20


def test_a_file_in_utf16_is_read_as_such(tmp_path: Path) -> None:
    path = tmp_path / "powershell.txt"
    path.write_text(TRACEBACK, encoding="utf-16")

    assert failwell("describe", str(path), "--json").data["kind"] == "provider.outcome_unknown"


def test_described_json_can_be_described_again() -> None:
    first = failwell("describe", "--json", given=TRACEBACK)

    second = failwell("describe", "--json", given=first.out)

    assert second.data == first.data


def test_an_operator_sees_the_words_and_nobody_else_does() -> None:
    shown = {
        view: failwell("describe", "--view", view, given=TRACEBACK).out
        for view in ("user", "model", "operator")
    }

    assert shown["operator"].startswith("error: secret words\n")
    assert "secret" not in shown["user"] + shown["model"]
    assert "kind: provider.outcome_unknown" in shown["user"]
    assert shown["model"].startswith("kind: provider.outcome_unknown\n")


@pytest.mark.parametrize("view", ["user", "model", "operator", "audit"])
def test_each_view_is_the_reports_own(view: Any) -> None:
    report = make_report()

    done = failwell("describe", "--view", view, "--json", given=report.to_json())

    assert done.data == report.view(view)


@pytest.mark.parametrize(
    ("view", "head"), [("operator", "# Error: Fault\n"), ("user", "# Busy\n"), ("model", "# Busy\n")]
)
def test_each_view_has_a_markdown(view: str, head: str) -> None:
    done = failwell("describe", "--view", view, "--format", "markdown", given=make_report().to_json())

    assert done.out.startswith(head)
    assert "`tool.busy`" in done.out


def test_an_audit_keeps_what_a_newer_version_added() -> None:
    newer = make_report().to_dict() | {"schema": "failwell.error/9", "mood": "grim"}

    done = failwell("describe", "--view", "audit", given=json.dumps(newer))

    assert "mood: grim" in done.out


@pytest.mark.parametrize(
    ("arguments", "given", "message"),
    [
        ([], "hello world\n", "the input is nothing that can be described; tried a report: not JSON"),
        ([], '{"a": 1}', "the input is nothing that can be described; tried a report: `schema` is not"),
        (
            [],
            '{"a": 1,\n  "b" 2}',
            "the input is not valid JSON: expecting ':' delimiter at line 2, column 7",
        ),
        ([], "[1]", "the input is JSON, but not an object"),
        ([], "", "the standard input is empty"),
        ([], " \n\n", "the standard input is empty"),
        ([], '{"a":' * 100_000, "the input is JSON with a number too long or a nesting too deep"),
        (["--as", "traceback"], "hello", "no line of the text names an exception"),
        (["--as", "reply"], "hello", "the text has no status line"),
        (["--as", "report"], "hello", "the input is not valid JSON"),
        (["--as", "report"], "{}", ""),
        (["--as", "problem"], "[]", "the input is JSON, but not an object"),
        (["/no/such/file"], "", "cannot read `/no/such/file`: no such file or directory"),
        (["/"], "", "cannot read `/`: is a directory"),
    ],
)
def test_bad_input_is_refused_with_the_reason_and_a_next_step(
    arguments: list[str], given: str, message: str
) -> None:
    done = failwell("describe", *arguments, "--error-format", "json", given=given)

    assert done.code == Exit.INVALID_USAGE
    assert done.out == ""
    assert done.error["message"].startswith(message)
    assert done.error["hint"]


def test_the_place_of_a_mistake_in_json_is_told_apart() -> None:
    done = failwell("describe", "--json", given='{"a": 1,\n  "b" 2}')

    assert (done.error["line"], done.error["column"]) == (2, 7)


def test_everything_that_was_tried_is_listed() -> None:
    done = failwell("describe", "--json", given="hello")

    assert [tried.partition(":")[0] for tried in done.error["tried"]] == [
        "a report", "a problem document", "a reply", "a traceback", "text",
    ]  # fmt: skip


KUBECTL = 'Error from server (Forbidden): pods is forbidden: User "dev" cannot list resource "pods"\n'


@pytest.mark.parametrize("arguments", [(), ("--as", "text")])
def test_the_output_of_a_command_is_described(arguments: tuple[str, ...]) -> None:
    done = failwell("describe", *arguments, "--json", given=KUBECTL)

    assert done.code == Exit.DONE
    assert (done.data["kind"], done.data["error_type"]) == ("provider.permission", "kubectl")


def test_an_error_of_another_language_is_described_with_its_causes(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_text(
        "java.lang.RuntimeException: call failed\n\tat a.B.c(B.java:1)\n"
        "Caused by: java.net.SocketTimeoutException: Read timed out\n\t... 3 more\n"
    )

    done = failwell("describe", str(path), "--json")

    assert done.data["kind"] == "provider.outcome_unknown"
    assert [cause["type"] for cause in done.data["causes"]] == ["SocketTimeoutException"]


def test_a_failure_inside_a_record_of_a_json_log_is_described() -> None:
    record = {"level": "error", "msg": "giving up", "err": "rpc error: code = Unavailable desc = not ready"}

    done = failwell("describe", "--json", given=json.dumps(record))

    assert (done.code, done.data["retryable"]) == (Exit.DONE, True)


@pytest.mark.slow
def test_an_input_beyond_the_limit_is_refused_and_one_within_is_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.log"
    path.write_bytes(b"x\n" * (MOST_BYTES // 2) + TRACEBACK.encode())

    refused = failwell("describe", str(path))
    path.write_bytes(b"x\n" * 500_000 + TRACEBACK.encode())
    read = failwell("describe", str(path), "--json")

    assert refused.code == Exit.INVALID_USAGE
    assert "is larger than 16 MiB" in refused.err
    assert read.data["kind"] == "provider.outcome_unknown"


def test_bytes_of_no_encoding_do_not_stop_it() -> None:
    done = failwell("describe", "--json", given=b"\xff\xfa\x00\n" + TRACEBACK.encode())

    assert done.data["kind"] == "provider.outcome_unknown"


def on_a_terminal(*arguments: str, **env: str) -> str:
    """What the command prints when its stdout is a terminal."""
    master, slave = pty.openpty()
    running = subprocess.Popen(
        [sys.executable, "-m", "failwell", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=slave,
        env=environment(TERM="xterm-256color", COLUMNS="80", **env),
    )
    os.close(slave)
    shown = b""
    try:
        while chunk := os.read(master, 65_536):
            shown += chunk
    except OSError:
        # Linux answers the end of a terminal with an error.
        shown += b""
    running.wait(timeout=30)
    os.close(master)
    return shown.decode()


def test_a_person_sees_a_panel(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(make_report().to_json())

    colored, plain = on_a_terminal("describe", str(path)), on_a_terminal("describe", str(path), NO_COLOR="1")

    assert "╭" in colored
    assert "the printer is taken" in colored
    assert "\x1b[31m" in colored
    assert "╭" in plain
    assert "\x1b[31m" not in plain


def test_a_pipe_gets_plain_text_unless_colour_is_demanded() -> None:
    piped = failwell("describe", given=TRACEBACK)
    demanded = failwell("describe", "--color", "always", given=TRACEBACK)

    assert piped.out.startswith("error: ")
    assert "\x1b[" in demanded.out
    assert "╭" in demanded.out
