"""Bytes → something that might arrive: a good letter, damaged in ways that parsers dislike."""

import json
import traceback
from copy import deepcopy
from typing import Any, cast

from failwell.adapters.describe import describe
from failwell.delivery.http.problem_details import problem
from failwell.errors.facts import NotBefore, ProviderMetadata, ResourceShortfall
from failwell.errors.fault import Fault
from failwell.errors.report import Attempt, Scene
from failwell.integrations.mcp import tool_result
from fuzz.trees import Choices

_REPLY = """HTTP/1.1 429 Too Many Requests
retry-after: 7
x-request-id: req_1
content-type: application/json

{"error": {"message": "slow down", "type": "rate_limit_error", "code": "rate_limit_exceeded"}}
"""
_SAVED_REPLY = {"status": 503, "headers": [["Retry-After", "5"]], "body": {"error": {"code": "overloaded"}}}

TOKENS: tuple[bytes, ...] = (
    b"{", b"}", b"[", b"]", b'"', b":", b",", b"\\", b"\\u0000", b"\\ud800", b"\x00", b"\xff", b"\xed\xa0\x80",
    b"null", b"true", b"NaN", b"-Infinity", b"1e999", b"-0", b"9" * 5_000, b"[" * 3_000, b'{"a":' * 2_000,
    b"0001-01-01T00:00:00+23:59", b"9999-12-31T23:59:59-23:59", b"2026-01-01", b"\r\n\r\n", b"\n\n",
    b"HTTP/1.1 200\n\n", b"HTTP/2 599 x\n", b"  | ", b"  + Exception Group Traceback (most recent call last):\n",
    b"Traceback (most recent call last):\n", b'  File "x.py", line 1, in f\n', b"ValueError: x\n",
    b"+-+---------------- 1 ----------------\n", b"\nDuring handling of the above exception, another exception occurred:\n\n",
    b"\xe2\x95\xad", b"\xef\xbb\xbf", b"Error code: 500 - {'code': 'x'}", b"[Errno 99999999]", b"key: " * 500,
    b"a.b.c.", b"\xe2\x80\xae", b"\x1b[31m", b"failwell.error/", b"failwell.error/99", b'"kind":"X Y"',
)  # fmt: skip
SCALARS: tuple[Any, ...] = (
    None, True, -1, 0, 1e308, -1e308, 2**70, "", "x" * 5_000, "\ud800", [], {}, [[]], {"a": {}}, "transient",
    "provider.auth", "unknown", "2026-01-01T00:00:00+00:00", "0001-01-01T00:00:00+23:59", [None], [{}], [1] * 300,
)  # fmt: skip


def letter(data: bytes) -> bytes:
    """The letter that `data` stands for."""
    choices = Choices(data)
    written = choices.one(SEEDS)
    if choices.below(3) == 0:
        written = _changed(written, choices)
    for _ in range(choices.below(5)):
        at = choices.below(len(written) + 1)
        match choices.below(6):
            case 0:
                written = written[:at] + choices.one(TOKENS) + written[at:]
            case 1:
                written = written[:at] + written[at + choices.below(40) :]
            case 2:
                written = written[:at] + bytes([choices.below(256)]) + written[at + 1 :]
            case 3:
                written = written[:at] + choices.one(SEEDS)[at:]
            case 4:
                part = written[at : at + choices.below(200)]
                written = written[:at] + part * choices.below(20) + written[at:]
            case _:
                written = written[:at]
        written = written[:200_000]
    return written


def _changed(written: bytes, choices: Choices) -> bytes:
    """The same JSON with some of its values replaced by others."""
    try:
        document = json.loads(written)
    except ValueError:
        return written
    for _ in range(1 + choices.below(4)):
        _change(document, choices)
    return json.dumps(document).encode("utf-8", "surrogatepass")


def _change(holder: Any, choices: Choices) -> None:
    for _ in range(6):
        keys: list[Any] = (
            list(cast("dict[str, Any]", holder)) if isinstance(holder, dict) else list(range(len(holder)))
        )
        if not keys:
            return
        key = choices.one(keys)
        inner = cast("Any", holder)[key]
        if isinstance(inner, dict | list) and choices.below(2):
            holder = cast("Any", inner)
            continue
        match choices.below(3):
            case 0 if isinstance(holder, dict):
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[choices.one(("new", "extra", "schema", "kind", "é", "x" * 300))] = deepcopy(
                    choices.one(SCALARS)
                )
            case _:
                holder[key] = deepcopy(choices.one(SCALARS))
        return


def _seeds() -> list[bytes]:
    leaf = ExceptionGroup("two", [ValueError("a"), TimeoutError("b")])
    try:
        try:
            raise leaf
        except ExceptionGroup as group:
            raise RuntimeError("above") from group
    except RuntimeError as error:
        raised = error
    printed = "".join(traceback.format_exception(raised))
    full = Fault(
        kind="provider.rate_limited",
        provider="acme",
        model="large",
        message="slow down",
        not_before=NotBefore(after=7.5, source="retry-after"),
        provider_metadata=ProviderMetadata(status_code=429, code="x", headers={"retry-after": "7"}),
        fields_invalid=["a.b"],
        resource_shortfall=ResourceShortfall("disk_mb", 2.0, 1.0),
        details={"batch": [1, 2, {"x": None}]},
    )
    attempts = [
        Attempt(number=1, kind="provider.overloaded", usage={"input": 3}, cost=7, wait=1.5, reason="why")
    ]
    reports = [
        describe(raised, policy="full"),
        describe(full, attempts=attempts, scene=Scene(run="r", node="n", attempt=2)),
        describe(Fault.wrap(full, "wrapped")),
    ]
    documents: list[Any] = [
        *(report.to_dict() for report in reports),
        *(problem(report, disclosure="verbose", instance="/x") for report in reports),
        *(tool_result(report) for report in reports),
        {"type": "about:blank", "title": "Not Found", "status": 404, "detail": "x"},
        _SAVED_REPLY,
        {"level": "error", "message": printed},
        reports[0].to_dict() | {"schema": "failwell.error/9", "new": {"a": 1}, "category": "novel"},
    ]
    texts = [
        printed,
        printed.replace("\n", "\n2026-01-01 ERROR "),
        _REPLY,
        "< " + _REPLY.replace("\n", "\n< "),
        "",
        "x",
    ]
    return [*(json.dumps(document).encode() for document in documents), *(text.encode() for text in texts)]


SEEDS = _seeds()
