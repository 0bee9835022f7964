"""`failwell classify` judges saved failures line by line, and looks at nothing but what happened."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Done, environment, failwell

RATE_LIMITED: dict[str, Any] = {
    "id": "a",
    "provider": "openai",
    "sdk": "openai",
    "transport": "http",
    "http_status": 429,
    "headers": {"retry-after": "7"},
    "body": {"error": {"code": "rate_limit_exceeded", "message": "slow down, my diagnosis"}},
    "exception_class": "openai.RateLimitError",
    "message": "slow down",
    "cause_chain": [],
}
REFUSED = {
    "id": "b",
    "transport": "connection",
    "exception_class": "openai.APIConnectionError",
    "message": "Connection error.",
    "cause_chain": [{"class": "httpx.ConnectError", "message": "refused"}],
}
MISSING = {"id": "c", "http_status": 404, "body": {"error": {"code": "model_not_found"}}}
LABELS: dict[str, Any] = {
    "category": "fatal",
    "retryable": True,
    "model_not_found": True,
    "retry_after_s": 99,
    "label_confidence": "high",
    "label_note": "insufficient_quota",
    "source": "somewhere: context_length_exceeded",
    "text_origin": "recorded",
}


def classify(*lines: Any, arguments: tuple[str, ...] = ()) -> Done:
    given = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    return failwell("classify", "--jsonl", "-", *arguments, given=given + "\n")


def rows(done: Done) -> list[Any]:
    return [json.loads(line) for line in done.out.splitlines()]


def test_each_row_gets_one_line_with_its_verdict() -> None:
    done = classify(RATE_LIMITED, REFUSED, MISSING)

    verdicts = rows(done)
    assert done.code == 0
    assert done.err == ""
    assert verdicts[0] == {
        "id": "a",
        "kind": "provider.rate_limited",
        "category": "transient",
        "certainty": "rejected",
        "retryable": True,
        "retry_after_s": 7.0,
        "model_not_found": False,
        "evidence": [
            {"rule": "provider.status_429", "basis": "status", "saw": "HTTP 429"},
        ],
    }
    assert (verdicts[1]["kind"], verdicts[1]["certainty"]) == ("provider.connection", "not_sent")
    assert (verdicts[2]["model_not_found"], verdicts[2]["retry_after_s"]) == (True, None)


def test_what_a_row_says_in_prose_is_not_repeated() -> None:
    assert "diagnosis" not in classify(RATE_LIMITED).out


def test_labels_and_sources_in_a_row_change_nothing() -> None:
    plain = classify(RATE_LIMITED, REFUSED, MISSING)
    labelled = classify(*({**row, **LABELS} for row in (RATE_LIMITED, REFUSED, MISSING)))

    assert labelled.out == plain.out


def test_a_line_that_cannot_be_read_is_named_and_the_rest_is_judged() -> None:
    done = classify(RATE_LIMITED, "{not json", "", "[1]", REFUSED)

    assert done.code == 2
    assert [row["id"] for row in rows(done)] == ["a", "b"]
    assert done.err.splitlines()[:3] == [
        "line 2 is not valid JSON: expecting property name enclosed in double quotes at column 2",
        "line 4 is not a JSON object",
        "error: 2 of 4 lines could not be read",
    ]


def test_strict_stops_at_the_first_line_that_cannot_be_read() -> None:
    done = classify(RATE_LIMITED, "nope", REFUSED, arguments=("--strict",))

    assert done.code == 2
    assert [row["id"] for row in rows(done)] == ["a"]
    assert done.err.startswith("error: line 2 is not valid JSON")


def test_for_an_agent_every_line_of_stderr_is_json() -> None:
    done = classify("nope", RATE_LIMITED, arguments=("--error-format", "json"))

    told = [json.loads(line) for line in done.err.splitlines()]
    assert told[0]["line"] == 1
    assert told[1]["kind"] == "validation.shape_invalid"


ODD: list[dict[str, Any]] = [
    {},
    {"http_status": "429"},
    {"http_status": True, "headers": [], "body": 7, "cause_chain": "x", "message": {}},
    {"headers": {"retry-after": None}, "body": [[[]]], "cause_chain": [None, {"class": None}]},
    {"exception_class": 7, "provider": [], "sdk": {}, "transport": 1, "id": {}},
]


@pytest.mark.parametrize("row", ODD)
def test_a_row_with_odd_values_is_judged_by_what_is_left(row: dict[str, Any]) -> None:
    done = classify(row)

    assert done.code == 0
    assert rows(done)[0]["kind"].startswith("provider.")


def test_a_file_is_read_and_a_missing_one_is_said_to_be(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + json.dumps(RATE_LIMITED).encode())

    assert rows(failwell("classify", "--jsonl", str(file)))[0]["id"] == "a"
    assert failwell("classify", "--jsonl", str(tmp_path / "gone")).code == 2


def test_a_line_without_end_is_passed_over() -> None:
    done = classify('{"message": "' + "x" * (5 * 1024 * 1024), RATE_LIMITED)

    assert done.code == 2
    assert done.err.startswith("line 1 is longer than 4 MiB")
    assert [row["id"] for row in rows(done)] == ["a"]


def test_the_first_verdict_comes_before_the_last_row() -> None:
    command = [sys.executable, "-m", "failwell", "classify", "--jsonl", "-"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write(json.dumps(RATE_LIMITED).encode() + b"\n")
        running.stdin.flush()
        first = json.loads(running.stdout.readline())
        running.stdin.close()
        running.wait()

    assert first["id"] == "a"


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_rows(tmp_path: Path) -> None:
    row = json.dumps({**RATE_LIMITED, "body": {"error": {"message": "x" * 20_000}}}) + "\n"

    peaks: list[int] = []
    for count in (20, 500):
        file = tmp_path / f"{count}.jsonl"
        file.write_text(row * count)
        done = subprocess.run(
            [sys.executable, "-c", _MEASURED, "classify", "--jsonl", str(file)],
            env=environment(), capture_output=True, check=True, timeout=60,
        )  # fmt: skip
        peaks.append(int(done.stderr))

    assert peaks[1] - peaks[0] < 1_000_000


@pytest.mark.parametrize("where", ["-", "file"])
def test_a_printed_error_gets_one_verdict(where: str, tmp_path: Path) -> None:
    text = "panic: dial tcp 10.0.0.1:5432: connect: connection refused\n\ngoroutine 1 [running]:\n"
    path = tmp_path / "out.log"
    path.write_text(text)

    done = failwell("classify", "--text", where if where == "-" else str(path), given=text)

    (verdict,) = rows(done)
    assert (verdict["kind"], verdict["certainty"], verdict["retryable"]) == (
        "provider.connection",
        "not_sent",
        True,
    )


def test_a_text_without_an_error_has_no_verdict() -> None:
    done = failwell("classify", "--text", "-", given="all 404 tests passed\n")

    assert (done.code, done.out) == (2, "")


_MEASURED = """
import sys, tracemalloc
from failwell.cli.main import main
tracemalloc.start()
main(sys.argv[1:])
print(tracemalloc.get_traced_memory()[1], file=sys.stderr)
"""
