"""`failwell lab`: a server that runs until it is interrupted, and the list of what it shows."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

import pytest

from failwell.testing.laboratory.dialects.table import dialect_names
from failwell.testing.laboratory.matrix import cells
from failwell.testing.laboratory.scenario import SCENARIOS
from tests.cli.running import environment, failwell

PATIENCE = 20


@contextmanager
def serving(*arguments: str) -> Generator[subprocess.Popen[str], None, None]:
    """`failwell lab serve` in a process of its own."""
    with subprocess.Popen(
        [sys.executable, "-m", "failwell", "lab", "serve", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def next_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


def status_of(url: str, path: str) -> int:
    where = urlsplit(url)
    connection = HTTPConnection(where.hostname or "", where.port, timeout=PATIENCE)
    try:
        connection.request("POST", where.path + path, "{}")
        return connection.getresponse().status
    finally:
        connection.close()


def test_it_serves_until_it_is_interrupted_and_leaves_without_a_word() -> None:
    with serving() as process:
        first = next_line(process)
        lines = [first]
        while lines[-1] != "Ctrl-C ends it":
            lines.append(next_line(process))
        address = first.split()[4].rstrip(";")

        status = status_of(address, "/openai/rate_limited@ms/v1/chat/completions")
        told = next_line(process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)

    assert (status, told) == (429, "openai/rate_limited@ms  POST /v1/chat/completions  429")
    assert (process.returncode, err) == (130, "")
    assert [line.split("/")[3] for line in lines if line.endswith("/SCENARIO")] == list(dialect_names())


def test_a_strict_server_refuses_a_request_without_messages() -> None:
    with serving("--json", "--strict") as process:
        listening = json.loads(next_line(process))

        status = status_of(listening["url"], "/openai/ok/v1/chat/completions")

    assert status == 400


def test_a_program_reads_its_address_and_its_calls_as_json_lines() -> None:
    with serving("--json", "--stall", "0") as process:
        listening = json.loads(next_line(process))

        status = status_of(
            listening["dialects"]["anthropic"].replace("SCENARIO", "slow_body"), "/v1/messages"
        )
        call = json.loads(next_line(process))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)

    assert listening["event"] == "listening"
    assert set(listening["dialects"]) == set(dialect_names())
    assert status == 200
    assert call == {
        "event": "call",
        "dialect": "anthropic",
        "scenario": "slow_body",
        "method": "POST",
        "path": "/v1/messages",
        "stream": False,
        "status": 200,
    }


def test_the_address_of_refusals_is_told_and_closed() -> None:
    with serving("--json") as process:
        listening = json.loads(next_line(process))
        where = urlsplit(str(listening["refused"]))

        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((where.hostname or "", where.port or 0), timeout=PATIENCE)


def test_a_reader_who_leaves_ends_it() -> None:
    with serving() as process:
        address = next_line(process).split()[4].rstrip(";")
        assert process.stdout is not None
        process.stdout.close()

        with suppress(HTTPException, OSError):
            # It may be gone before it has answered.
            status_of(address, "/openai/bad_key/v1/x")
        code = process.wait(timeout=PATIENCE)

    assert code == 141


def test_a_port_that_is_taken_is_named_with_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        done = failwell("lab", "serve", "--port", str(port))

    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: cannot listen on port {port}: address already in use\n")
    assert "hint: " in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lab"], "error: missing ACTION"),
        (["lab", "srve"], "error: unknown action `srve`; did you mean `serve`?"),
        (["lab", "serve", "--port", "65536"], "error: argument --port: `65536` is not a port"),
        (["lab", "serve", "--port", "-1"], "error: argument --port: `-1` is not a port"),
        (["lab", "serve", "--stall", "soon"], "error: argument --stall: `soon` is not a duration"),
        (["lab", "serve", "--stall", "nan"], "error: argument --stall: `nan` is not a duration"),
        (
            ["lab", "serve", "--dialect", "openai"],
            "error: `--dialect` is for `failwell lab list`, not for `serve`",
        ),
        (["lab", "list", "--port", "0"], "error: `--port` is for `failwell lab serve`, not for `list`"),
        (
            ["lab", "list", "--dialect", "opnai"],
            "error: unknown value for --dialect `opnai`; did you mean `openai`?",
        ),
    ],
)
def test_what_was_asked_wrongly_is_said_before_anything_runs(arguments: list[str], message: str) -> None:
    done = failwell(*arguments)

    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(message)


def test_the_list_says_for_every_scenario_what_is_shown_and_what_it_is() -> None:
    lines = failwell("lab", "list").out.splitlines()

    assert lines[0].split() == ["scenario", "kind", "reply"]
    assert [line.split()[0] for line in lines[1:]] == list(SCENARIOS)
    assert "bad_key" in lines[2]
    assert lines[2].split(maxsplit=2)[1:] == ["provider.auth", "401; 400 google-genai; 403 bedrock"]


def test_the_list_of_one_dialect_has_its_waits() -> None:
    done = failwell("lab", "list", "--dialect", "huggingface")

    rows = {line.split()[0]: line for line in done.out.splitlines()[1:]}
    assert "out_of_memory" not in rows
    assert rows["model_loading"].split()[1:5] == ["503", "provider.overloaded", "20", "s"]


def test_the_list_as_json_is_an_array_of_objects_with_ids() -> None:
    found = failwell("lab", "list", "--format", "json").data

    assert [one["id"] for one in found] == [f"{cell.dialect}/{cell.scenario.name}" for cell in cells()]
    by_id = {one["id"]: one for one in found}
    assert by_id["anthropic/overloaded"] == {
        "id": "anthropic/overloaded",
        "dialect": "anthropic",
        "scenario": "overloaded",
        "summary": "the provider has no room right now",
        "shown": "529",
        "status": 529,
        "streams": False,
        "kind": "provider.overloaded",
        "category": "transient",
        "certainty": "rejected",
        "retryable": True,
        "wait": None,
    }
    assert (by_id["openai/refused"]["shown"], by_id["openai/ok"]["kind"]) == ("closed", None)


def test_the_list_as_markdown_is_one_table_with_a_column_for_every_dialect() -> None:
    lines = failwell("lab", "list", "--format", "markdown").out.splitlines()

    assert lines[0] == f"| scenario | kind | {' | '.join(dialect_names())} |"
    assert {line.count("|") for line in lines} == {len(dialect_names()) + 3}
    assert len(lines) == len(SCENARIOS) + 2
