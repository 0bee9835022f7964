"""What an author writes is a typed error or is named as malformed; it is never a crash and never a leak."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from failwell.errors.kind_registry import OWNED_PREFIXES
from failwell.errors.redact import register_secret
from failwell.workflows.envelope import LARGEST, Malformed, failure_of, read_file, violation
from failwell.workflows.failure import Failure

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


def wire(**changes: Any) -> dict[str, Any]:
    return {"kind": "external.git.drift", "message": "the branch moved", **changes}


def read(value: object) -> Failure | None:
    return read_file(json.dumps(value).encode(), NOW)


def reason(raw: bytes) -> str:
    with pytest.raises(Malformed) as caught:
        read_file(raw, NOW)
    return str(caught.value)


def test_an_envelope_has_exactly_kind_message_and_details() -> None:
    found = read(wire(failwell_error=True, details={"branch": "main"}, other=1))

    assert found is not None
    assert (found.kind, found.report.message, found.report.details) == (
        "external.git.drift",
        "the branch moved",
        {"branch": "main"},
    )


@pytest.mark.parametrize("changes", [{}, {"details": None}])
def test_details_are_always_there(changes: dict[str, Any]) -> None:
    found = read(wire(**changes))

    assert found is not None
    assert found.report.details == {}


@pytest.mark.acceptance("conductor 14")
@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"oops", "not valid JSON: Expecting value (line 1, column 1)"),
        (b'{"kind": "a.b", "message": NaN}', "no number that JSON can represent"),
        (b"[1]", "not a JSON object"),
        (b'"a.b"', "not a JSON object"),
        (b'{"message": "m"}', "`kind` is missing"),
        (b'{"kind": "", "message": "m"}', "`kind` is missing"),
        (b'{"kind": 7, "message": "m"}', "`kind` is missing or not a text"),
        (b'{"kind": "oops", "message": "m"}', "lower-case words joined by dots"),
        (b'{"kind": "a.b\\n", "message": "m"}', "lower-case words joined by dots"),
        (b'{"kind": "a.b"}', "`message` is missing"),
        (b'{"kind": "a.b", "message": ""}', "`message` is missing, empty"),
        (b'{"kind": "a.b", "message": " "}', "`message` is missing, empty"),
        (b'{"kind": "a.b", "message": 7}', "not a text"),
        (b'{"kind": "a.b", "message": "m", "details": "x"}', "`details` is not an object"),
        (b'{"kind": "a.b", "message": "m", "details": []}', "`details` is not an object"),
        (b"[" * 5_000, "nested too deeply"),
        (b'{"kind": "a.b", "message": "m", "details": {"n": 1' + b"0" * 5_000 + b"}}", "4300 digits"),
    ],
)
def test_what_breaks_a_rule_is_malformed_and_the_rule_is_named(raw: bytes, why: str) -> None:
    assert why in reason(raw)


@pytest.mark.acceptance("conductor 15")
def test_a_byte_order_mark_is_passed_over() -> None:
    found = read_file(b"\xef\xbb\xbf" + json.dumps(wire()).encode(), NOW)

    assert found is not None
    assert found.kind == "external.git.drift"


@pytest.mark.acceptance("conductor 15")
def test_bytes_that_are_no_utf_8_are_malformed() -> None:
    assert "byte 9 is not UTF-8" in reason(b'{"kind":"\xff"}')


@pytest.mark.acceptance("conductor 16")
@pytest.mark.parametrize("prefix", OWNED_PREFIXES)
def test_the_kinds_of_the_runtime_cannot_be_raised_by_an_author(prefix: str) -> None:
    told = reason(json.dumps(wire(kind=f"{prefix}script_error")).encode())

    assert f"`{prefix}`, which is reserved for the runtime" in told


@pytest.mark.acceptance("conductor 17")
@pytest.mark.parametrize("raw", [b"", b" \n\t ", b"\xef\xbb\xbf\n"])
def test_a_blank_file_is_no_envelope(raw: bytes) -> None:
    assert read_file(raw, NOW) is None


def test_a_file_that_is_too_large_is_malformed() -> None:
    assert f"more than {LARGEST} bytes" in reason(b" " * (LARGEST + 1))


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        (30, 30.0),
        ("30", 30.0),
        ("1.5", 1.5),
        ("Sun, 01 Mar 2026 12:01:00 GMT", 60.0),
        ("2026-03-01T12:02:00Z", 120.0),
        ("2026-03-01T11:00:00Z", 0.0),
    ],
)
def test_a_wait_that_the_author_knows_of_is_read_in_every_form(told: object, seconds: float) -> None:
    found = read(wire(details={"retry_after": told}))

    assert found is not None
    assert found.report.not_before is not None
    assert found.report.not_before.after == seconds
    assert found.report.details == {"retry_after": told}


@pytest.mark.parametrize("told", [True, None, -5, "soon", [], {}, 1e300])
def test_a_wait_that_makes_no_sense_is_none(told: object) -> None:
    found = read(wire(details={"retry_after": told}))

    assert found is not None
    assert found.report.not_before is None or told == {}


def test_secrets_are_masked_in_message_and_details() -> None:
    register_secret("tr0ub4dor-and-3")

    found = read(
        wire(message="login with tr0ub4dor-and-3 failed", details={"password": "x", "url": "tr0ub4dor-and-3"})
    )

    assert found is not None
    assert "tr0ub4dor" not in found.report.message
    assert found.report.details == {"password": "[redacted]", "url": "[redacted]"}


def test_a_long_message_is_cut() -> None:
    found = read(wire(message="x" * 10_000))

    assert found is not None
    assert len(found.report.message) <= 2_000


def test_half_characters_do_not_get_through() -> None:
    found = read(wire(message="a\ud800b", details={"\udc00": "\ud800"}))

    assert found is not None
    assert (found.report.message, found.report.details) == ("a?b", {"?": "?"})


def test_a_violation_says_where_it_comes_from_and_why() -> None:
    message, details = violation("build", "script", "it is not", failed_field="a.b")

    assert message == "script 'build' output failed schema validation: it is not"
    assert details == {
        "node": "build",
        "source": "script",
        "original_message": "it is not",
        "failed_field": "a.b",
    }


@given(some.binary(max_size=300))
def test_whatever_bytes_a_script_writes_it_is_an_envelope_nothing_or_malformed(raw: bytes) -> None:
    try:
        found = read_file(raw, NOW)
    except Malformed:
        return
    assert found is None or found.kind


_json = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(), inner, max_size=3),
    max_leaves=8,
)


@given(some.fixed_dictionaries({}, optional={"kind": _json, "message": _json, "details": _json}))
def test_whatever_object_is_raised_comes_out_storable_or_malformed(wire_object: dict[str, Any]) -> None:
    try:
        found = failure_of(wire_object, NOW)
    except Malformed:
        return
    stored = json.dumps([found.report.message, dict(found.report.details)], allow_nan=False).encode()
    assert json.loads(stored) == [found.report.message, dict(found.report.details)]
