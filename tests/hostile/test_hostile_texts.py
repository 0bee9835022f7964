"""A text that was written to make the reader of printed errors work for ever is read at once."""

from collections.abc import Callable

import pytest

import failwell
from failwell.adapters.log_records.pasted import describe_pasted
from failwell.adapters.text.first_look import may_hold_facts
from failwell.adapters.text.printed_body import body_in, headers_in
from failwell.adapters.text.protocol_words import status_in
from failwell.adapters.text.python_traceback import read_traceback
from failwell.adapters.text.reader import chain_in, read_text
from failwell.adapters.text.verdict import read_printed
from failwell.errors.faults import Validation

pytestmark = pytest.mark.timeout(60)

LENGTH = 1_000_000
PIECES = (
    "{", "[", "(", "<", "\n", " ", "\t", "A", "a.", "a::", "a\\", "'", '"', "0", "500 ", "b'{", '{"a":', "{'a': ", "Caused by: ",
    "\nCaused by: X", "---> ", "[cause]: ", "cause: A", "A(A(", "Error(", "XError: ", "XError", "  at x\n", "A1", "    1: ", " (",
    "thread 'main' panicked at ", "panic: ", "x:1:in ", "status code ", "HTTP 1", "http ", "server returned ", "a$", "_", "\n   ",
    "Error: ", "retry-after: x\n", "500 of ", "0x", "get returned ", "exit ", "exit code ", "signal ", "SQLSTATE[", "code = A ",
    "StatusCode.", "E", "ECONN", "connection refuse", "curl: (", "Error from server (", "denied", "fatal: ", "npm ERR! code ",
    "2024-01-01 ", "2024-01-01 00:00:00 ERROR x\n", "websocket ", "close code ", "[Errno ", "Os { code: ", "\\", "code: '", "Headers: {", "body: ",
    "Traceback (most recent call last):\n", "  + Exception Group Traceback (most recent call last):\n", "An error occurred (",
    "<html", "raised A", "\u2028", "\x00", "\U0001f600",
)  # fmt: skip


@pytest.mark.slow
def test_a_million_repeated_characters_are_read_at_once() -> None:
    for piece in PIECES:
        facts = read_text(piece * (LENGTH // len(piece)))

        assert len(facts.message) < LENGTH // 10, piece
        assert len(facts.errors) <= 12, piece


@pytest.mark.parametrize("read", [may_hold_facts, status_in, body_in, headers_in, chain_in, read_traceback])
def test_no_part_of_the_reader_takes_longer_than_the_text_is_long(read: Callable[[str], object]) -> None:
    for piece in PIECES:
        result = read(piece * (100_000 // len(piece)))

        assert len(repr(result)) <= 64_002, piece


def test_hostile_texts_are_described_or_refused() -> None:
    for piece in PIECES:
        text = f"java.io.IOException: HTTP 503 {piece * (20_000 // len(piece))}"
        try:
            report = describe_pasted(text)
        except Validation:
            continue

        assert len(report.to_json()) < 64 * 1024


def test_a_message_of_any_size_is_classified_from_its_beginning() -> None:
    report = failwell.describe(RuntimeError("Error code: 429 - " + "{'a': " * LENGTH))

    assert report.kind == "provider.rate_limited"


@pytest.mark.parametrize(
    "text",
    [
        "Error code: 429 - {'a': __import__('os').system('false')}",
        "Error code: 429 - " + "{" * 500 + "'a'" + "}" * 500,
        "Error code: 429 - {'a': " + "9" * 10_000 + "}",
        "Error code: 429 - {'a': 1e999999, 'b': NaN}",
        'Error code: 429 - b\'{"a": "\\xff\\ud800"}\'',
        "Error code: 429 - {'a': '\ud800'}",
    ],
)
def test_a_body_that_is_no_data_is_passed_over(text: str) -> None:
    facts = read_text(text)

    assert facts.status == 429
    reading = read_printed(facts)
    assert reading is not None
    assert reading.kind == "provider.rate_limited"
